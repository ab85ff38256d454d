/*
 * Encodes non-ASCII text in header fields as encoded-words (RFC 2047): in UTF-8, with Q or B, whichever is shorter, and
 * split only between characters.
 */

const MAX_WORD = 75;
const OVERHEAD = '=?utf-8?q??='.length;
/** The minimum length of a first word: one character of four bytes. */
const MIN_WORD = OVERHEAD + 12;

/** Characters that Q encoding does not escape even in a display name (RFC 2047 §5 (3)). */
const LITERAL = /[A-Za-z0-9!*+/-]/;

/**
 * Returns the text as encoded-words of at most 75 characters, to be joined by spaces or folds, which decoders remove.
 * `firstLength`: the maximum length of the first word, so that it fits on the line of the field name.
 */
export function encodedWords(text: string, firstLength = MAX_WORD): string[] {
  const bytes = Buffer.byteLength(text);
  let quotedLength = 0;
  for (const char of text) quotedLength += encodeQ(char).length;
  const usesQ = quotedLength <= Math.ceil(bytes / 3) * 4;

  const words: string[] = [];
  let available = Math.max(Math.min(firstLength, MAX_WORD), MIN_WORD) - OVERHEAD;
  let pending = '';
  let length = 0;
  const finish = () => {
    words.push(usesQ ? `=?utf-8?q?${pending}?=` : `=?utf-8?b?${Buffer.from(pending).toString('base64')}?=`);
    available = MAX_WORD - OVERHEAD;
    pending = '';
    length = 0;
  };
  for (const char of text) {
    const form = usesQ ? encodeQ(char) : char;
    const added = usesQ ? form.length : Buffer.byteLength(char);
    if (length + added > (usesQ ? available : Math.floor(available / 4) * 3)) finish();
    pending += form;
    length += added;
  }
  if (pending !== '') finish();
  return words;
}

function encodeQ(char: string): string {
  if (char === ' ') return '_';
  if (char.length === 1 && LITERAL.test(char)) return char;
  return Buffer.from(char).toString('hex').toUpperCase().replace(/../g, '=$&');
}
