import { isServiceVariable, parseTemplate } from '../mail/template.ts';

/**
 * A subject that would hold what only a body can: links that are made for each recipient, blocks of html. In
 * words, null when there is nothing wrong.
 */
export function subjectTemplateFault(subject: string): string | null {
  const name = parseTemplate(subject).names.find(isServiceVariable);
  return name === undefined ? null : `must not hold {{${name}}}, which is made for html and text`;
}

/** What no text of a caller's may hold, in words; null when there is nothing wrong. */
export function textFault(text: string): string | null {
  // NUL marks what the service fills in itself (mail/content.ts), and no mail may hold it (RFC 5322 §4).
  if (text.includes('\u0000')) return 'must not hold the character U+0000';
  if (!text.isWellFormed()) return 'holds half a character (an unpaired surrogate)';
  return null;
}
