import { type KeyName, keyRecordName, keyRecordValue } from '../../key-record.ts';
import type { DnsView, Seen } from '../dns-view.ts';
import { fail, type Judgement, pass, unknown } from './check.ts';
import { delegation, whereabouts } from './misplaced.ts';

/**
 * Whether the key at a selector is ours (RFC 6376 §3.6.1, §3.6.2). Passing means that every verifier will find
 * our key there, not that some lenient one may: white space and split strings are no fault, a second key
 * record beside ours is (§3.6.2.2: the result is undefined).
 */
export interface PublishedKey extends KeyName {
  /** SubjectPublicKeyInfo DER in base64. */
  publicKey: string;
}

/** Asks and judges. */
export async function checkKey(view: DnsView, key: PublishedKey): Promise<Judgement> {
  const name = keyRecordName(key);
  const judgement = judgeKey(name, key.publicKey, await view.txt(name));
  if (judgement.found !== null || judgement.verdict === 'unknown') return judgement;
  const whereToLook =
    (await whereabouts(view, name, key.domain, looksLikeKey)) ||
    (await delegation(view, `_domainkey.${key.domain}`));
  return whereToLook === '' ? judgement : fail(null, whereToLook);
}

/** The verdict over the TXT records at the name. */
export function judgeKey(name: string, publicKey: string, answer: Seen<string>): Judgement {
  if (answer.kind === 'unknown') return unknown(answer.why);
  const expected = keyRecordValue(publicKey);
  if (answer.kind === 'absent') {
    return fail(null, `There is no TXT record at ${name} yet. Publish: ${expected}`);
  }
  // A set has no duplicates, yet some servers send them.
  const records = [...new Set(answer.records)];
  const found = records.join('\n');
  const keys = records.filter(looksLikeKey);
  const [only] = keys;
  if (isSplit(records, publicKey)) return fail(found, TWO_HALVES);
  if (only === undefined)
    return fail(found, `What stands at ${name} is no DKIM key. Replace it by: ${expected}`);
  if (keys.length > 1) return fail(found, severalKeys(name, keys, publicKey));
  const fault = faultOf(only, publicKey);
  if (fault !== null) return fail(found, fault);
  if (records.length > 1)
    return fail(
      found,
      `${name} has another TXT record beside the key, and receivers may take either: remove it.`,
    );
  return pass(found, isTesting(only) ? TESTING : '');
}

const TWO_HALVES =
  'The key is published in two TXT records. It must be one record made of two strings: in most consoles, paste the whole value into one field.';
const TESTING = 'The record says t=y (testing), so receivers may ignore the signature: remove that tag.';

function severalKeys(name: string, keys: string[], publicKey: string): string {
  return keys.some((key) => faultOf(key, publicKey) === null)
    ? `${name} has ${keys.length} key records; receivers may take any of them. Keep ours and remove the rest.`
    : `${name} has ${keys.length} key records, and none of them is ours. Replace them all by: ${keyRecordValue(publicKey)}`;
}

/** Why a record does not serve as our key; null when it does. */
function faultOf(record: string, publicKey: string): string | null {
  const expected = keyRecordValue(publicKey);
  if (/\\;/.test(record))
    return `The record holds backslashes before its semicolons; publish it without them: ${expected}`;
  if (record.includes('"')) return `The record holds quotation marks; publish it without them: ${expected}`;
  const tags = parseTags(record);
  if (tags === null) return `The record is no list of tags (RFC 6376 §3.2). Replace it by: ${expected}`;
  const version = tags.get('v');
  if (version !== undefined && (version !== 'DKIM1' || tags.keys().next().value !== 'v')) {
    return `The record must begin with v=DKIM1. Replace it by: ${expected}`;
  }
  const published = tags.get('p')?.replace(/\s/g, '');
  if (published === '') return `The record's "p=" is empty, which revokes the key. Publish: ${expected}`;
  const type = tags.get('k') ?? 'rsa';
  if (type !== 'rsa')
    return `The record says k=${type}, but our key is an RSA key. Replace it by: ${expected}`;
  if (published === undefined) return `The record has no "p=", which holds the key. Publish: ${expected}`;
  if (published !== publicKey) return differentKey(published, publicKey, expected);
  const hashes = tags.get('h');
  if (hashes !== undefined && !split(hashes).includes('sha256')) {
    return `The record allows the hashes "${hashes}" only, and we sign with sha256: remove the "h=" tag.`;
  }
  const services = tags.get('s');
  if (services !== undefined && !split(services).some((service) => service === '*' || service === 'email')) {
    return `The record is for the service "${services}" only, not for email: remove the "s=" tag.`;
  }
  return null;
}

function differentKey(published: string, publicKey: string, expected: string): string {
  if (publicKey.startsWith(published)) {
    return `The key is cut off after ${published.length} of ${publicKey.length} characters. This DNS console takes at most 255 characters at once: enter the value as the strings given in "chunks", in one record.`;
  }
  return `Another key is published under this selector. Replace it by: ${expected}`;
}

function isTesting(record: string): boolean {
  return split(parseTags(record)?.get('t') ?? '').includes('y');
}

/** Whether it takes two records together to hold our key: one value spread over two records. */
function isSplit(records: string[], publicKey: string): boolean {
  const holds = (text: string) => parseTags(text)?.get('p')?.replace(/\s/g, '') === publicKey;
  const [one, two, ...more] = records;
  if (one === undefined || two === undefined || more.length > 0 || holds(one) || holds(two)) return false;
  return holds(one + two) || holds(two + one);
}

function looksLikeKey(record: string): boolean {
  return /(?:^|;)\s*(?:v\s*=\s*DKIM1|p\s*=)/.test(record.replace(/["\\]/g, ''));
}

function split(value: string): string[] {
  return value.split(':').map((item) => item.trim());
}

/** A tag list (RFC 6376 §3.2); null when it is none or names a tag twice. */
function parseTags(text: string): Map<string, string> | null {
  const tags = new Map<string, string>();
  const parts = text.split(';');
  if (parts.at(-1)?.trim() === '') parts.pop();
  for (const part of parts) {
    const match = /^\s*([A-Za-z]\w*)\s*=([^]*)$/.exec(part);
    const [, name, value] = match ?? [];
    if (name === undefined || value === undefined || tags.has(name)) return null;
    tags.set(name, value.trim());
  }
  return tags;
}
