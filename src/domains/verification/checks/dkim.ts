import type { DnsView, LookupResult } from '../../../dns/dns-view.ts';
import { type DnsRecord, type RecordContext, txtRecord } from '../../dns-record.ts';
import { SLOTS, slotHost, slotRecordName } from '../../key-slots.ts';
import { type DkimKeyName, keyRecordName, keyRecordTags, keyRecordValue } from '../../keys.ts';
import { activeKey, announcedKey, pendingKey } from '../../rotation.ts';
import {
  type CheckContext,
  type CheckResult,
  type CheckSubject,
  fail,
  type Judgment,
  pass,
  unknown,
} from './check.ts';
import { findDelegation, findMisplaced } from './misplaced.ts';

/*
 * Whether the published key of a selector is ours (RFC 6376 §3.6.1, §3.6.2). A key passes only when every verifier
 * finds it: white space and split strings are allowed, a second key record is not (§3.6.2.2: the result is undefined).
 */

export interface PublishedKey extends DkimKeyName {
  /** SubjectPublicKeyInfo DER in base64. */
  publicKey: string;
}

/** The record of the primary DKIM key. */
export function dkimRecord({ domain, keys }: RecordContext): DnsRecord {
  const key = announcedKey(keys);
  if (key === undefined) throw new Error(`domain ${domain.domain_id} has no DKIM key`);
  return txtRecord({
    name: keyRecordName({ domain: domain.name, selector: key.selector }),
    value: keyRecordValue(key.public_key),
    description: 'DKIM public key: receivers verify the signature of your mail with it.',
  });
}

/**
 * The owner's key, or the key in the platform's zone that signs in its place. During a rotation of the owner's key either
 * one passes; the expected record is that of the new key.
 */
export async function checkDkim(context: CheckContext): Promise<CheckResult> {
  const own = await checkOwnKey(context);
  if (own.verdict !== 'fail') return own;
  const signing = context.keys.find(
    ({ slot, state }) =>
      slot !== null &&
      SLOTS[slot].lane === 'primary' &&
      SLOTS[slot].algorithm === 'rsa' &&
      state === 'active',
  );
  if (signing === undefined) return own;
  const { domain, view } = context;
  const key = { domain: domain.name, selector: signing.selector, publicKey: signing.public_key };
  const judgment = await checkKey(view, key);
  return judgment.verdict === 'pass' ? { ...judgment, hint: OWN_KEY_MISSING, expected: own.expected } : own;
}

const OWN_KEY_MISSING =
  'The mail is signed with a key that is rotated automatically, so this record is only needed if its CNAME records are removed.';

async function checkOwnKey(context: CheckContext): Promise<CheckResult> {
  const { view, domain, keys } = context;
  const active = activeKey(keys);
  if (active === undefined) throw new Error(`domain ${domain.domain_id} has no active DKIM key`);
  const checkRow = (row: typeof active) =>
    checkKey(view, { domain: domain.name, selector: row.selector, publicKey: row.public_key });
  const expected = dkimRecord(context).value;
  const pending = pendingKey(keys);
  if (pending === undefined) return { ...(await checkRow(active)), expected };
  const [next, current] = await Promise.all([checkRow(pending), checkRow(active)]);
  if (next.verdict === 'pass') return { ...next, expected, promotedKey: pending.key_id };
  const hint = `The key is being rotated and the new one is not found yet: ${next.hint}`;
  return { ...current, expected, hint: current.verdict === 'pass' ? hint : `${hint} ${current.hint}` };
}

/** The value of the secondary record until the lane is provisioned. */
export const IN_PROGRESS = 'Creation in progress';
const SECONDARY_TTL = 300;

/** The record that delegates the secondary selector to the platform. */
export function secondaryDkimRecord({ domain, platform }: RecordContext): DnsRecord {
  return {
    type: 'CNAME',
    name: slotRecordName(domain, 's'),
    value: domain.alt_provisioned === 1 ? slotHost(platform, domain.alt_domain_id, 's') : IN_PROGRESS,
    description: 'DKIM of the secondary lane, which is used while the primary lane is blocked.',
    purpose: 'Secondary DKIM',
    ttl: SECONDARY_TTL,
  };
}

/**
 * Whether the secondary selector leads to its key. The owner of the domain publishes a CNAME and the platform's zone
 * the key: the hint states which of the two is missing.
 */
export async function checkSecondaryDkim({
  view,
  platform,
  domain,
  keys,
}: CheckSubject<'hostname', 'name' | 'alt_domain_id'> & Pick<CheckContext, 'keys'>): Promise<CheckResult> {
  const key = activeKey(keys, 'secondary');
  const target = slotHost(platform, domain.alt_domain_id, key?.slot ?? 's');
  const expected = `CNAME ${target}`;
  if (key === undefined)
    return {
      ...fail(null, 'The secondary lane is not set up yet; its record is available afterwards.'),
      expected,
    };
  const published = { domain: domain.name, selector: key.selector, publicKey: key.public_key };
  const judgment = await checkKey(view, published);
  if (judgment.verdict !== 'fail') return { ...judgment, expected };
  const name = keyRecordName(published);
  const alias = await view.cname(name);
  if (alias.kind !== 'records') {
    const hint =
      judgment.found === null
        ? `There is no record at ${name}. Publish: ${expected}`
        : `${judgment.hint} Better: publish the CNAME to ${target}, which follows every change of the key.`;
    return { ...fail(judgment.found, hint), expected };
  }
  const judged = alias.records.includes(target)
    ? fail(
        judgment.found ?? expected,
        `The CNAME is correct, but its target has no key yet: the operator of this platform must publish the records of "postrider zone".`,
      )
    : fail(`CNAME ${alias.records[0]}`, `${name} leads to ${alias.records[0]}. Change it to: ${expected}`);
  return { ...judged, expected };
}

/** Looks up and judges the key; where its record is missing, the hint states where it was found instead. */
export async function checkKey(view: DnsView, key: PublishedKey): Promise<Judgment> {
  const name = keyRecordName(key);
  const judgment = judgeKey(name, key.publicKey, await view.txt(name));
  if (judgment.found !== null || judgment.verdict === 'unknown') return judgment;
  const hint =
    (await findMisplaced(view, name, key.domain, looksLikeKey)) ||
    (await findDelegation(view, `_domainkey.${key.domain}`));
  return hint === '' ? judgment : fail(null, hint);
}

/** The judgment on the TXT records at the name. */
function judgeKey(name: string, publicKey: string, answer: LookupResult<string>): Judgment {
  if (answer.kind === 'unknown') return unknown(answer.reason);
  const expected = keyRecordValue(publicKey);
  if (answer.kind === 'absent') {
    return fail(null, `There is no TXT record at ${name} yet. Publish: ${expected}`);
  }
  // A record set has no duplicates, but some servers send them.
  const records = [...new Set(answer.records)];
  const found = records.join('\n');
  const keys = records.filter(looksLikeKey);
  const [only] = keys;
  if (isSplit(records, publicKey)) return fail(found, SPLIT);
  if (only === undefined)
    return fail(found, `The record at ${name} is not a DKIM key. Replace it with: ${expected}`);
  if (keys.length > 1) return fail(found, severalKeysHint(name, keys, publicKey));
  const fault = keyFault(only, publicKey);
  if (fault !== null) return fail(found, fault);
  if (records.length > 1)
    return fail(
      found,
      `${name} has another TXT record in addition to the key, and receivers may use either: remove it.`,
    );
  return pass(found, isTesting(only) ? TESTING : '');
}

const SPLIT =
  'The key is published in two TXT records. It must be one record of two strings: in most consoles, paste the whole value into one field.';
const TESTING = 'The record has t=y (testing), so receivers may ignore the signature: remove that tag.';

function severalKeysHint(name: string, keys: string[], publicKey: string): string {
  return keys.some((key) => keyFault(key, publicKey) === null)
    ? `${name} has ${keys.length} key records; receivers may use any of them. Keep ours and remove the rest.`
    : `${name} has ${keys.length} key records, and none of them is ours. Replace all of them with: ${keyRecordValue(publicKey)}`;
}

/** Why a record is not valid as our key; null when it is. */
function keyFault(record: string, publicKey: string): string | null {
  const expected = keyRecordValue(publicKey);
  if (/\\;/.test(record))
    return `The record has backslashes before its semicolons; publish it without them: ${expected}`;
  if (record.includes('"')) return `The record has quotation marks; publish it without them: ${expected}`;
  const tags = parseTags(record);
  if (tags === null) return `The record is not a list of tags (RFC 6376 §3.2). Replace it with: ${expected}`;
  const version = tags.get('v');
  if (version !== undefined && (version !== 'DKIM1' || tags.keys().next().value !== 'v')) {
    return `The record must begin with v=DKIM1. Replace it with: ${expected}`;
  }
  const published = tags.get('p')?.replace(/\s/g, '');
  if (published === '') return `The record's "p=" is empty, which revokes the key. Publish: ${expected}`;
  const type = tags.get('k') ?? 'rsa';
  const own = keyRecordTags(publicKey);
  if (type !== own.k)
    return `The record has k=${type}, but our key has k=${own.k}. Replace it with: ${expected}`;
  if (published === undefined) return `The record has no "p=" with the key. Publish: ${expected}`;
  if (published !== own.p) return differentKeyHint(published, own.p, expected);
  const hashes = tags.get('h');
  if (hashes !== undefined && !split(hashes).includes('sha256')) {
    return `The record allows only the hashes "${hashes}", but we sign with sha256: remove the "h=" tag.`;
  }
  const services = tags.get('s');
  if (services !== undefined && !split(services).some((service) => service === '*' || service === 'email')) {
    return `The record is only for the service "${services}", not for email: remove the "s=" tag.`;
  }
  return null;
}

function differentKeyHint(published: string, publicKey: string, expected: string): string {
  if (publicKey.startsWith(published)) {
    return `The key is cut off after ${published.length} of ${publicKey.length} characters. This DNS console accepts at most 255 characters per string: enter the value as the strings given in "chunks", in one record.`;
  }
  return `Another key is published under this selector. Replace it with: ${expected}`;
}

function isTesting(record: string): boolean {
  return split(parseTags(record)?.get('t') ?? '').includes('y');
}

/** Whether one value with our key was split over two records. */
function isSplit(records: string[], publicKey: string): boolean {
  const isOurs = (text: string) => parseTags(text)?.get('p')?.replace(/\s/g, '') === publicKey;
  const [one, two, ...more] = records;
  if (one === undefined || two === undefined || more.length > 0 || isOurs(one) || isOurs(two)) return false;
  return isOurs(one + two) || isOurs(two + one);
}

function looksLikeKey(record: string): boolean {
  return /(?:^|;)\s*(?:v\s*=\s*DKIM1|p\s*=)/.test(record.replace(/["\\]/g, ''));
}

function split(value: string): string[] {
  return value.split(':').map((item) => item.trim());
}

/** Parses a tag list (RFC 6376 §3.2); null when it is malformed or has a tag twice. */
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
