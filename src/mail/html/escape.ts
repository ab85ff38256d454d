import type { Work } from '../../core/concurrency/slices.ts';

/** Characters that are escaped between two yields. */
const ESCAPED_PER_STEP = 32 * 1024;
const SPECIAL = /[&<>"']/;

/** Escapes text for element content and quoted attribute values. */
export function escapeHtml(text: string): string {
  if (!SPECIAL.test(text)) return text;
  // One pass for each character is faster than a function that is called for each match.
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/** `escapeHtml` in steps, until the result is longer than `limit` characters: then null. */
export function* escapeHtmlInSteps(text: string, limit: number): Work<string | null> {
  if (text.length <= ESCAPED_PER_STEP) {
    const escaped = escapeHtml(text);
    return escaped.length > limit ? null : escaped;
  }
  const pieces: string[] = [];
  let length = 0;
  for (let at = 0; at < text.length; at += ESCAPED_PER_STEP) {
    const piece = escapeHtml(text.slice(at, at + ESCAPED_PER_STEP));
    length += piece.length;
    if (length > limit) return null;
    pieces.push(piece);
    yield;
  }
  return pieces.join('');
}
