import type { PostalAddress } from '../store/accounts.ts';

/**
 * The format of a postal address on one line, as an operator enters it. The street is first and the country last; the
 * parts between them are identified by the postal code, which is the part with digits.
 */
export const ADDRESS_FORM = 'street, [second line,] city, [region,] postal code, country';

/** Common forms of postal codes; of two with the same prefix the longer one first. */
const CODE = [
  String.raw`[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}`, // SW1A 1AA
  String.raw`[A-Z]\d[A-Z] ?\d[A-Z]\d`, // M5V 3L9
  String.raw`[A-Z]\d[\dW] ?[A-Z\d]{4}`, // D02 AF30
  String.raw`[A-Z]\d{4}[A-Z]{3}`, // C1425CLA
  String.raw`\d{4} ?[A-Z]{2}`, // 1012 AB
  String.raw`\d{2,5}[ -]\d{2,4}`, // 111 22, 00-950, 62701-1234
  String.raw`(?:[A-Z]{1,2}-)?\d{4,10}`, // 10115, D-10115
].join('|');
const CODE_ALONE = new RegExp(`^(?:${CODE}|\\d{3})$`);
/** `10115 Berlin`, `1012 AB Amsterdam`. */
const CODE_THEN_NAME = new RegExp(String.raw`^(${CODE})\s+(\p{L}.*)$`, 'u');
/** `IL 62701`, `London SW1A 1AA`. */
const NAME_THEN_CODE = new RegExp(String.raw`^(\p{L}.*?)\s+(${CODE})$`, 'u');

/** Parses an address in ADDRESS_FORM; null without a street, a city and a country. */
export function parsePostalAddress(line: string): PostalAddress | null {
  const parts = line
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  const [line1, ...rest] = parts;
  const country = rest.pop();
  if (line1 === undefined || country === undefined || rest.length === 0) return null;
  const { postalCode, names } = takePostalCode(rest);
  if (names.length === 0) return null;
  return { line1, ...nameParts(names), postalCode, country };
}

/** Extracts the postal code; `names`: the other parts in the order second line, city, region. */
function takePostalCode(parts: string[]): { postalCode: string; names: string[] } {
  const alone = parts.findLastIndex((part) => CODE_ALONE.test(part));
  if (alone >= 0) return { postalCode: parts[alone] ?? '', names: parts.toSpliced(alone, 1) };
  for (let at = parts.length - 1; at >= 0; at--) {
    const before = CODE_THEN_NAME.exec(parts[at] ?? '');
    const after = NAME_THEN_CODE.exec(parts[at] ?? '');
    const postalCode = before?.[1] ?? after?.[2];
    const name = before?.[2] ?? after?.[1];
    if (postalCode !== undefined && name !== undefined) {
      return { postalCode, names: parts.toSpliced(at, 1, name) };
    }
  }
  // Some countries have no postal codes.
  return { postalCode: '', names: parts };
}

/** Two names are city and region, unless the first has a digit, as in `Suite 5`. */
function nameParts(names: string[]): Pick<PostalAddress, 'line2' | 'city' | 'region'> {
  const [first = '', second] = names;
  if (second === undefined) return { city: first };
  if (names.length === 2) {
    return /\d/.test(first) ? { line2: first, city: second } : { city: first, region: second };
  }
  const [city = '', region = ''] = names.slice(-2);
  return { line2: names.slice(0, -2).join(', '), city, region };
}
