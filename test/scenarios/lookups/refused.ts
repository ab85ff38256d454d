import { deferredForLookup } from '../support/deferred-for-lookup.ts';

export default deferredForLookup({
  title: 'defers mail while the name server refuses to answer',
  answer: 'REFUSED',
});
