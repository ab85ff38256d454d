import { iso } from '../core/clock.ts';
import type { ExpiryClock } from '../core/expiry-clock.ts';
import type { Ids } from '../core/ids.ts';
import { countAccepted, countCampaignQueued } from '../events/counts.ts';
import type { Recorder } from '../events/record.ts';
import { domainOf } from '../mail/address.ts';
import type { Mailbox, MessageContent } from '../mail/content.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import type { PackedContent } from '../mail/stored-content.ts';
import type { Stream } from '../store/domains/domains.ts';
import type { NewMessage, Role } from '../store/messages/messages.ts';
import {
  type Lease,
  MARKETING_PRIORITY,
  type MailToLease,
  type QueuePriority,
  type ReadyMessage,
  TRANSACTIONAL_PRIORITY,
  toNewReady,
} from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import { type Checked, isExempt, type Sender, type SkippedRecipient, sendingObstacle } from './checks.ts';
import type { StorableContent } from './encode.ts';
import type { Rendered } from './render/render.ts';
import type { ParsedSend, Recipient } from './request.ts';

/*
 * The response and the rows of an accepted send. Each recipient has a separate message. Transactional copies share one
 * content with its To and Cc fields and its Message-ID; marketing copies are addressed to one recipient each and have
 * separate contents.
 */

/** The response to a transactional send. */
export interface TransactionalResult {
  message: string;
  messageId: string;
  from: string;
  totalRecipients: number;
  recipients: (ResultRecipient<'sent' | 'scheduled'> | RefusedRecipient)[];
  status: 'sent' | 'scheduled';
  /** ISO 8601; present if it is in the future. */
  scheduledAt?: string;
}

export interface MarketingResult {
  message: string;
  jobId: string;
  status: 'queued';
  from: string;
  totalRecipients: number;
  recipients: (ResultRecipient<'queued'> | RefusedRecipient)[];
}

export type SendResult = TransactionalResult | MarketingResult;

interface ResultRecipient<Status> {
  email: string;
  status: Status;
  role: string;
  messageId: string;
}

/** A recipient that was skipped. */
interface RefusedRecipient {
  email: string;
  status: 'refused';
  role: string;
  messageId?: undefined;
  code: string;
  reason: string;
}

interface Copy {
  recipient: Recipient;
  messageId: string;
  /** Index into the contents of the draft. */
  content: number;
}

/** Refers to no text of the message: it waits for the commit, and texts may have megabytes. */
export interface Draft {
  sender: Sender;
  send: Pick<
    ParsedSend,
    'campaignId' | 'groupId' | 'from' | 'trackClicks' | 'trackOpens' | 'essential' | 'labels'
  >;
  subject: string;
  domain: Checked['domain'];
  copies: Copy[];
  jobId: string | null;
  data: SendResult;
  /** Epoch ms of the acceptance. */
  now: number;
  /** Epoch ms of the first attempt. */
  dueAt: number;
}

export const PRIORITY_OF_STREAM: Record<Stream, QueuePriority> = {
  tx: TRANSACTIONAL_PRIORITY,
  mk: MARKETING_PRIORITY,
};

/**
 * Assigns the ids of copies and job and builds the response; stores nothing. The contents are separate, so that the
 * draft does not keep them in memory. `now`: epoch ms, the Date of the mail. `skipped`: recipients that are only in the response.
 */
export function createDraft(
  sender: Sender,
  send: ParsedSend,
  { domain, rendered, inOtherLanguages, list }: Checked,
  ids: Ids,
  now: number,
  skipped: readonly SkippedRecipient[] = [],
): { draft: Draft; contents: MessageContent[] } {
  const isSeparate = sender.useCase === 'mk';
  const copies = send.recipients.map(
    (recipient, index): Copy => ({ recipient, messageId: ids.make('msg'), content: isSeparate ? index : 0 }),
  );
  const content = (
    messageId: string,
    to: Mailbox[],
    cc: Mailbox[],
    { subject, html, text }: Rendered = rendered,
  ): MessageContent => ({
    subject,
    html,
    text,
    from: send.from,
    to,
    cc,
    replyTo: send.replyTo,
    headers: send.headers,
    attachments: send.attachments,
    messageId: send.messageId ?? `${messageId}@${send.fromDomain}`,
    date: now,
    ...(send.alternatives.length === 0 ? {} : { alternatives: send.alternatives }),
    ...(list === null ? {} : { list }),
  });
  const withRole = (role: Role) =>
    send.recipients.filter((recipient) => recipient.role === role).map(({ mailbox }) => mailbox);
  const displayed = send.displayed ?? { to: withRole('to'), cc: withRole('cc') };
  const contents = isSeparate
    ? copies.map(({ messageId, recipient }) =>
        content(messageId, [recipient.mailbox], [], inOtherLanguages.get(recipient)),
      )
    : [content(copies[0]?.messageId ?? ids.make('msg'), displayed.to, displayed.cc)];
  const jobId = isSeparate ? ids.make('job') : null;
  const dueAt = Math.max(now, send.scheduledAt ?? now);
  const data =
    jobId === null
      ? transactionalResult(send, copies, skipped, dueAt > now ? dueAt : null)
      : marketingResult(send, copies, skipped, jobId, dueAt > now);
  const { campaignId, groupId, from, trackClicks, trackOpens, labels } = send;
  const essential = isExempt(sender, send);
  const fields = { campaignId, groupId, from, trackClicks, trackOpens, essential, labels };
  const { subject } = rendered;
  return { draft: { sender, send: fields, subject, domain, copies, jobId, data, now, dueAt }, contents };
}

/** `scheduledAt`: epoch ms; null: now. */
function transactionalResult(
  send: ParsedSend,
  copies: Copy[],
  skipped: readonly SkippedRecipient[],
  scheduledAt: number | null,
): TransactionalResult {
  const status = scheduledAt === null ? 'sent' : 'scheduled';
  return {
    message: `${copies.length === 1 ? 'Email' : `Emails to ${copies.length} recipients`} ${
      scheduledAt === null ? 'accepted for delivery' : 'scheduled'
    }`,
    messageId: copies[0]?.messageId ?? '',
    from: send.fromAsGiven,
    totalRecipients: copies.length + skipped.length,
    recipients: resultRecipients(copies, skipped, status),
    status,
    ...(scheduledAt === null ? {} : { scheduledAt: iso(scheduledAt) }),
  };
}

function resultRecipients<Status extends string>(
  copies: readonly Copy[],
  skipped: readonly SkippedRecipient[],
  status: Status,
): (ResultRecipient<Status> | RefusedRecipient)[] {
  return [
    ...copies.map(({ recipient, messageId }) => ({
      email: recipient.mailbox.address,
      status,
      role: recipient.role,
      messageId,
    })),
    ...skipped.map(
      ({ mailbox, role, code, reason }): RefusedRecipient => ({
        email: mailbox.address,
        status: 'refused',
        role,
        code,
        reason,
      }),
    ),
  ];
}

function marketingResult(
  send: ParsedSend,
  copies: Copy[],
  skipped: readonly SkippedRecipient[],
  jobId: string,
  isScheduled: boolean,
): MarketingResult {
  return {
    message: `${copies.length === 1 ? 'Email' : `Emails to ${copies.length} recipients`} ${isScheduled ? 'scheduled' : 'queued'}`,
    jobId,
    status: 'queued',
    from: send.fromAsGiven,
    totalRecipients: copies.length + skipped.length,
    recipients: resultRecipients(copies, skipped, 'queued'),
  };
}

export interface StoreOptions {
  simulatorDomain: string;
  /** Ms after which a message expires, by stream. */
  expire: Record<Stream, number>;
  expiry: Pick<ExpiryClock, 'acceptedAt'>;
}

/** A message that was inserted with a lease: delivery begins when it is given the message, after the commit. */
export interface LeasedMessage {
  message: ReadyMessage;
  content: PackedContent;
}

/** The lease for each message that can be sent as soon as it is stored; null: it waits in the queue. */
export type LeaseNow = (mail: readonly MailToLease[]) => readonly (Lease | null)[];

/** What became of the messages of a draft. */
export interface StoredDraft {
  firstSeq: number;
  leased: readonly LeasedMessage[];
  /** Destinations with messages that wait in the queue and are due. */
  waiting: ReadonlySet<string>;
}

/** A message whose content is stored, with its place in the queue. */
export interface NewMail {
  accountId: string;
  useCase: Stream;
  domainId: string;
  jobId: string | null;
  campaignId: string | null;
  /** Internal number of a campaign that is sent to a group; else null. */
  campaignSeq: number | null;
  groupId: string | null;
  from: string;
  recipient: Recipient;
  messageId: string;
  contentId: number;
  /** Bytes of the content. */
  contentBytes: number;
  subject: string;
  trackClicks: boolean;
  trackOpens: boolean;
  essential: boolean;
  /** Tags and metadata in their stored form; null: none. */
  labels: string | null;
  /** The message is simulated even if its recipient is not. */
  isSimulation: boolean;
  /** Epoch ms of the acceptance. */
  now: number;
  /** Epoch ms of the first attempt. */
  dueAt: number;
}

/**
 * Inserts a message and its queue row, in a unit of work. `lease`: it is due and not simulated, and is inserted as being sent
 * if it may be sent. Returns it if it was: the caller records `email_sent`; null: it waits in the queue.
 */
export function storeMessage(
  tables: Tables,
  mail: NewMail,
  options: StoreOptions,
  lease: Lease | null = null,
): { seq: number; leased: ReadyMessage | null } {
  const { accountId, useCase, domainId, now, dueAt } = mail;
  const { address } = mail.recipient.mailbox;
  const destination = domainOf(address);
  const simulated = mail.isSimulation || isSimulated(address, options);
  const priority = PRIORITY_OF_STREAM[useCase];
  const isDue = dueAt <= now;
  const row: NewMessage = {
    message_id: mail.messageId,
    account_id: accountId,
    content_id: mail.contentId,
    use_case: useCase,
    domain_id: domainId,
    job_id: mail.jobId,
    campaign_id: mail.campaignId,
    subscription_group_id: mail.groupId,
    from_address: mail.from,
    recipient: address,
    recipient_hash: emailIdentifier(address),
    role: mail.recipient.role,
    subject: mail.subject,
    simulated: simulated ? 1 : 0,
    track_clicks: mail.trackClicks ? 1 : 0,
    track_opens: mail.trackOpens ? 1 : 0,
    essential: mail.essential ? 1 : 0,
    labels: mail.labels,
    created_at: now,
    // A date that the sender chose does not move with the clock.
    expires_at: (isDue ? options.expiry.acceptedAt() : dueAt) + options.expire[useCase],
  };
  const ready =
    lease === null
      ? null
      : toNewReady(row, { seq: 0, destination, priority, due_at: dueAt }, mail.contentBytes);
  const granted = ready !== null && isSendable(tables, ready) ? lease : null;
  const seq = tables.messages.insert(row, granted?.at);
  tables.queue.insert({
    seq,
    priority,
    account_id: accountId,
    domain_id: domainId,
    destination,
    due_at: dueAt,
    ready: isDue ? 1 : 0,
    lease: granted?.generation ?? null,
    campaign_seq: mail.campaignSeq,
    scheduled_at: isDue ? null : dueAt,
  });
  if (ready !== null) ready.seq = seq;
  if (!simulated)
    countAccepted(tables, { accountId, domainId, stream: useCase, destination, labels: mail.labels }, now);
  return { seq, leased: granted === null ? null : ready };
}

/** False also when that cannot be read: the message waits in the queue, and the error is logged when it is read from there. */
function isSendable(tables: Tables, message: ReadyMessage): boolean {
  try {
    return sendingObstacle(tables, message) === null;
  } catch {
    return false;
  }
}

/** Whether mail to the address is simulated: it is not sent and counts in no statistics. */
export function isSimulated(address: string, { simulatorDomain }: Pick<StoreOptions, 'simulatorDomain'>) {
  return domainOf(address) === simulatorDomain;
}

/** The number of messages that are not simulated. */
function countedCopies({ sender, copies }: Draft, options: Pick<StoreOptions, 'simulatorDomain'>): number {
  if (sender.isSimulation === true) return 0;
  return copies.filter(({ recipient }) => !isSimulated(recipient.mailbox.address, options)).length;
}

/** The leases for the messages of a draft, in the order of its copies. Reserves nothing: ask before the unit of work. */
export function leasesFor(
  { sender, domain, copies, now, dueAt }: Draft,
  contents: readonly StorableContent[],
  options: StoreOptions,
  leaseNow: LeaseNow,
): readonly (Lease | null)[] {
  const { useCase } = sender;
  const mail = copies.map(({ recipient: { mailbox }, content }): MailToLease => {
    const { size = 0, shared } = contents[content] ?? {};
    return {
      account_id: sender.account.account_id,
      domain_id: domain.domain_id,
      use_case: useCase,
      priority: PRIORITY_OF_STREAM[useCase],
      destination: domainOf(mailbox.address),
      content_bytes: size + (shared?.packed.size ?? 0),
    };
  });
  const isSimulation =
    sender.isSimulation === true ||
    copies.some(({ recipient }) => isSimulated(recipient.mailbox.address, options));
  return dueAt > now || isSimulation ? mail.map(() => null) : leaseNow(mail);
}

/**
 * Inserts the contents that `encodeContents` returned, and a message with a queue row for each copy, in a unit of work.
 * `leases`: see `leasesFor`.
 */
export function storeDraft(
  tables: Tables,
  draft: Draft,
  contents: readonly StorableContent[],
  options: StoreOptions & { recorder: Pick<Recorder, 'sent'> },
  leases: readonly (Lease | null)[],
): StoredDraft {
  const { sender, send, domain, jobId, now, dueAt } = draft;
  const { account_id: accountId } = sender.account;
  const stored = contents.map((content) => withShared(tables, content, accountId, now));
  const contentIds = stored.map((content) => tables.messages.insertContent(content, now, accountId));
  const waiting = new Set<string>();
  const leasedMessages: LeasedMessage[] = [];
  let firstSeq = 0;
  for (const [index, { recipient, messageId, content }] of draft.copies.entries()) {
    const packed = stored[content];
    const lease = leases[index] ?? null;
    const { seq, leased } = storeMessage(
      tables,
      {
        accountId: sender.account.account_id,
        useCase: sender.useCase,
        domainId: domain.domain_id,
        jobId,
        campaignId: send.campaignId,
        campaignSeq: null,
        groupId: send.groupId,
        from: send.from.address,
        recipient,
        messageId,
        contentId: contentIds[content] ?? 0,
        contentBytes: packed?.size ?? 0,
        subject: draft.subject,
        trackClicks: send.trackClicks,
        trackOpens: send.trackOpens,
        essential: send.essential,
        labels: send.labels,
        isSimulation: sender.isSimulation === true,
        now,
        dueAt,
      },
      options,
      lease,
    );
    if (firstSeq === 0) firstSeq = seq;
    if (leased !== null && lease !== null && packed !== undefined) {
      options.recorder.sent(tables, leased, lease.at);
      leasedMessages.push({ message: leased, content: packed });
    } else if (dueAt <= now) waiting.add(domainOf(recipient.mailbox.address));
  }
  if (send.campaignId !== null)
    countCampaignQueued(tables, send.campaignId, countedCopies(draft, options), now);
  return { firstSeq, leased: leasedMessages, waiting };
}

/** The content with its reference to the texts that it shares; its size is that of both parts. */
function withShared(
  tables: Tables,
  { shared, ...content }: StorableContent,
  accountId: string,
  now: number,
): PackedContent {
  if (shared === undefined) return content;
  const { packed, digest } = shared;
  const sharedId = tables.sharedContents.referToTemplated({ digest, accountId }, packed, now);
  return { ...content, size: content.size + packed.size, sharedId };
}
