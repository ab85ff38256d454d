import { unknownLinkPage } from './plain-pages.ts';
import { COMMON_HEADERS, type PublicRoute } from './response.ts';

/**
 * `/.well-known/acme-challenge/<token>`: the validation requests of a certificate authority (RFC 8555 §8.3) while an
 * order is open. `keyAuthorizationOf` returns null for unknown tokens.
 */
export function challengeRoute(keyAuthorizationOf: (token: string) => string | null): PublicRoute {
  return {
    name: '.well-known/acme-challenge',
    methods: ['GET'],
    handle: ({ token }) => {
      const body = keyAuthorizationOf(token);
      if (body === null) return unknownLinkPage();
      return {
        status: 200,
        headers: { ...COMMON_HEADERS, 'Content-Type': 'application/octet-stream' },
        body,
      };
    },
  };
}
