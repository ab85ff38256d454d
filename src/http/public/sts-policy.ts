import { unknownLinkPage } from './plain-pages.ts';
import { COMMON_HEADERS, type PublicRoute } from './response.ts';

/** `/.well-known/mta-sts.txt` (RFC 8461 §3.3). `policyOf` returns null for hosts without a policy. */
export function stsPolicyRoute(policyOf: (host: string) => string | null): PublicRoute {
  return {
    name: '.well-known',
    methods: ['GET'],
    handle: ({ host, token }) => {
      const policy = token === 'mta-sts.txt' ? policyOf(host) : null;
      if (policy === null) return unknownLinkPage();
      return {
        status: 200,
        headers: { ...COMMON_HEADERS, 'Content-Type': 'text/plain; charset=utf-8' },
        body: policy,
      };
    },
  };
}
