import type { Work } from '../core/slices.ts';
import { missingInText, type RequiredVariable } from '../mail/compliance.ts';
import { walkingHtml } from '../mail/html/walk.ts';
import type { Wording } from '../templates/source.ts';
import type { HtmlReader } from './html-reader.ts';

/**
 * Appends the compliance variables that a submitted message lacks, each on its own line: programs that speak only
 * SMTP (a shop, a printer) know nothing of them. In steps: html may be megabytes of tags.
 */
export function* appendingFooter(
  wording: Wording,
  required: readonly RequiredVariable[],
  reader: HtmlReader,
): Work<Wording> {
  const inHtml = wording.html === '' ? [] : (yield* reader.reading(wording.html)).missing;
  const inText = missingInText(wording.text === null ? NOTHING : yield* reader.readingText(wording.text));
  const lacking = (missing: readonly RequiredVariable[]) => required.filter((name) => missing.includes(name));
  if (wording.html === '') return { ...wording, text: withTextFooter(wording.text ?? '', lacking(inText)) };
  // A message whose html has them satisfies the check over HTTP as well, whatever its text says.
  if (lacking(inHtml).length === 0) return wording;
  return {
    ...wording,
    html: yield* withHtmlFooter(wording.html, lacking(inHtml)),
    text: wording.text === null ? null : withTextFooter(wording.text, lacking(inText)),
  };
}

const NOTHING = { names: [] };

function* withHtmlFooter(html: string, names: readonly RequiredVariable[]): Work<string> {
  const at = yield* findingEnd(html);
  const footer = names.map((name) => `<p>{{${name}}}</p>`).join('\n');
  return `${html.slice(0, at)}\n${footer}\n${html.slice(at)}`;
}

/** Before the end of the body, as far as the html has one. */
function* findingEnd(html: string): Work<number> {
  const ends = new Map<string, number>();
  yield* walkingHtml(html, { close: (name, start) => void ends.set(name, start) });
  return ends.get('body') ?? ends.get('html') ?? html.length;
}

function withTextFooter(text: string, names: readonly RequiredVariable[]): string {
  if (names.length === 0) return text;
  return [text.trimEnd(), ...names.map((name) => `{{${name}}}`)].join('\n\n').trimStart().concat('\n');
}
