import type { Work } from '../../core/concurrency/slices.ts';
import { missingInText, type RequiredVariable } from '../../mail/compliance.ts';
import { walkingHtml } from '../../mail/html/walk.ts';
import type { TemplateContent } from '../../templates/source.ts';
import type { HtmlReader } from './html-reader.ts';

/**
 * Appends the compliance variables that a submitted message lacks, each on its own line: programs that only use SMTP (a
 * shop, a printer) do not know them. In steps, because HTML can be megabytes of tags.
 */
export function* appendingFooter(
  content: TemplateContent,
  required: readonly RequiredVariable[],
  reader: HtmlReader,
): Work<TemplateContent> {
  const inHtml = content.html === '' ? [] : (yield* reader.reading(content.html)).missing;
  const inText = missingInText(content.text === null ? NO_NAMES : yield* reader.readingText(content.text));
  const selectRequired = (missing: readonly RequiredVariable[]) =>
    required.filter((name) => missing.includes(name));
  if (content.html === '')
    return { ...content, text: withTextFooter(content.text ?? '', selectRequired(inText)) };
  // Html with all variables suffices, whatever the text contains.
  if (selectRequired(inHtml).length === 0) return content;
  return {
    ...content,
    html: yield* withHtmlFooter(content.html, selectRequired(inHtml)),
    text: content.text === null ? null : withTextFooter(content.text, selectRequired(inText)),
  };
}

const NO_NAMES = { names: [] };

function* withHtmlFooter(html: string, names: readonly RequiredVariable[]): Work<string> {
  const at = yield* findingEnd(html);
  const footer = names.map((name) => `<p>{{${name}}}</p>`).join('\n');
  return `${html.slice(0, at)}\n${footer}\n${html.slice(at)}`;
}

/** The position before the end of the body, where there is one. */
function* findingEnd(html: string): Work<number> {
  const ends = new Map<string, number>();
  yield* walkingHtml(html, { close: (name, start) => void ends.set(name, start) });
  return ends.get('body') ?? ends.get('html') ?? html.length;
}

function withTextFooter(text: string, names: readonly RequiredVariable[]): string {
  if (names.length === 0) return text;
  return [text.trimEnd(), ...names.map((name) => `{{${name}}}`)].join('\n\n').trimStart().concat('\n');
}
