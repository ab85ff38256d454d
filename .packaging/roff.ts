/** Text as man(7) macros. */

/** The header of a page. `date`: as `2026-11-22`. */
export function title(name: string, section: number, date: string, source: string, manual: string): string {
  return `.TH ${quoted(name)} ${section} ${quoted(date)} ${quoted(source)} ${quoted(manual)}`;
}

/** The heading of a section. */
export function section(name: string): string {
  return `.SH ${quoted(name)}`;
}

/** The heading of a subsection. */
export function subsection(name: string): string {
  return `.SS ${quoted(name)}`;
}

/** A paragraph. */
export function paragraph(text: string): string {
  return `.PP\n${escaped(text)}`;
}

/** A term in bold with its description, indented. */
export function entry(term: string, description: string): string {
  return `.TP\n.B ${quoted(term)}\n${escaped(description === '' ? ' ' : description)}`;
}

/** Text whose line breaks and columns are preserved. */
export function preformatted(text: string): string {
  return `.PP\n.nf\n${escaped(text)}\n.fi`;
}

/** Backslashes and hyphens are literal; a dot or apostrophe at the beginning of a line is no macro. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^(?=[.'])/gm, '\\&');
}

/** An argument of a macro. */
function quoted(text: string): string {
  return `"${escaped(text).replaceAll('"', '\\(dq')}"`;
}
