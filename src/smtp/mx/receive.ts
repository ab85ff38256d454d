import { callerNetwork } from '../../accounts/caller-addresses.ts';
import { type Clock, SECOND } from '../../core/clock.ts';
import { createTally } from '../../core/concurrency/tally.ts';
import type { Log } from '../../core/log.ts';
import { DnsError } from '../../dns/dns-error.ts';
import type { Resolver } from '../../dns/resolver.ts';
import { domainOf, organizationalDomain } from '../../mail/address.ts';
import type { AuthenticatedAuthor } from '../../mail/incoming/signatures.ts';
import type { PublicKeys } from '../../mail/incoming/verify-signatures.ts';
import type { MailParser } from '../parser/mail-parser.ts';
import type { JobOrigin } from '../parser/parse-queue.ts';
import type { IncomingResult } from '../parser/thread.ts';
import { SmtpRejection, tryLater } from '../reply.ts';
import type { IncomingMail, IncomingRecipient, Intake } from './intake.ts';
import type { Purpose } from './rcpt-policy.ts';
import { createReportLimits } from './report-limits.ts';

/**
 * Processes a mail from the end of DATA to its reply: limits on reports, parsing, verification of signatures where the
 * sender has an effect, and the effects of the mail (intake.ts).
 */
export interface MailReceiver {
  /** For RCPT: the rejection of a sender above its limit of reports, else null. */
  rejection(purpose: Purpose, remoteAddress: string): SmtpRejection | null;
  /** Resolves with the text of the 250 when the mail's effects are durable, or with a rejection. */
  receive(mail: ReceivedMail): Promise<string | SmtpRejection>;
}

export type ReceivedMail = Omit<IncomingMail, 'network' | 'signer'>;

export interface MailReceiverDeps {
  clock: Clock;
  log: Log;
  parser: MailParser;
  intake: Intake;
  resolver: Pick<Resolver, 'txt'>;
}

/** Timeout of the DNS queries of one mail. Without an answer the mail counts as unsigned. */
const KEY_TIMEOUT_MS = 5 * SECOND;
/** Mails whose keys are queried concurrently; a mail above the limit counts as unsigned. */
const MAX_LOOKUPS = 200;
const MAX_LOOKUPS_PER_NETWORK = 10;

/**
 * The counts of reports and the lookups in progress are in memory. Keys of at most 200 mails are looked up at a time,
 * 10 of one network, for up to 5 s each; other mails count as unsigned.
 */
export function createMailReceiver({ clock, log, parser, intake, resolver }: MailReceiverDeps): MailReceiver {
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
    lookups.add(network, 1);
    const keys = await publicKeys(resolver, keyNames, `mail from ${network}`).finally(() =>
      lookups.add(network, -1),
    );
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
    rejection: (purpose, remoteAddress) =>
      !('domain' in purpose) || limits.allows(networkKey(callerNetwork(remoteAddress)), reportDomain(purpose))
        ? null
        : tooManyReports(),
    receive: async (mail) => {
      const network = callerNetwork(mail.remoteAddress);
      const domains = [
        ...new Set(
          mail.recipients.flatMap(({ purpose }) => ('domain' in purpose ? [reportDomain(purpose)] : [])),
        ),
      ];
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
      await intake.apply({ ...mail, network, signer }, outcome);
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
  return parsed.postriderId !== null || recipients.some(({ purpose }) => 'messageId' in purpose);
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
