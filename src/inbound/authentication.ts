import { SECOND } from '../core/clock.ts';
import { DnsError } from '../dns/dns-error.ts';
import { createDnsView } from '../dns/dns-view.ts';
import type { Resolver } from '../dns/resolver.ts';
import { discoverPolicy, type Policy } from '../domains/verification/checks/dmarc-record.ts';
import { domainOf } from '../mail/address.ts';
import { isAligned, type PublicKeys } from '../mail/incoming/signatures.ts';
import {
  type AuthenticationStatus,
  statusOf,
  type VerifiedSignatures,
} from '../mail/incoming/verify-authentication.ts';

/*
 * Whether the sender of an inbound mail is who it states to be: SPF (RFC 7208) and DMARC (RFC 9989) here, DKIM and ARC on a parser
 * thread with keys that are looked up here.
 */

/** The results as they are stored and reported. */
export interface Authentication {
  spf: AuthenticationStatus;
  /** `pass` if any signature passes. */
  dkim: AuthenticationStatus;
  dmarc: AuthenticationStatus;
  arc: AuthenticationStatus;
  /** The domain that SPF was checked for; '' for none. */
  spfDomain: string;
  /** Domains whose signatures pass. */
  dkimDomains: string[];
  /** The policy of the author's domain; null: it has none, or it could not be looked up. */
  dmarcPolicy: Policy | null;
}

export interface CheckedMail {
  /** Address of the field From in lower case, '' for none. */
  from: string;
  /** Of the envelope, '' for none. */
  sender: string;
  helo: string;
  remoteAddress: string;
  /** Null: the mail was not parsed. */
  keyNames: readonly string[] | null;
}

export interface SignatureKeys {
  keys: PublicKeys;
  /** Names that could not be looked up. */
  failed: string[];
}

/** Time of the DNS queries of one mail, of SPF and DMARC together with DKIM. */
const TIMEOUT_MS = 8 * SECOND;

export interface AuthenticationDeps {
  resolver: Resolver;
  hostname: string;
  /** Verifies the signatures on a thread; null: it could not, because the mail ends it or too many wait. */
  verify(found: SignatureKeys): Promise<VerifiedSignatures | null>;
}

/** Checks a mail. What DNS does not answer within 8 s is `temperror`. Never rejects because of the mail or of DNS. `owner`: for the shares of DNS queries. */
export async function authenticate(
  { resolver, hostname, verify }: AuthenticationDeps,
  mail: CheckedMail,
  owner: string,
): Promise<Authentication> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const view = createDnsView(resolver, { signal, owner });
  const spfDomain = (domainOf(mail.sender) || mail.helo).toLowerCase();
  const authorDomain = domainOf(mail.from);
  const [spf, signatures, discovery] = await Promise.all([
    checkSpf(view, mail, hostname),
    lookUpKeys(resolver, mail.keyNames ?? [], { signal, owner }).then(verify),
    authorDomain === '' ? null : discoverPolicy(view, authorDomain),
  ]);
  const results = signatures?.dkim ?? [];
  const passed = results.filter(({ status }) => status === 'pass').map(({ domain }) => domain);
  const dkim = signatures === null ? 'temperror' : summary(results.map(({ status }) => status));
  return {
    spf,
    dkim,
    dmarc: dmarcStatus(discovery, { authorDomain, spf, spfDomain, dkim, passed }),
    arc: signatures?.arc ?? 'temperror',
    spfDomain,
    dkimDomains: [...new Set(passed)],
    dmarcPolicy: discovery?.found?.policy ?? null,
  };
}

/** Whether the author's domain asks to reject a mail with these results. */
export function isForged({ dmarc, dmarcPolicy }: Authentication): boolean {
  return dmarc === 'fail' && dmarcPolicy === 'reject';
}

function dmarcStatus(
  discovery: Awaited<ReturnType<typeof discoverPolicy>> | null,
  {
    authorDomain,
    spf,
    spfDomain,
    dkim,
    passed,
  }: {
    authorDomain: string;
    spf: AuthenticationStatus;
    spfDomain: string;
    dkim: AuthenticationStatus;
    passed: readonly string[];
  },
): AuthenticationStatus {
  if (discovery === null) return 'none';
  if (discovery.unknown !== null) return 'temperror';
  if (discovery.found === null) return 'none';
  const { tags } = discovery.found.record;
  const aligned = (domain: string, mode: string | undefined) =>
    mode?.toLowerCase() === 's' ? domain === authorDomain : isAligned(domain, authorDomain);
  if (passed.some((domain) => aligned(domain, tags.get('adkim')))) return 'pass';
  const isSpfAligned = aligned(spfDomain, tags.get('aspf'));
  if (spf === 'pass' && isSpfAligned) return 'pass';
  return dkim === 'temperror' || (spf === 'temperror' && isSpfAligned) ? 'temperror' : 'fail';
}

/** The best of the results: one signature that passes is enough. */
function summary(results: readonly AuthenticationStatus[]): AuthenticationStatus {
  const order = ['pass', 'temperror', 'policy', 'neutral', 'permerror', 'fail'] as const;
  return order.find((status) => results.includes(status)) ?? 'none';
}

async function checkSpf(
  view: ReturnType<typeof createDnsView>,
  { sender, helo, remoteAddress }: CheckedMail,
  hostname: string,
): Promise<AuthenticationStatus> {
  const { spf } = await import('../domains/verification/checks/spf-library.ts');
  const { status } = await spf({
    resolver: view.resolve,
    sender: sender === '' ? `postmaster@${helo}` : sender,
    ip: remoteAddress,
    helo,
    mta: hostname,
    maxElapsedTime: TIMEOUT_MS,
  });
  return statusOf(status.result);
}

async function lookUpKeys(
  resolver: Pick<Resolver, 'txt'>,
  names: readonly string[],
  options: { signal: AbortSignal; owner: string },
): Promise<SignatureKeys> {
  const found: SignatureKeys = { keys: {}, failed: [] };
  const keys: Record<string, string[][]> = {};
  await Promise.all(
    names.map(async (name) => {
      try {
        keys[name] = (await resolver.txt(name, options)).records;
      } catch (error) {
        if (!(error instanceof DnsError || error instanceof DOMException)) throw error;
        if (!(error instanceof DnsError && (error.absent || error.code === 'EBADNAME')))
          found.failed.push(name);
      }
    }),
  );
  return { ...found, keys };
}
