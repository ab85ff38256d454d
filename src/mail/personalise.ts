import { type CopyDetails, MARKS } from './content.ts';
import { escapeHtml } from './template.ts';

/** Fills in the marks of content.ts for one copy: all that differs between two copies' bodies. */
const MARK = new RegExp(Object.values(MARKS).join('|'), 'g');

/** In html the values are escaped, so that they fit an attribute and element content alike. */
export function personalise(source: string, copy: CopyDetails, kind: 'html' | 'text'): string {
  if (!source.includes('\u0000')) return source;
  const shown = kind === 'html' ? escapeHtml : (value: string) => value;
  const values: Record<string, string> = {
    [MARKS.unsubscribeUrl]: shown(copy.unsubscribeUrl),
    [MARKS.reportAbuseUrl]: shown(copy.reportAbuseUrl),
    [MARKS.recipient]: shown(copy.recipient),
  };
  return source.replace(MARK, (mark) => values[mark] ?? '');
}
