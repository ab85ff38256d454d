import { callerNetwork } from '../../accounts/caller-addresses.ts';
import { type Clock, DAY, HOUR, SECOND } from '../../core/clock.ts';
import { createTally } from '../../core/concurrency/tally.ts';
import { createLru } from '../../core/lru.ts';
import type { Runtime } from '../../core/runtime.ts';
import { DnsError } from '../../dns/dns-error.ts';
import type { Resolver } from '../../dns/resolver.ts';
import { domainOf, organizationalDomain } from '../../mail/address.ts';
import type { AuthenticatedAuthor, PublicKeys } from '../../mail/incoming/signatures.ts';
import type { MailParser } from '../parser/mail-parser.ts';
import type { JobOrigin } from '../parser/parse-queue.ts';
import type { IncomingResult } from '../parser/thread.ts';
import { SmtpRejection, tryLater } from '../reply.ts';
import type { ApplyMail, IncomingMail, IncomingRecipient } from './intake.ts';
import type { Purpose } from './rcpt-policy.ts';

type ReceivedMail = Omit<IncomingMail, 'network' | 'signer'>;

/** Timeout of the DNS queries of one mail. Without an answer the mail counts as unsigned. */
const KEY_TIMEOUT_MS = 5 * SECOND;
/** Mails whose keys are queried concurrently; a mail above the limit counts as unsigned. */
const MAX_LOOKUPS = 200;
const MAX_LOOKUPS_PER_NETWORK = 10;

/**
 * Processes a mail from the end of DATA to its reply: limits on reports, parsing, verification of signatures where the
 * sender has an effect, and the effects of the mail (intake.ts). Keys of at most 200 mails are looked up at a time, 10 of
 * one network, for up to 5 s each; other mails count as unsigned.
 */
export function createMailReceiver(
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  {
    parser,
    applyMail,
    resolver,
  }: { parser: MailParser; applyMail: ApplyMail; resolver: Pick<Resolver, 'txt'> },
) {
  const limits = createReportLimits(clock);
  const lookups = createTally();

  /**
   * The verified signer of a mail; null when it is not signed, or its keys are not available in time. `stopping`: the
   * signatures were not verified because the listener closes.
   */
  async function signerOf(
    raw: Buffer,
    keyNames: readonly string[],
    { origin, isTlsReport }: { origin: JobOrigin; isTlsReport: boolean },
  ): Promise<AuthenticatedAuthor | 'stopping' | null> {
    const network = origin.caller;
    const isFull = lookups.of(network) >= MAX_LOOKUPS_PER_NETWORK || lookups.total >= MAX_LOOKUPS;
    if (keyNames.length === 0 || isFull) return null;
    const end = lookups.hold(network);
    const keys = await publicKeys(resolver, keyNames, `mail from ${network}`).finally(end);
    if (Object.keys(keys).length === 0) return null;
    const usable = isTlsReport ? withoutServiceType(keys) : keys;
    const job = { purpose: 'signatures', raw, keys: usable, at: clock.now() } as const;
    const signer = await parser.parse(job, origin);
    if (signer === null || !('unreadable' in signer)) return signer;
    if (signer.unreadable === 'stopping') return 'stopping';
    log.warn({ reason: signer.unreadable, network }, 'DKIM signatures could not be verified');
    return null;
  }

  return {
    /** For RCPT: the rejection of a sender above its limit of reports, else null. */
    rejection: (purpose: Purpose, remoteAddress: string): SmtpRejection | null =>
      !('domain' in purpose) || limits.allows(networkKey(callerNetwork(remoteAddress)), reportDomain(purpose))
        ? null
        : tooManyReports(),
    /** Resolves with the text of the 250 when the mail's effects are durable, or with a rejection. */
    receive: async (mail: ReceivedMail): Promise<string | SmtpRejection> => {
      const network = callerNetwork(mail.remoteAddress);
      const named = mail.recipients.flatMap(({ purpose }) =>
        'domain' in purpose ? [reportDomain(purpose)] : [],
      );
      const domains = [...new Set(named)];
      if (!domains.every((domain) => limits.allows(networkKey(network), domain))) return tooManyReports();
      for (const domain of domains) limits.count(networkKey(network), domain);

      const origin = originOf(mail.recipients, network);
      const job = { purpose: 'incoming', raw: mail.raw, opensReports: domains.length > 0 } as const;
      const outcome = await parser.parse(job, origin);
      if (outcome === null)
        return new SmtpRejection(451, '4.3.2', 'Too much mail is waiting; please try again later');
      if ('unreadable' in outcome && outcome.unreadable === 'stopping') return tryLater();

      const signer =
        'unreadable' in outcome || !dependsOnSigner(mail.recipients, outcome)
          ? null
          : await signerOf(mail.raw, outcome.keyNames, {
              origin,
              isTlsReport: mail.recipients.some(({ purpose }) => purpose.kind === 'tlsrpt'),
            });
      // Applied as unsigned, the mail would lose its effect: the repetition that the client sends later is a duplicate.
      if (signer === 'stopping') return tryLater();
      const organization = organizationKey(signer, outcome);
      if (!domains.every((domain) => limits.allows(organization, domain))) return tooManyReports();
      for (const domain of domains) limits.count(organization, domain);
      await applyMail({ ...mail, network, signer }, outcome);
      return 'OK: accepted';
    },
  };
}

function tooManyReports(): SmtpRejection {
  return new SmtpRejection(451, '4.7.1', 'Too many reports from this sender; please try again later');
}

function reportDomain({ domain }: { domain: string | null }): string {
  return domain ?? '';
}

function networkKey(network: string): string {
  return `network ${network}`;
}

/**
 * An unsigned From domain is counted separately from the same domain with a signature, so that no other sender can use
 * up the limit of an organization that signs its reports.
 */
function organizationKey(
  signer: AuthenticatedAuthor | null,
  outcome: IncomingResult | { unreadable: string },
): string {
  if (signer !== null) return `signed by ${signer.organization}`;
  if ('unreadable' in outcome) return 'unreadable';
  return `from ${organizationalDomain(domainOf(outcome.parsed.from).toLowerCase())}`;
}

/** Mail with reports is the costliest and comes after all other mail, whatever its other recipients are. */
function originOf(recipients: readonly IncomingRecipient[], caller: string): JobOrigin {
  const purposes = recipients.map(({ purpose }) => purpose);
  const report = purposes.find((purpose) => 'domain' in purpose);
  if (report !== undefined)
    return { priority: 'last', caller, subject: `${report.kind}@${reportDomain(report)}` };
  const token = purposes.find((purpose) => 'messageId' in purpose);
  return token === undefined
    ? { priority: 'normal', caller, subject: purposes[0]?.kind ?? '' }
    : { priority: 'first', caller, subject: token.messageId };
}

/** Whether the signer matters: for reports to store, and for complaints that may be about one of our messages. */
function dependsOnSigner(recipients: readonly IncomingRecipient[], { parsed }: IncomingResult): boolean {
  if (parsed.kind !== 'arf') return recipients.some(({ purpose }) => 'domain' in purpose);
  if (parsed.postriderId !== null || parsed.feedbackId !== null) return true;
  return recipients.some(({ purpose }) => 'messageId' in purpose);
}

/** Keys that sign TLS reports only have the service type `tlsrpt` (RFC 8460 §3), which is none for other mail. */
function withoutServiceType(keys: PublicKeys): PublicKeys {
  const isTlsrpt = (tag: string) => /^\s*s\s*=/.test(tag) && tag.includes('tlsrpt');
  const kept = (record: readonly string[]) =>
    record
      .join('')
      .split(';')
      .filter((tag) => !isTlsrpt(tag))
      .join(';');
  return Object.fromEntries(
    Object.entries(keys).map(([name, records]) => [name, records.map((record) => [kept(record)])]),
  );
}

/** The records that were found within the timeout. */
async function publicKeys(
  resolver: Pick<Resolver, 'txt'>,
  names: readonly string[],
  owner: string,
): Promise<PublicKeys> {
  const signal = AbortSignal.timeout(KEY_TIMEOUT_MS);
  const found = await Promise.all(
    names.map(async (name): Promise<[string, string[][]][]> => {
      try {
        return [[name, (await resolver.txt(name, { signal, owner })).records]];
      } catch (error) {
        // No such record, no answer, or a timeout.
        if (error instanceof DnsError || error instanceof DOMException) return [];
        throw error;
      }
    }),
  );
  return Object.fromEntries(found.flat());
}

interface Limit {
  hour: number;
  day: number;
}

/** Reports of one sender on one domain. */
export const REPORTS_ON_DOMAIN: Limit = { hour: 60, day: 300 };
/** Reports of one sender on all domains. */
export const REPORTS_TOTAL: Limit = { hour: 3000, day: 30_000 };

/** Above this, the least recently counted sender is forgotten: its count begins at zero, so no report is refused for it. */
const MAX_COUNTERS = 40_000;

/**
 * Limits the reports that one sender delivers to `dmarc@` and `tlsrpt@`. Receivers send one report per domain and
 * day, a few send one per hour: the limits are far above that and far below what would displace other reporters. A
 * sender above its limit receives a 451, so that a genuine report is delayed and not lost. All counts are in memory:
 * 40,000 counters, each of an hour or a day of UTC.
 */
export function createReportLimits(clock: Clock) {
  const counts = createLru<{ reports: number }>(MAX_COUNTERS);

  function countersOf(sender: string, domain: string): { key: string; max: number }[] {
    const now = clock.now();
    const ofHour = `hour ${Math.floor(now / HOUR)}`;
    const ofDay = `day ${Math.floor(now / DAY)}`;
    return [
      { key: JSON.stringify([ofHour, sender, domain]), max: REPORTS_ON_DOMAIN.hour },
      { key: JSON.stringify([ofDay, sender, domain]), max: REPORTS_ON_DOMAIN.day },
      { key: JSON.stringify([ofHour, sender]), max: REPORTS_TOTAL.hour },
      { key: JSON.stringify([ofDay, sender]), max: REPORTS_TOTAL.day },
    ];
  }

  return {
    /** Whether this sender may deliver another report on `domain` now. */
    allows: (sender: string, domain: string): boolean =>
      countersOf(sender, domain).every(({ key, max }) => (counts.get(key)?.reports ?? 0) < max),
    /** Counts an accepted report. */
    count: (sender: string, domain: string): void => {
      for (const { key } of countersOf(sender, domain))
        counts.set(key, { reports: (counts.get(key)?.reports ?? 0) + 1 });
    },
  };
}
