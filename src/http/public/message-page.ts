import type { Work } from '../../core/concurrency/slices.ts';
import { escapeHtml } from '../../mail/html/escape.ts';
import { walkHtmlInSteps } from '../../mail/html/walk.ts';
import { COMMON_HEADERS } from './response.ts';

/*
 * Pages that consist of the HTML of a sender: the policy forbids scripts, forms and frames, and `sandbox` separates them from the
 * host.
 */

/** The headers of such a page. */
export const MESSAGE_HEADERS: Readonly<Record<string, string>> = {
  ...COMMON_HEADERS,
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline' https:; font-src https:; img-src http: https: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-popups allow-popups-to-escape-sandbox",
  'X-Frame-Options': 'DENY',
};

/** A message of text only. */
export function textPage(subject: string, text: string): string {
  return `<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(subject)}</title><pre style="white-space:pre-wrap;overflow-wrap:anywhere">${escapeHtml(text)}</pre>`;
}

const REFERRER_ATTRIBUTES = new Set(['name', 'referrerpolicy']);

/** Without what would send the address of the page to the hosts of images and links. */
export function* withoutReferrer(source: string): Work<string> {
  const changes: { start: number; end: number }[] = [];
  yield* walkHtmlInSteps(
    source,
    {
      open: (name, attributes, spans, tagStart) => {
        const isMeta = name === 'meta' && /^\s*referrer\s*$/i.test(attributes.get('name') ?? '');
        const span = isMeta ? spans.get('name') : spans.get('referrerpolicy');
        if (span !== undefined) changes.push({ start: tagStart + span.start, end: tagStart + span.end });
      },
    },
    REFERRER_ATTRIBUTES,
  );
  let out = '';
  let at = 0;
  for (const { start, end } of changes) {
    out += source.slice(at, start);
    at = end;
  }
  return out + source.slice(at);
}
