import { linkOfFileName, type MediaFiles, mediaFileName } from '../../media/files.ts';
import type { DescribedMedia } from '../../store/media.ts';
import { matchesTag } from '../static-page.ts';
import { plainLook } from './look.ts';
import { isOwnHost, type PageHosts, redirectToPlatform } from './own-host.ts';
import { faultPage, unknownLinkPage } from './plain-pages.ts';
import type { PublicRequest, PublicResponse, PublicRoute } from './response.ts';

/** The route of images, and the part of their addresses after the host. */
export const MEDIA_ROUTE = 'm';

/**
 * `/m/<link>.<type>`: images of accounts, under the hosts of their account. An address has the same content for as long as it
 * exists. Nothing is counted.
 */
export function mediaRoute({ files, hosts }: { files: MediaFiles; hosts: PageHosts }): PublicRoute {
  return {
    name: MEDIA_ROUTE,
    methods: ['GET'],
    handle: async (request) => {
      const { token, host, acceptLanguage } = request;
      const media = files.find(linkOfFileName(token));
      if (media === null || mediaFileName(media) !== token) return unknownLinkPage(plainLook(acceptLanguage));
      if (!isOwnHost(hosts, host, media.account_id))
        return redirectToPlatform(hosts, `/${MEDIA_ROUTE}/${token}`);
      return imageResponse(files, media, request);
    },
  };
}

async function imageResponse(
  files: MediaFiles,
  media: DescribedMedia,
  { ifNoneMatch, isHead, acceptLanguage }: Pick<PublicRequest, 'ifNoneMatch' | 'isHead' | 'acceptLanguage'>,
): Promise<PublicResponse> {
  const headers = mediaHeaders(media);
  if (matchesTag(ifNoneMatch, headers.ETag)) return { status: 304, headers, body: '' };
  if (isHead)
    return { status: 200, headers: { ...headers, 'Content-Length': String(media.size) }, body: null };
  const file = await files.open(media);
  if (file === null) return unknownLinkPage(plainLook(acceptLanguage));
  if (file === 'busy') return faultPage(plainLook(acceptLanguage));
  return { status: 200, headers, body: file.bytes, onClosed: file.close };
}

/** The headers of an image: shown as nothing but an image, also when its address is opened. */
export function mediaHeaders({ type, digest }: DescribedMedia): Record<string, string> & {
  ETag: string;
  'Content-Type': string;
} {
  return {
    'Content-Type': type,
    'Cache-Control': 'public, max-age=31536000, immutable',
    'X-Content-Type-Options': 'nosniff',
    'X-Robots-Tag': 'noindex, nofollow',
    'Referrer-Policy': 'no-referrer',
    'Content-Security-Policy': "default-src 'none'; sandbox",
    ETag: `"${digest}"`,
  };
}
