import { isRefusal } from '../../core/refusal.ts';
import type { Inbound, InboundFile } from '../../inbound/inbound.ts';
import { plainLook } from './look.ts';
import { faultPage, unknownLinkPage } from './plain-pages.ts';
import type { PublicRoute } from './response.ts';

/** `/f/<token>`: an attachment or the source of a received mail, for the time that the signed token states. */
export function inboundFileRoute({ linked }: { linked: Inbound['linked'] }): PublicRoute {
  return {
    name: 'f',
    methods: ['GET'],
    handle: async ({ token, acceptLanguage }) => {
      const file = await linked(token);
      if (file === null) return unknownLinkPage(plainLook(acceptLanguage));
      if (isRefusal(file)) return faultPage(plainLook(acceptLanguage));
      return { status: 200, headers: fileHeaders(file), body: file.bytes };
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
