import type { Ids } from '../core/ids.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { inSlices, type Work } from '../core/slices.ts';
import { countQueued } from '../events/campaign-counts.ts';
import { domainOf } from '../mail/address.ts';
import type { MessageContent } from '../mail/content.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import { type PackedContent, packContent, packLongContent, plainContent } from '../mail/stored-content.ts';
import type { UseCase } from '../store/domains/domains.ts';
import { MARKETING_PRIORITY, type QueuePriority, TRANSACTIONAL_PRIORITY } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { Checked, Sender } from './checks.ts';
import type { ParsedSend, Recipient } from './request.ts';

/**
 * An accepted send on its way to the disk: what is answered, and the rows. Every recipient is a message of its
 * own. Transactional copies share one content, and with it the To and Cc fields and the Message-ID; marketing
 * copies are each addressed to their recipient alone, so each has its own.
 */
export interface TransactionalResult {
  message: string;
  messageId: string;
  from: string;
  totalRecipients: number;
  recipients: ResultRecipient<'sent'>[];
  status: 'sent';
}

export interface MarketingResult {
  message: string;
  jobId: string;
  status: 'queued';
  from: string;
  totalRecipients: number;
  recipients: ResultRecipient<'queued'>[];
}

export type SendResult = TransactionalResult | MarketingResult;

interface ResultRecipient<Status> {
  email: string;
  status: Status;
  role: string;
  messageId: string;
}

interface Copy {
  recipient: Recipient;
  messageId: string;
  /** Which of the contents is its. */
  content: number;
}

export interface Draft {
  sender: Sender;
  send: ParsedSend;
  domain: Checked['domain'];
  contents: MessageContent[];
  copies: Copy[];
  jobId: string | null;
  data: SendResult;
  /** Epoch ms: accepted, and to be sent. */
  now: number;
  dueAt: number;
}

export const PRIORITIES: Record<UseCase, QueuePriority> = {
  tx: TRANSACTIONAL_PRIORITY,
  mk: MARKETING_PRIORITY,
};

export function makeDraft(
  sender: Sender,
  send: ParsedSend,
  { domain, rendered, list }: Checked,
  ids: Ids,
  now: number,
): Draft {
  const alone = sender.useCase === 'mk';
  const copies = send.recipients.map(
    (recipient, index): Copy => ({ recipient, messageId: ids.make('msg'), content: alone ? index : 0 }),
  );
  const content = (messageId: string, to: Recipient[], cc: Recipient[]): MessageContent => ({
    ...rendered,
    from: send.from,
    to: to.map(({ mailbox }) => mailbox),
    cc: cc.map(({ mailbox }) => mailbox),
    replyTo: send.replyTo,
    headers: send.headers,
    attachments: send.attachments,
    ...(send.alternatives.length === 0 ? {} : { alternatives: send.alternatives }),
    ...(list === null ? {} : { list }),
    messageId: send.messageId ?? `${messageId}@${send.fromDomain}`,
    date: now,
  });
  const having = (role: string) => send.recipients.filter((recipient) => recipient.role === role);
  const contents = alone
    ? copies.map(({ messageId, recipient }) => content(messageId, [recipient], []))
    : [content(copies[0]?.messageId ?? ids.make('msg'), having('to'), having('cc'))];
  const jobId = alone ? ids.make('job') : null;
  const dueAt = Math.max(now, send.scheduledAt ?? now);
  const data =
    jobId === null ? transactionalResult(send, copies) : marketingResult(send, copies, jobId, dueAt > now);
  return { sender, send, domain, contents, copies, jobId, data, now, dueAt };
}

function transactionalResult(send: ParsedSend, copies: Copy[]): TransactionalResult {
  return {
    message:
      copies.length === 1
        ? 'Email accepted for delivery'
        : `Emails to ${copies.length} recipients accepted for delivery`,
    messageId: copies[0]?.messageId ?? '',
    from: send.fromAsGiven,
    totalRecipients: copies.length,
    recipients: copies.map(({ recipient, messageId }) => ({
      email: recipient.mailbox.address,
      status: 'sent',
      role: recipient.role,
      messageId,
    })),
    status: 'sent',
  };
}

function marketingResult(send: ParsedSend, copies: Copy[], jobId: string, later: boolean): MarketingResult {
  return {
    message: `${copies.length === 1 ? 'Email' : `Emails to ${copies.length} recipients`} ${later ? 'scheduled' : 'queued'}`,
    jobId,
    status: 'queued',
    from: send.fromAsGiven,
    totalRecipients: copies.length,
    recipients: copies.map(({ recipient, messageId }) => ({
      email: recipient.mailbox.address,
      status: 'queued',
      role: recipient.role,
      messageId,
    })),
  };
}

export interface StoreSettings {
  simulatorDomain: string;
  /** How long a message is tried, ms. */
  expire: Record<UseCase, number>;
}

/** A message with its content, and what decides where it stands in the queue. */
export interface NewMail {
  accountId: string;
  useCase: UseCase;
  domainId: string;
  jobId: string | null;
  campaignId: string | null;
  /** Of a campaign that goes to a whole group. */
  campaignSeq: number | null;
  groupId: string | null;
  from: string;
  recipient: Recipient;
  messageId: string;
  contentId: number;
  subject: string;
  trackClicks: boolean;
  trackOpens: boolean;
  essential: boolean;
  /** Epoch ms: accepted, and to be sent. */
  now: number;
  dueAt: number;
}

/** In a unit of work: a message and its queue row. Returns its seq. */
export function storeMessage(tables: Tables, mail: NewMail, settings: StoreSettings): number {
  const { accountId, useCase, domainId, now, dueAt } = mail;
  const { address } = mail.recipient.mailbox;
  const destination = domainOf(address);
  const seq = tables.messages.insert({
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
    simulated: isSimulated(address, settings) ? 1 : 0,
    track_clicks: mail.trackClicks ? 1 : 0,
    track_opens: mail.trackOpens ? 1 : 0,
    essential: mail.essential ? 1 : 0,
    created_at: now,
    expires_at: dueAt + settings.expire[useCase],
  });
  tables.queue.insert({
    seq,
    priority: PRIORITIES[useCase],
    account_id: accountId,
    domain_id: domainId,
    destination,
    due_at: dueAt,
    ready: dueAt <= now ? 1 : 0,
    lease: null,
    campaign_seq: mail.campaignSeq,
  });
  return seq;
}

/** Simulated mail leaves nothing and counts nowhere. */
export function isSimulated(address: string, { simulatorDomain }: Pick<StoreSettings, 'simulatorDomain'>) {
  return domainOf(address) === simulatorDomain;
}

/** How many messages of a draft count: all but simulated ones. */
export function countedCopies({ copies }: Draft, settings: Pick<StoreSettings, 'simulatorDomain'>): number {
  return copies.filter(({ recipient }) => !isSimulated(recipient.mailbox.address, settings)).length;
}

/** Characters of all contents of a request as JSON, which are written in one unit of work. */
const MAX_STORED = 16 * 1024 * 1024;
/** Characters of one string that are encoded between two yields. */
const CHARACTERS_PER_STEP = 64 * 1024;

/** A draft's contents as they are stored; a refusal when they are too large together. */
export async function encodeContents(draft: Draft): Promise<PackedContent[] | Refusal> {
  const isDeflated = isWorthDeflating(draft);
  const packed = await inSlices(
    encodingContents(draft, isDeflated ? packContent : plainContent),
    draft.sender.account.account_id,
  );
  if (isRefusal(packed) || !isDeflated) return packed;
  const all: PackedContent[] = [];
  for (const content of packed) all.push(await packLongContent(content));
  return all;
}

/** Attachments are mostly compressed already: deflate would take long and save little more than base64 costs. */
function isWorthDeflating({ contents: [content] }: Draft): boolean {
  if (content === undefined) return false;
  const { html, text, attachments, alternatives = [] } = content;
  const encoded = [...attachments, ...alternatives].reduce((sum, part) => sum + part.content.length, 0);
  return encoded <= html.length + (text?.length ?? 0);
}

/** In steps. */
function* encodingContents(
  { contents }: Draft,
  pack: (json: string) => PackedContent,
): Work<PackedContent[] | Refusal> {
  /** Of strings that are long, and often the same in all contents. */
  const encoded = new Map<string, string>();
  function* encoding(text: string): Work<string> {
    const known = encoded.get(text) ?? (yield* encodingString(text));
    encoded.set(text, known);
    return known;
  }
  const packed: PackedContent[] = [];
  let size = 0;
  for (const content of contents) {
    const { html, text, ...rest } = content;
    let body: string;
    if (html.length + (text?.length ?? 0) <= CHARACTERS_PER_STEP) body = JSON.stringify(content);
    else {
      const long = `"html":${yield* encoding(html)},"text":${text === null ? 'null' : yield* encoding(text)}`;
      body = `${JSON.stringify(rest).slice(0, -1)},${long}}`;
    }
    size += body.length;
    if (size > MAX_STORED) {
      const message = `the message is too large: all its copies together may have ${MAX_STORED} characters`;
      return refuse('PAYLOAD_TOO_LARGE', message);
    }
    packed.push(pack(body));
    yield;
  }
  return packed;
}

/** JSON of a string, in steps. */
export function* encodingString(text: string): Work<string> {
  if (text.length <= CHARACTERS_PER_STEP) return JSON.stringify(text);
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    let end = at + CHARACTERS_PER_STEP;
    // Both halves of a character stay together: one alone would be escaped.
    if (isHighSurrogate(text.charCodeAt(end - 1))) end++;
    pieces.push(JSON.stringify(text.slice(at, end)).slice(1, -1));
    at = end;
    yield;
  }
  return `"${pieces.join('')}"`;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/**
 * In a unit of work: the contents as `encodeContents` returned them, and a message and a queue row for each copy.
 * Returns the first one's seq.
 */
export function storeDraft(
  tables: Tables,
  draft: Draft,
  contents: readonly PackedContent[],
  settings: StoreSettings,
): number {
  const { sender, send, domain, jobId, now, dueAt } = draft;
  const contentIds = contents.map((content) => tables.messages.insertContent(content, now));
  const seqs = draft.copies.map(({ recipient, messageId, content }) =>
    storeMessage(
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
        subject: draft.contents[content]?.subject ?? '',
        trackClicks: send.trackClicks,
        trackOpens: send.trackOpens,
        essential: send.essential,
        now,
        dueAt,
      },
      settings,
    ),
  );
  if (send.campaignId !== null) countQueued(tables, send.campaignId, countedCopies(draft, settings), now);
  return seqs[0] ?? 0;
}
