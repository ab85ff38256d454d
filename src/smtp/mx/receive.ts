import { callerNetwork } from '../../accounts/caller-addresses.ts';
import { type Clock, SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { DnsError } from '../../dns/dns-error.ts';
import type { Resolver } from '../../dns/resolver.ts';
import { domainOf, organizationalDomain } from '../../mail/address.ts';
import type { AuthenticatedAuthor } from '../../mail/incoming/signatures.ts';
import type { PublicKeys } from '../../mail/incoming/verify-signatures.ts';
import { SmtpReply, tryLater } from '../reply.ts';
import type { Turn } from './fair-queue.ts';
import type { Incoming, Intake, Recipient } from './intake.ts';
import type { MailReader } from './parse-pool.ts';
import type { ReadIncoming } from './parse-worker.ts';
import type { Purpose } from './rcpt-policy.ts';
import { createReportLimits } from './report-limits.ts';

/**
 * Takes a mail from the end of DATA to its reply: limits on reports, parsing, the signature where it matters
 * who sent the mail, and what follows from it (intake.ts). Each step waits for this mail alone.
 */
export interface Receiver {
  /** For RCPT: the reply to a sender that has delivered its share of reports, else null. */
  refusal(purpose: Purpose, remoteAddress: string): SmtpReply | null;
  /** The text of the 250, given once the mail's effects are on disk; or the reply that refuses it. */
  receive(mail: ReceivedMail): Promise<string | SmtpReply>;
}

export type ReceivedMail = Omit<Incoming, 'network' | 'signer'>;

export interface ReceiverDeps {
  clock: Clock;
  log: Log;
  reader: MailReader;
  intake: Intake;
  resolver: Pick<Resolver, 'txt'>;
}

/** For the DNS queries of one mail. Without an answer the mail counts as unsigned. */
const KEY_TIMEOUT_MS = 5 * SECOND;
/** Mails whose keys are looked up at once; what is above counts as unsigned. */
const MAX_LOOKUPS = 200;
const MAX_LOOKUPS_PER_NETWORK = 10;

export function createReceiver({ clock, log, reader, intake, resolver }: ReceiverDeps): Receiver {
  const limits = createReportLimits(clock);
  const lookups = new Map<string, number>();
  let lookupsInAll = 0;

  /** Null when nobody signed it, or nobody who can be asked in time. */
  async function signerOf(
    raw: Buffer,
    keyNames: readonly string[],
    turn: Turn,
  ): Promise<AuthenticatedAuthor | null> {
    const network = turn.caller;
    const running = lookups.get(network) ?? 0;
    if (keyNames.length === 0 || running >= MAX_LOOKUPS_PER_NETWORK || lookupsInAll >= MAX_LOOKUPS)
      return null;
    lookups.set(network, running + 1);
    lookupsInAll++;
    const keys = await publicKeys(resolver, keyNames).finally(() => {
      lookupsInAll--;
      const left = (lookups.get(network) ?? 1) - 1;
      if (left === 0) lookups.delete(network);
      else lookups.set(network, left);
    });
    if (Object.keys(keys).length === 0) return null;
    const signer = await reader.read({ purpose: 'signatures', raw, keys, at: clock.now() }, turn);
    if (signer === null || !('unreadable' in signer)) return signer;
    log.warn({ reason: signer.unreadable, network }, 'DKIM signatures could not be verified');
    return null;
  }

  return {
    refusal: (purpose, remoteAddress) =>
      !('domain' in purpose) || limits.allows(networkKey(callerNetwork(remoteAddress)), reported(purpose))
        ? null
        : tooManyReports(),
    receive: async (mail) => {
      const network = callerNetwork(mail.remoteAddress);
      const domains = [
        ...new Set(
          mail.recipients.flatMap(({ purpose }) => ('domain' in purpose ? [reported(purpose)] : [])),
        ),
      ];
      if (!domains.every((domain) => limits.allows(networkKey(network), domain))) return tooManyReports();
      for (const domain of domains) limits.count(networkKey(network), domain);

      const turn = turnOf(mail.recipients, network);
      const job = { purpose: 'incoming', raw: mail.raw, opensReports: domains.length > 0 } as const;
      const read = await reader.read(job, turn);
      if (read === null)
        return new SmtpReply(451, '4.3.2', 'Too much mail is waiting; please try again later');
      if ('unreadable' in read && read.unreadable === 'stopping') return tryLater();

      const signer =
        'unreadable' in read || !dependsOnSender(mail.recipients, read)
          ? null
          : await signerOf(mail.raw, read.keyNames, turn);
      const organization = organizationKey(signer, read);
      if (!domains.every((domain) => limits.allows(organization, domain))) return tooManyReports();
      for (const domain of domains) limits.count(organization, domain);
      await intake.take({ ...mail, network, signer }, read);
      return 'OK: taken';
    },
  };
}

function tooManyReports(): SmtpReply {
  return new SmtpReply(451, '4.7.1', 'Too many reports from this sender; please try again later');
}

function reported({ domain }: { domain: string | null }): string {
  return domain ?? '';
}

function networkKey(network: string): string {
  return `network ${network}`;
}

/**
 * A name that is only claimed is counted apart from the same name with a signature: nobody can use up the share of
 * an organization that signs its reports.
 */
function organizationKey(
  signer: AuthenticatedAuthor | null,
  read: ReadIncoming | { unreadable: string },
): string {
  if (signer !== null) return `signed by ${signer.organization}`;
  if ('unreadable' in read) return 'unreadable';
  return `from ${organizationalDomain(domainOf(read.parsed.from).toLowerCase())}`;
}

/** Mail that opens reports is the costliest, and waits for all other mail, whoever else it is addressed to. */
function turnOf(recipients: readonly Recipient[], caller: string): Turn {
  const purposes = recipients.map(({ purpose }) => purpose);
  const report = purposes.find((purpose) => 'domain' in purpose);
  if (report !== undefined)
    return { priority: 'last', caller, subject: `${report.kind}@${reported(report)}` };
  const token = purposes.find((purpose) => 'messageId' in purpose);
  return token === undefined
    ? { priority: 'normal', caller, subject: purposes[0]?.kind ?? '' }
    : { priority: 'first', caller, subject: token.messageId };
}

/** A report for storage, or a complaint that may be about a message of ours. */
function dependsOnSender(recipients: readonly Recipient[], { parsed }: ReadIncoming): boolean {
  if (parsed.kind !== 'arf') return recipients.some(({ purpose }) => 'domain' in purpose);
  return parsed.postriderId !== null || recipients.some(({ purpose }) => 'messageId' in purpose);
}

/** The records that were found in time. */
async function publicKeys(resolver: Pick<Resolver, 'txt'>, names: readonly string[]): Promise<PublicKeys> {
  const signal = AbortSignal.timeout(KEY_TIMEOUT_MS);
  const found = await Promise.all(
    names.map(async (name): Promise<[string, string[][]][]> => {
      try {
        return [[name, (await resolver.txt(name, { signal })).records]];
      } catch (error) {
        // No such record, no answer, or no answer in time.
        if (error instanceof DnsError || error instanceof DOMException) return [];
        throw error;
      }
    }),
  );
  return Object.fromEntries(found.flat());
}
