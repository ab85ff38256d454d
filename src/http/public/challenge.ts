import { COMMON_HEADERS, type PublicPlace } from './answer.ts';
import { unknownLinkPage } from './plain-pages.ts';

/**
 * `/.well-known/acme-challenge/<token>`: what a certificate authority comes to look for (RFC 8555 §8.3), as long
 * as an order is open. `answerTo` is null for tokens that nobody put up.
 */
export function challengePlace(answerTo: (token: string) => string | null): PublicPlace {
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
