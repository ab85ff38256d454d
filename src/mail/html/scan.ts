import type { Work } from '../../core/concurrency/slices.ts';
import { codePointOf, createTokenizing } from './html-tokenizer.ts';
import { createTagScanner } from './tags.ts';
import { CHARACTERS_PER_STEP, type TokenHandler } from './tokens.ts';

const EXCLAMATION_MARK = 33;
const DASH = 45;
const SLASH = 47;
const LESS_THAN = 60;
const GREATER_THAN = 62;

/** A numeric or named reference as it is usually written. */
const ENTITY = /&(?:#\d{1,6}|#x[\da-f]{1,5}|[a-z][a-z\d]{1,30});/iy;
const STARTS_AN_ENTITY = /[a-z#]/i;
const DOCTYPE = /<!doctype\s[^>]*>/iy;
/** The length of text that is read in one step. */
const MAX_SCANNED_TEXT = 16 * 1024;
/** The length of a comment that is read in one step. */
const MAX_SCANNED_COMMENT = 64 * 1024;

/**
 * Splits HTML into tokens, in steps. `requested`: names of attributes, in lower case.
 *
 * htmlparser2's tokenizer defines the tokens; it examines each character in a state machine. Text, tags with quoted
 * attributes and comments, which most HTML consists of, are found here with searches for the character that ends them, in a
 * fraction of the time; everything else (raw text such as style sheets, unquoted values, unusual entities, broken HTML) is
 * left to the tokenizer, up to the end of the next token. Both give the same tokens (`test/mail/html/scan.test.ts` compares
 * them).
 */
export function* scanningHtml(
  html: string,
  handler: TokenHandler,
  requested: ReadonlySet<string>,
): Work<void> {
  const tags = createTagScanner(html, handler, requested);
  const scanText = createTextScanner(html, handler);
  /** Each returns the offset after what it read; `~offset`: the tokenizer has to read what begins there. */
  const scanToken = (offset: number): number => {
    if (html.charCodeAt(offset) !== LESS_THAN) return scanText(offset);
    const code = html.charCodeAt(offset + 1);
    if (code === SLASH) return tags.scanEnd(offset);
    if (code === EXCLAMATION_MARK) return scanComment(html, offset, handler);
    return tags.scanStart(offset);
  };
  let tokenizing: ((base: number) => Work<number>) | null = null;
  let at = 0;
  let yieldAt = CHARACTERS_PER_STEP;
  while (at < html.length) {
    const next = scanToken(at);
    if (next >= 0) {
      at = next;
    } else {
      tokenizing ??= createTokenizing(html, handler, requested);
      at = yield* tokenizing(~next);
    }
    if (at >= yieldAt) {
      yield;
      yieldAt = at + CHARACTERS_PER_STEP;
    }
  }
}

/** Returns a function that reads the text before the next tag. The handler has received what precedes a returned `~offset`. */
function createTextScanner(html: string, handler: TokenHandler): (at: number) => number {
  /** The first ampersand from the last offset on, so that each character is searched once. */
  let ampersand = -1;
  return (at) => {
    const tag = html.indexOf('<', at);
    const end = Math.min(tag === -1 ? html.length : tag, at + MAX_SCANNED_TEXT);
    let from = at;
    for (;;) {
      if (ampersand < from) ampersand = positionOf(html, '&', from);
      if (ampersand >= end) break;
      if (ampersand > from) handler.text(from, ampersand);
      from = ampersand + 1;
      if (!STARTS_AN_ENTITY.test(html.charAt(from))) {
        handler.text(ampersand, from);
        continue;
      }
      ENTITY.lastIndex = ampersand;
      const [entity = ''] = ENTITY.exec(html) ?? [];
      const codePoint = entity === '' ? null : codePointOf(entity);
      if (codePoint === null) return ~ampersand;
      from = ampersand + entity.length;
      handler.entity(codePoint, from);
      // The entity may end after the piece.
      if (from >= end) return from;
    }
    if (end > from) handler.text(from, end);
    return end;
  };
}

/** The first position from `from` on; the length when there is none. */
function positionOf(html: string, character: string, from: number): number {
  const at = html.indexOf(character, from);
  return at === -1 ? html.length : at;
}

function scanComment(html: string, at: number, handler: TokenHandler): number {
  if (html.charCodeAt(at + 2) !== DASH || html.charCodeAt(at + 3) !== DASH) {
    DOCTYPE.lastIndex = at;
    return DOCTYPE.test(html) ? DOCTYPE.lastIndex : ~at;
  }
  const start = at + 4;
  // Complete comments are `<!-->` and `<!--->`, too, and others may end with `--!>`.
  if (html.charCodeAt(start) === GREATER_THAN || html.startsWith('->', start)) return ~at;
  // What is left is a long comment of dashes, or without an end: it is read in steps.
  const limit = start + MAX_SCANNED_COMMENT;
  for (let end = html.indexOf('--', start); end !== -1 && end < limit; end = html.indexOf('--', end + 1)) {
    const code = html.charCodeAt(end + 2);
    if (code === EXCLAMATION_MARK) return ~at;
    if (code !== GREATER_THAN) continue;
    handler.comment(start, end);
    return end + 3;
  }
  return ~at;
}
