import type { ReplyPhase } from '../classify/rules.ts';
import { WORDING } from './wording.ts';

/**
 * Finds the SMTP reply quoted in the text of a report: its codes, its text, and the command that it answers. The text is
 * one server's description of another server's reply, so each of them may be missing.
 */
export interface QuotedReply {
  /** 0 when none is quoted. */
  code: number;
  enhanced: string | null;
  phase: ReplyPhase;
}

const MAX_TEXT_LENGTH = 4000;

/** Reply codes in use (RFC 5321 §4.2.3 and its extensions); other numbers of three digits are ports and sizes. */
const CODES = new Set([
  421, 422, 430, 431, 432, 441, 442, 446, 447, 449, 450, 451, 452, 453, 454, 455, 458, 459, 471, 472, 499,
  500, 501, 502, 503, 504, 505, 510, 511, 512, 513, 515, 517, 519, 520, 521, 522, 523, 525, 530, 531, 533,
  534, 535, 536, 537, 538, 540, 541, 542, 543, 544, 546, 547, 549, 550, 551, 552, 553, 554, 555, 556, 557,
  559, 560, 565, 571, 572, 573, 574, 577, 580, 582, 590, 591, 598,
]);

/** `text` is one recipient's explanation with its lines joined by spaces; only its beginning is read. */
export function quotedReply(text: string): QuotedReply {
  const start = text.slice(0, MAX_TEXT_LENGTH);
  return { code: replyCode(start), enhanced: innermostCode(start), phase: phaseIn(start) };
}

/** The first code at the start of a reply; 0 when there is none. */
export function replyCode(text: string): number {
  return findReply(text)?.code ?? 0;
}

function findReply(text: string): { code: number; at: number } | null {
  for (const match of text.matchAll(/(?<![\w.@/=+-])([45]\d\d)(?=[ :;,.)>-]|$)(?!\.?\d|-\d(?!\.\d))/g)) {
    const code = Number(match[1]);
    if (CODES.has(code)) return { code, at: match.index };
  }
  return null;
}

/**
 * The last enhanced code that is not generic: servers quote one another, and the innermost reply comes last. Null when
 * there is none.
 */
export function innermostCode(text: string): string | null {
  let found: string | null = null;
  for (const match of text.matchAll(
    /(?<![\d.\w/-])(?:[45]\d\d[- ])?#?([45]\.\d{1,3}\.\d{1,3})(?!\d|\.\d|[-_/]?[a-z])/gi,
  )) {
    const status = match[1] ?? '';
    if (found === null || !isGeneric(status)) found = status;
  }
  return found;
}

/** Whether the enhanced code states only failure or success (RFC 3463 §3.1, X.0.0). */
export function isGeneric(status: string): boolean {
  return status.endsWith('.0.0');
}

/** The phase that the text names, `dsn` when it names none. */
export function phaseIn(text: string): ReplyPhase {
  const lower = text.toLowerCase().replaceAll(/\s+/g, ' ');
  return (
    WORDING.command.find(({ phrases }) => phrases.some((phrase) => includesWords(lower, phrase)))?.phase ??
    'dsn'
  );
}

/** Whether the phrase occurs as whole words: "our data" is not in "our database". Both in lower case. */
function includesWords(text: string, phrase: string): boolean {
  for (let at = text.indexOf(phrase); at >= 0; at = text.indexOf(phrase, at + 1)) {
    if (!isInsideWord(text, at) && !isInsideWord(text, at + phrase.length)) return true;
  }
  return false;
}

/** Whether the position is inside a word. */
function isInsideWord(text: string, at: number): boolean {
  return /^[a-z0-9]{2}$/.test(text.slice(Math.max(at - 1, 0), at + 1));
}

/** The quoted reply up to the end of its paragraph: the remote server's own text. '' when none is quoted. */
export function replyText(text: string): string {
  const found = findReply(text.slice(0, MAX_TEXT_LENGTH));
  if (!found) return '';
  const end = text.indexOf(PARAGRAPH, found.at);
  return text.slice(found.at, end < 0 ? undefined : end);
}

/** Represents an empty line where lines are joined: a quoted reply ends there. */
export const PARAGRAPH = '\n';

/** The quoted code is closer to the cause than the reporting server's own, unless it is generic. */
export function preferredCode(quoted: string | null, status: string | null): string | null {
  if (!quoted) return status;
  return isGeneric(quoted) && status ? status : quoted;
}
