import { isRefusal } from '../../core/refusal.ts';
import type { Inbound, InboundFile } from '../../inbound/inbound.ts';
import { createLargeResponses } from './large-response.ts';
import { plainLook } from './look.ts';
import { faultPage, unknownLinkPage } from './plain-pages.ts';
import type { PublicRoute } from './response.ts';

/** `/f/<token>`: an attachment or the source of a received mail, for the time that the signed token states. */
export function inboundFileRoute({ linked }: { linked: Inbound['linked'] }): PublicRoute {
  const largeResponse = createLargeResponses();
  return {
    name: 'f',
    methods: ['GET'],
    handle: (request) => {
      const look = plainLook(request.acceptLanguage);
      const part = linked(request.token);
      if (part === null) return unknownLinkPage(look);
      return largeResponse(part.accountId, request, async () => {
        const file = await part.read();
        if (!isRefusal(file))
          return { status: 200, headers: fileHeaders(file), body: file.bytes, onClosed: file.close };
        return file.code === 'INBOUND_NOT_FOUND' ? unknownLinkPage(look) : faultPage(look);
      });
    },
  };
}

/** A file of a stranger is saved, never shown: it could be a page with scripts. */
export function fileHeaders({ name, type }: Pick<InboundFile, 'name' | 'type'>): Record<string, string> {
  const plain = name.replaceAll(/[^\w.,()+ -]/g, '_');
  return {
    'Content-Type': type,
    'Content-Disposition': `attachment; filename="${plain}"; filename*=UTF-8''${encodeName(name)}`,
    'Content-Security-Policy': "default-src 'none'; sandbox",
    'X-Content-Type-Options': 'nosniff',
    'Cross-Origin-Resource-Policy': 'same-site',
    'Cache-Control': 'no-store',
  };
}

/** RFC 8187 §3.2.1. */
function encodeName(name: string): string {
  return encodeURIComponent(name).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
}
