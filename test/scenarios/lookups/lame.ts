import { deferredForLookup } from '../support/deferred-for-lookup.ts';

export default deferredForLookup({
  title: 'defers mail while the name server answers with a referral',
  answer: 'referral',
});
