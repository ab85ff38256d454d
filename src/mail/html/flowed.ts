import { type Work, withoutPause } from '../../core/concurrency/slices.ts';

/*
 * Wraps text for `format=flowed` (RFC 3676), and joins the lines of such text again. A client that supports the format
 * reflows and quotes paragraphs correctly; others display hard-wrapped text. Lines break only at spaces, so that a long URL
 * stays clickable. `delsp` is not used: fewer clients support it, and the others would display two spaces at every break.
 */

/** Includes the trailing space. With three levels of quoting and `=20` it is below quoted-printable's limit of 76. */
const WIDTH = 72;
/** RFC 3676 §4.4. */
const NEEDS_STUFFING = /^(?: |>|From )/;

/** `text` has LF line ends, and so has the result. */
export function flowText(text: string): string {
  return withoutPause(flowTextInSteps(text));
}

const LINES_PER_STEP = 2048;

/** `flowText` in steps. */
export function* flowTextInSteps(text: string): Work<string> {
  const lines: string[] = [];
  let read = 0;
  for (const line of text.split('\n')) {
    if (++read % LINES_PER_STEP === 0) yield;
    // A trailing space would join the line with the next one.
    const paragraph = line.trimEnd();
    if (paragraph.length <= WIDTH) lines.push(spaceStuff(paragraph));
    else wrap(paragraph, lines);
  }
  return lines.join('\n');
}

function wrap(paragraph: string, lines: string[]): void {
  let at = 0;
  while (paragraph.length - at > WIDTH) {
    let end = paragraph.lastIndexOf(' ', at + WIDTH - 1);
    // Two things are not broken: a word longer than a line, and `-- `, which on a line alone begins a signature (§4.3).
    while (end !== -1 && (end <= at || isUnbreakable(paragraph.slice(at, end)))) {
      end = paragraph.indexOf(' ', Math.max(end + 1, at + WIDTH));
    }
    if (end === -1) break;
    lines.push(spaceStuff(paragraph.slice(at, end + 1)));
    at = end + 1;
  }
  lines.push(spaceStuff(paragraph.slice(at)));
}

/** Whether the text is only spaces and a list marker, which belong to the next word. */
function isUnbreakable(start: string): boolean {
  // Not linear: the text is shorter than a line.
  return start.length < 24 && /^ *(?:-|--|\d+\.)? *$/.test(start);
}

function spaceStuff(line: string): string {
  return NEEDS_STUFFING.test(line) ? ` ${line}` : line;
}

/**
 * The text of a `format=flowed` body (RFC 3676 §4) with each paragraph in one line. `deletesSpaces`: the parameter DelSp is
 * `yes`, and the space before a soft line break is not part of the text. Both texts have LF line ends.
 */
export function unflowText(text: string, deletesSpaces: boolean): string {
  const paragraphs: { depth: number; pieces: string[] }[] = [];
  let isOpen = false;
  for (const line of text.split('\n')) {
    const depth = /^>*/.exec(line)?.[0].length ?? 0;
    const content = line.slice(line[depth] === ' ' ? depth + 1 : depth);
    const isFlowed = content.endsWith(' ') && content !== SIGNATURE_SEPARATOR;
    const piece = isFlowed && deletesSpaces ? content.slice(0, -1) : content;
    const last = paragraphs.at(-1);
    // A paragraph also ends where the depth of quoting changes, and before a signature (§4.5, §4.3).
    if (isOpen && last?.depth === depth && content !== SIGNATURE_SEPARATOR) last.pieces.push(piece);
    else paragraphs.push({ depth, pieces: [piece] });
    isOpen = isFlowed;
  }
  return paragraphs
    .map(({ depth, pieces }) => `${'>'.repeat(depth)}${depth > 0 ? ' ' : ''}${pieces.join('')}`)
    .join('\n');
}

const SIGNATURE_SEPARATOR = '-- ';
