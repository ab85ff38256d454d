import { walkHtml } from '../html/walk.ts';

/** Elements that start a new line. */
const LINE_ELEMENTS: ReadonlySet<string> = new Set(
  'blockquote br div h1 h2 h3 h4 hr li p pre table td tr'.split(' '),
);

/**
 * The text of a notice in HTML as lines, for finding addresses and replies in it, not for display. An address in
 * unescaped angle brackets is text, although HTML reads it as a tag.
 */
export function htmlToLines(html: string): string {
  const out: string[] = [];
  walkHtml(html, {
    open: (name, _attributes, _spans, start) => {
      if (LINE_ELEMENTS.has(name)) out.push('\n');
      else if (name.includes('@')) out.push(`<${html.slice(start + 1, start + 1 + name.length)}>`);
    },
    close: (name) => {
      if (LINE_ELEMENTS.has(name)) out.push('\n');
    },
    text: (piece) => {
      out.push(piece.replaceAll(/\s+/g, ' '));
    },
  });
  return out.join('');
}
