import {
  keyResolver,
  MAX_SIGNATURE_BYTES,
  MIN_KEY_BITS,
  type PublicKeys,
  type SignedMail,
  signatureTags,
  signedFields,
  withFields,
} from './signatures.ts';

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

interface Selected extends SignedMail {
  /** Whether the mail has an ARC chain that is verified. */
  hasChain: boolean;
}

const FIELD = /^(dkim-signature|arc-seal|arc-message-signature|arc-authentication-results)[ \t]*:/i;

/** The signatures of a mail that are verified; null: it has none, or its header is too long. */
function select(raw: Buffer): Selected | null {
  const header = signedFields(raw);
  if (header === null) return null;
  const kindOf = (field: string) => FIELD.exec(field)?.[1]?.toLowerCase() ?? null;
  const chain = header.fields.filter((field) => kindOf(field)?.startsWith('arc-'));
  const hasChain =
    chain.length > 0 &&
    chain.length <= 3 * MAX_ARC_SETS &&
    chain.every((field) => field.length <= MAX_SIGNATURE_BYTES);
  const keyNames = new Set<string>();
  let signatures = 0;
  const fields = header.fields.filter((field) => {
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
  return keyNames.size === 0 ? null : { keyNames: [...keyNames], fields, bodyAt: header.bodyAt, hasChain };
}

/** Names of the DNS records with the keys of a mail's signatures, in lower case. */
export function signatureKeyNames(raw: Buffer): string[] {
  return select(raw)?.keyNames ?? [];
}

function keyNameOf(field: string): string | null {
  return signatureTags(field)?.keyName ?? null;
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
  const options = { resolver: keyResolver(keys, failed), minBitLength: MIN_KEY_BITS };
  const verified = await dkimVerify(withFields(raw, selected), {
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
