import { isServiceVariable, parseTemplate } from '../mail/template.ts';

/** A sentence if a subject uses variables that only bodies can have (links, blocks of html), else null. */
export function subjectTemplateFault(subject: string): string | null {
  const name = parseTemplate(subject).names.find(isServiceVariable);
  return name === undefined ? null : `must not contain {{${name}}}, which is for html and text only`;
}
