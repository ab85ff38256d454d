import { COMMON_HEADERS, type PublicRoute } from './answer.ts';
import { unknownLinkPage } from './plain-pages.ts';

/**
 * `/.well-known/acme-challenge/<token>`: the validation requests of a certificate authority (RFC 8555 §8.3) while an
 * order is open. `answerTo` returns null for unknown tokens.
 */
export function challengeRoute(answerTo: (token: string) => string | null): PublicRoute {
  return {
    name: '.well-known/acme-challenge',
    methods: ['GET'],
    answer: ({ token }) => {
      const body = answerTo(token);
      if (body === null) return unknownLinkPage();
      return {
        status: 200,
        headers: { ...COMMON_HEADERS, 'Content-Type': 'application/octet-stream' },
        body,
      };
    },
  };
}
