import { isServiceVariable, parseTemplate } from '../mail/template.ts';

/** A sentence if a subject uses variables that only bodies can have (links, blocks of html), else null. */
export function subjectTemplateFault(subject: string): string | null {
  const name = parseTemplate(subject).names.find(isServiceVariable);
  return name === undefined ? null : `must not contain {{${name}}}, which is for html and text only`;
}

/** A sentence about characters that no text of a request may contain, else null. */
export function textFault(text: string): string | null {
  // NUL marks what the service inserts (mail/content.ts), and mail may not contain it (RFC 5322 §4).
  if (text.includes('\u0000')) return 'must not contain the character U+0000';
  if (!text.isWellFormed()) return 'must not contain an unpaired surrogate (half a character)';
  return null;
}
