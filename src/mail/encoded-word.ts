/**
 * Encoded-words (RFC 2047): text beyond ASCII inside header fields. Always UTF-8; Q or B, whichever is shorter;
 * cut between characters, never inside one.
 */
const MAX_WORD = 75;
const OVERHEAD = '=?utf-8?q??='.length;
/** The smallest first word worth having: room for one character of four octets. */
const MIN_WORD = OVERHEAD + 12;

/** What Q encoding writes as it is in a display name too (RFC 2047 §5 (3)). */
const LITERAL = /[A-Za-z0-9!*+/-]/;

/**
 * The text as encoded-words of at most 75 characters, to be joined by a blank or a fold, which a reader drops
 * again. `first`: how long the first one may be, so that it fits beside the field's name.
 */
export function encodedWords(text: string, first = MAX_WORD): string[] {
  const octets = Buffer.byteLength(text);
  let quotedLength = 0;
  for (const char of text) quotedLength += quotedForm(char).length;
  const quote = quotedLength <= Math.ceil(octets / 3) * 4;

  const words: string[] = [];
  let room = Math.max(Math.min(first, MAX_WORD), MIN_WORD) - OVERHEAD;
  let taken = '';
  let length = 0;
  const finish = () => {
    words.push(quote ? `=?utf-8?q?${taken}?=` : `=?utf-8?b?${Buffer.from(taken).toString('base64')}?=`);
    room = MAX_WORD - OVERHEAD;
    taken = '';
    length = 0;
  };
  for (const char of text) {
    const form = quote ? quotedForm(char) : char;
    const added = quote ? form.length : Buffer.byteLength(char);
    if (length + added > (quote ? room : Math.floor(room / 4) * 3)) finish();
    taken += form;
    length += added;
  }
  if (taken !== '') finish();
  return words;
}

function quotedForm(char: string): string {
  if (char === ' ') return '_';
  if (char.length === 1 && LITERAL.test(char)) return char;
  return Buffer.from(char).toString('hex').toUpperCase().replace(/../g, '=$&');
}
