import { deferredForLookup } from '../support/deferred-for-lookup.ts';

export default deferredForLookup({
  title: 'defers mail while the name server does not answer',
  settings: () => ({ 'dns.timeoutMs': 200 }),
  answer: 'silent',
  resetsSettings: true,
});
