import { type Work, withoutPause } from '../../core/slices.ts';
import { organizationalDomain } from '../address.ts';
import { type CopyDetails, MARKS, personalize } from '../content.ts';
import { clickTokens } from '../tokens.ts';
import { displayedDomain, linkAddress } from './link-address.ts';
import { changingLinks } from './links.ts';

/** Links that are tracked in one mail; further links are not changed. */
const MAX_LINKS = 5000;

/**
 * Returns the HTML of one copy with tracked links and the open-tracking pixel, if they are enabled. Two kinds of links
 * are not changed: those of the service, which contain its marks, and those whose text is a URL or host name of another
 * organizational domain than that of tracked links.
 */
export function trackLinks(html: string, copy: CopyDetails): string {
  return withoutPause(trackingLinks(html, copy));
}

/** `trackLinks` in steps. */
export function* trackingLinks(html: string, copy: CopyDetails): Work<string> {
  const { tracking } = copy;
  if (tracking === undefined) return html;
  const { linkPrefix, clickSigner, messageId, pixelUrl } = tracking;
  const { hostname } = new URL(linkPrefix);
  const tokenOf = clickSigner === null ? null : clickTokens(clickSigner, messageId, hostname);
  const linkDomain = organizationalDomain(hostname);
  let links = 0;
  return yield* changingLinks(html, {
    address: (href, text) => {
      if (tokenOf === null || links === MAX_LINKS || isServiceLink(href)) return null;
      if ((displayedDomain(text) ?? linkDomain) !== linkDomain) return null;
      const address = linkAddress(personalize(href, copy, 'text'));
      if (address === null || address.startsWith(linkPrefix)) return null;
      links++;
      return linkPrefix + tokenOf(address);
    },
    atEnd: pixelUrl === null ? '' : pixel(pixelUrl),
  });
}

function isServiceLink(href: string): boolean {
  return href.includes(MARKS.unsubscribeUrl) || href.includes(MARKS.reportAbuseUrl);
}

/** Not `display:none`: some mail clients load only displayed images. */
function pixel(url: string): string {
  return `<img src="${url}" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0">`;
}
