/*
 * Contacts are searched by any part of their address, name or number, regardless of case and accents. Words that are too
 * short for the trigram index are searched as prefixes of the address, the full name and the last name; the database has
 * indexes on their first folded characters.
 */

/** Length of indexed prefixes, in UTF-16 units. */
const KEY_LENGTH = 8;

const MARKS = /\p{M}/gu;
const BLANKS = /\s+/g;
const PLAIN = /^[\x20-\x7e]*$/;
const PLAIN_WORD = /^[\x21-\x7e]*$/;

/** Lower case, without accents, single spaces: `Zoë  MÜLLER` becomes `zoe muller`. */
export function fold(text: string): string {
  // Most texts that segments compare are single words.
  if (PLAIN_WORD.test(text)) return text.toLowerCase();
  const bare = PLAIN.test(text) ? text : text.normalize('NFKD').replace(MARKS, '');
  return bare.toLowerCase().replace(BLANKS, ' ').trim();
}

/** The indexed prefix of a folded text, without a split surrogate pair; null when it is empty. */
export function searchKey(folded: string): string | null {
  const key = folded.slice(0, KEY_LENGTH).replace(/[\ud800-\udbff]$/, '');
  return key === '' ? null : key;
}

/** First and last name as one text, '' when there is neither. */
export function fullName(firstName: string | null, lastName: string | null): string {
  return [firstName, lastName].filter((name) => name !== null).join(' ');
}

export interface SearchKeys {
  email_key: string | null;
  name_key: string | null;
  last_name_key: string | null;
  search_text: string;
}

/**
 * The columns of a contact that searches read, written with every change of its profile. A key is null where the value
 * is null or empty; `search_text` has the folded address, name and number on one line each.
 */
export function searchKeys(person: {
  email: string | null;
  first_name: string | null;
  last_name: string | null;
  phone: string | null;
}): SearchKeys {
  const name = fullName(person.first_name, person.last_name);
  const keyOf = (text: string | null) => (text === null ? null : searchKey(fold(text)));
  return {
    email_key: keyOf(person.email),
    name_key: keyOf(name),
    last_name_key: keyOf(person.last_name),
    search_text: [person.email, name, person.phone]
      .map((text) => fold(text ?? ''))
      .filter((line) => line !== '')
      .join('\n'),
  };
}
