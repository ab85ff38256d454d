import { type Work, withoutPause } from '../../core/slices.ts';
import { organizationalDomain } from '../address.ts';
import { type CopyDetails, MARKS } from '../content.ts';
import { personalise } from '../personalise.ts';
import { clickTokens } from '../tokens.ts';
import { linkAddress, shownDomain } from './link-address.ts';
import { changingLinks } from './links.ts';

/** Links of one mail that are tracked; those behind them lead where they led. */
const MAX_LINKS = 5000;

/**
 * One copy's html with its links led through us and the picture that tells of its opening, where that was
 * asked for. The service's own links, those with its marks, stay as they are, and so do links whose text is a URL
 * or host name of another organizational domain than that of our links.
 */
export function tracked(html: string, copy: CopyDetails): string {
  return withoutPause(trackingLinks(html, copy));
}

/** The same in steps. */
export function* trackingLinks(html: string, copy: CopyDetails): Work<string> {
  const { tracking } = copy;
  if (tracking === undefined) return html;
  const { linkPrefix, clickKey, messageId, pixelUrl } = tracking;
  const { hostname } = new URL(linkPrefix);
  const tokenOf = clickKey === null ? null : clickTokens(clickKey, messageId, hostname);
  const linkDomain = organizationalDomain(hostname);
  let links = 0;
  return yield* changingLinks(html, {
    address: (href, text) => {
      if (tokenOf === null || links === MAX_LINKS || isOurs(href)) return null;
      if ((shownDomain(text) ?? linkDomain) !== linkDomain) return null;
      const address = linkAddress(personalise(href, copy, 'text'));
      if (address === null || address.startsWith(linkPrefix)) return null;
      links++;
      return linkPrefix + tokenOf(address);
    },
    atEnd: pixelUrl === null ? '' : pixel(pixelUrl),
  });
}

function isOurs(href: string): boolean {
  return href.includes(MARKS.unsubscribeUrl) || href.includes(MARKS.reportAbuseUrl);
}

/** Not `display:none`: some readers load nothing that is not displayed. */
function pixel(url: string): string {
  return `<img src="${url}" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0">`;
}
