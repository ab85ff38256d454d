import { refuse } from '../../core/refusal.ts';
import type { OpenRoute } from '../route.ts';

/** What a proxy that ends TLS for the public pages asks before it gets a certificate for a name. */
export function tlsCheckRoute(isLinkHost: (host: string) => boolean): OpenRoute {
  return {
    path: '/tls-check',
    operationId: 'checkTlsHost',
    tag: 'Operations',
    summary: 'Whether a host name is one of ours for links',
    description:
      'For a proxy that obtains certificates as they are needed: 200 for the link host of the platform or of a registered domain, 404 for any other name.',
    query: { domain: 'The host name.' },
    answers: { 200: { description: 'It is.', contentType: 'text/plain', example: 'yes\n' } },
    visit: ({ query }) => {
      const host = query.get('domain') ?? '';
      return isLinkHost(host)
        ? { status: 200, contentType: 'text/plain; charset=utf-8', body: 'yes\n' }
        : refuse('NOT_FOUND', 'this is no link host of this platform');
    },
  };
}
