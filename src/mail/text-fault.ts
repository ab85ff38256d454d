/**
 * Why a text of a caller can be neither stored nor sent unchanged, as the rest of a sentence (`must not …`); null: it
 * can. Reasons: NUL marks what the service inserts (content.ts) and mail may not contain it (RFC 5322 §4); an unpaired
 * surrogate has no form in UTF-8.
 */
export function textFault(text: string): string | null {
  if (text.includes('\u0000')) return 'must not contain the character U+0000';
  if (!text.isWellFormed()) return 'must not contain an unpaired surrogate (half a character)';
  return null;
}
