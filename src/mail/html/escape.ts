import type { Work } from '../../core/slices.ts';

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Characters that are escaped between two yields. */
const ESCAPED_PER_STEP = 32 * 1024;

/** Escapes text for element content and quoted attribute values. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ESCAPES[char] ?? char);
}

/** `escapeHtml` in steps. */
export function* escapingHtml(text: string): Work<string> {
  if (text.length <= ESCAPED_PER_STEP) return escapeHtml(text);
  const pieces: string[] = [];
  for (let at = 0; at < text.length; at += ESCAPED_PER_STEP) {
    pieces.push(escapeHtml(text.slice(at, at + ESCAPED_PER_STEP)));
    yield;
  }
  return pieces.join('');
}
