import type { Work } from '../../core/concurrency/slices.ts';
import { personalize } from '../content.ts';
import { VOID_ELEMENTS, walkHtmlInSteps } from './walk.ts';

/* Mail without what belongs to one recipient, for pages that everyone reads. */

const NOBODY = { recipient: '', unsubscribeUrl: '', reportAbuseUrl: '', preferencesUrl: '', viewUrl: '' };

/** A link whose address has a mark (content.ts). */
interface PersonalLink {
  /** Offset of its `<`. */
  start: number;
  href: { start: number; end: number };
  /** Elements that were opened in it and not closed. */
  depth: number;
  isBalanced: boolean;
}

interface Change {
  start: number;
  end: number;
  text: string;
}

const LINK_ATTRIBUTES = new Set(['href']);

/**
 * HTML without marks: links to pages of a recipient are removed with their text, or lead nowhere if their end is not clear; all
 * other marks become empty.
 */
export function* withoutPersonalLinksInSteps(source: string): Work<string> {
  if (!source.includes('\u0000')) return source;
  const changes: Change[] = [];
  let current: PersonalLink | null = null;
  const endOfLink = (link: PersonalLink, end: number | null) => {
    if (end !== null && link.isBalanced && link.depth === 0)
      changes.push({ start: link.start, end, text: '' });
    else changes.push({ ...link.href, text: '#' });
    current = null;
  };
  yield* walkHtmlInSteps(
    source,
    {
      open: (name, attributes, spans, start) => {
        const link: PersonalLink | null = current;
        // The start tag of an anchor ends an open anchor (HTML Standard §13.2.6.4.7).
        if (link !== null && name === 'a') endOfLink(link, null);
        else if (link !== null && !VOID_ELEMENTS.has(name)) link.depth++;
        const span = spans.get('href');
        if (name !== 'a' || span === undefined || attributes.get('href')?.includes('\u0000') !== true) return;
        const href = { start: start + span.start, end: start + span.end };
        current = { start, href, depth: 0, isBalanced: true };
      },
      close: (name, start) => {
        const link: PersonalLink | null = current;
        if (link === null) return;
        if (name === 'a') {
          const end = source.indexOf('>', start);
          endOfLink(link, end === -1 ? null : end + 1);
        } else if (--link.depth < 0) link.isBalanced = false;
      },
    },
    LINK_ATTRIBUTES,
  );
  if (current !== null) endOfLink(current, null);
  let out = '';
  let at = 0;
  for (const { start, end, text } of changes) {
    out += source.slice(at, start) + text;
    at = end;
  }
  return withoutMarks(out + source.slice(at));
}

/** A text without marks. */
export function withoutMarks(text: string): string {
  return personalize(text, NOBODY, 'text');
}
