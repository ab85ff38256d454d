import { INCOMING_LIMITS } from './limits.ts';
import { readHeader } from './mime.ts';
import type { PublicKeys } from './verify-signatures.ts';

/*
 * Verifies all DKIM signatures (RFC 6376) and the ARC chain (RFC 8617) of a received mail, with keys that the caller has looked
 * up. Only what the header limits below admit is verified: mailauth takes time in proportion to the square of some lengths.
 */

export type AuthenticationStatus =
  | 'pass'
  | 'fail'
  | 'softfail'
  | 'neutral'
  | 'none'
  | 'policy'
  | 'temperror'
  | 'permerror';

export interface VerifiedSignatures {
  /** One for each signature that was verified, in the order of the header. */
  dkim: { status: AuthenticationStatus; domain: string; selector: string }[];
  arc: AuthenticationStatus;
}

/** Signatures that are verified of one mail. */
const MAX_SIGNATURES = 5;
/** Sets of an ARC chain; a longer chain is not verified. */
const MAX_ARC_SETS = 10;
const MAX_HEADER_BYTES = 64 * 1024;
const MAX_SIGNATURE_BYTES = 8 * 1024;

interface Selected {
  keyNames: string[];
  /** Whether the mail has an ARC chain that is verified. */
  hasChain: boolean;
  content: Buffer;
}

const FIELD = /^(dkim-signature|arc-seal|arc-message-signature|arc-authentication-results)[ \t]*:/i;

/** The mail with the signatures that are verified only; null: it has none, or its header is too long. */
function select(raw: Buffer): Selected | null {
  const { bodyAt } = readHeader(raw, INCOMING_LIMITS);
  if (bodyAt > MAX_HEADER_BYTES) return null;
  // latin1 keeps each byte as one character, so that the fields stay as they were signed.
  const fields = raw
    .subarray(0, bodyAt)
    .toString('latin1')
    .split(/(?<=\n)(?![ \t])/);
  const kindOf = (field: string) => FIELD.exec(field)?.[1]?.toLowerCase() ?? null;
  const chain = fields.filter((field) => kindOf(field)?.startsWith('arc-'));
  const hasChain =
    chain.length > 0 &&
    chain.length <= 3 * MAX_ARC_SETS &&
    chain.every((field) => field.length <= MAX_SIGNATURE_BYTES);
  const keyNames = new Set<string>();
  let signatures = 0;
  const kept = fields.filter((field) => {
    const kind = kindOf(field);
    if (kind === null) return true;
    if (kind.startsWith('arc-')) {
      const name = hasChain && kind !== 'arc-authentication-results' ? keyNameOf(field) : null;
      if (name !== null) keyNames.add(name);
      return hasChain;
    }
    const name = field.length <= MAX_SIGNATURE_BYTES ? keyNameOf(field) : null;
    if (name === null || signatures >= MAX_SIGNATURES) return false;
    signatures++;
    keyNames.add(name);
    return true;
  });
  if (keyNames.size === 0) return null;
  const content = Buffer.concat([Buffer.from(kept.join(''), 'latin1'), raw.subarray(bodyAt)]);
  return { keyNames: [...keyNames], hasChain, content };
}

/** Names of the DNS records with the keys of a mail's signatures, in lower case. */
export function signatureKeyNames(raw: Buffer): string[] {
  return select(raw)?.keyNames ?? [];
}

/** Null: the field does not name its key. */
function keyNameOf(field: string): string | null {
  const tags = new Map(
    field
      .slice(field.indexOf(':') + 1)
      .split(';')
      .map((tag): [string, string] => {
        const equals = tag.indexOf('=');
        return [tag.slice(0, equals).trim(), tag.slice(equals + 1).replaceAll(/\s+/g, '')];
      }),
  );
  const domain = tags.get('d')?.toLowerCase() ?? '';
  const selector = tags.get('s')?.toLowerCase() ?? '';
  return domain === '' || selector === '' ? null : `${selector}._domainkey.${domain}`;
}

/**
 * Verifies the signatures with the records of their keys; `failed`: names whose lookup failed temporarily. `at`: epoch ms. Runs
 * on a parser thread.
 */
export async function verifyAuthentication(
  raw: Buffer,
  { keys, failed, at }: { keys: PublicKeys; failed: readonly string[]; at: number },
): Promise<VerifiedSignatures> {
  const selected = select(raw);
  if (selected === null) return { dkim: [], arc: 'none' };
  const { arc, dkimVerify } = await import('./signature-library.ts');
  const resolver = async (name: string): Promise<string[][]> => {
    const key = name.toLowerCase();
    const records = keys[key];
    if (records !== undefined) return records.map((strings) => [...strings]);
    // mailauth treats ENOTFOUND as "no such record", and other codes as temporary.
    const code = failed.includes(key) ? 'ETIMEOUT' : 'ENOTFOUND';
    throw Object.assign(new Error(`no key at ${name}`), { code });
  };
  const options = { resolver, minBitLength: 1024 };
  const verified = await dkimVerify(selected.content, {
    ...options,
    rejectRsaSha1: true,
    strict: true,
    curTime: new Date(at),
  });
  const sets = selected.hasChain ? verified.arc?.chain : false;
  const chain =
    verified.arc !== undefined && sets !== undefined && sets !== false
      ? await arc({ ...verified.arc, chain: sets }, options)
      : null;
  return {
    dkim: verified.results
      // Without a signature there is one result `none`.
      .filter(({ signingDomain }) => typeof signingDomain === 'string')
      .map(({ status, signingDomain, selector }) => ({
        status: statusOf(status.testing === true && status.result === 'pass' ? 'neutral' : status.result),
        domain: String(signingDomain).toLowerCase(),
        selector: String(selector),
      })),
    arc: chain === null ? 'none' : statusOf(chain.status.result),
  };
}

const STATUSES: ReadonlySet<string> = new Set<AuthenticationStatus>([
  'pass',
  'fail',
  'softfail',
  'neutral',
  'none',
  'policy',
  'temperror',
  'permerror',
]);

/** A result that RFC 8601 does not have counts as `neutral`. */
export function statusOf(result: string): AuthenticationStatus {
  // Sound: the set has exactly the values of the type.
  return STATUSES.has(result) ? (result as AuthenticationStatus) : 'neutral';
}
