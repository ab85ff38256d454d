import { deferredForLookup } from '../support/deferred-for-lookup.ts';

export default deferredForLookup({
  title: 'defers mail while the lookup of the domain fails',
  answer: 'SERVFAIL',
});
