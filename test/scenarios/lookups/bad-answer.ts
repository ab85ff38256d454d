import { deferredForLookup } from '../support/deferred-for-lookup.ts';

export default deferredForLookup({
  title: 'defers mail while the answers of the name server cannot be parsed',
  answer: 'bad bytes',
});
