/**
 * Wraps text for `format=flowed` (RFC 3676). A client that knows the format reflows paragraphs to its own width
 * and quotes them correctly; any other one shows hard-wrapped text. Lines break only at blanks, so a long URL stays
 * whole and clickable, on a line of its own if need be. `delsp` is not used: fewer clients support it, and the
 * others would show two blanks at every break.
 */

/** With the trailing blank. Leaves room for three levels of quotes, and for `=20` within quoted-printable's 76. */
const WIDTH = 72;
/** RFC 3676 §4.4. */
const NEEDS_STUFFING = /^(?: |>|From )/;

/** Lines of `text` end with LF; so do those of the result. */
export function flowText(text: string): string {
  const lines: string[] = [];
  for (const line of text.split('\n')) {
    // A blank at a line's end would join it with the next one.
    const paragraph = line.trimEnd();
    if (paragraph.length <= WIDTH) lines.push(stuffed(paragraph));
    else wrap(paragraph, lines);
  }
  return lines.join('\n');
}

function wrap(paragraph: string, lines: string[]): void {
  let at = 0;
  while (paragraph.length - at > WIDTH) {
    let end = paragraph.lastIndexOf(' ', at + WIDTH - 1);
    // A word wider than a line has to stay whole; so has `-- `, which alone on a line begins a signature (§4.3).
    while (end !== -1 && (end <= at || isBreakless(paragraph.slice(at, end)))) {
      end = paragraph.indexOf(' ', Math.max(end + 1, at + WIDTH));
    }
    if (end === -1) break;
    lines.push(stuffed(paragraph.slice(at, end + 1)));
    at = end + 1;
  }
  lines.push(stuffed(paragraph.slice(at)));
}

/** Nothing but blanks and an opening mark, which belong to the word that follows. */
function isBreakless(start: string): boolean {
  return start.length < 24 && /^ *(?:-|--|\d+\.)? *$/.test(start);
}

function stuffed(line: string): string {
  return NEEDS_STUFFING.test(line) ? ` ${line}` : line;
}
