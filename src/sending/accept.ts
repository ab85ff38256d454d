import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import { domainOf } from '../mail/address.ts';
import type { MessageContent } from '../mail/content.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import { type Stream, TRANSACTIONAL_LANE } from '../store/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { type Checked, checkSend, type Sender } from './checks.ts';
import { createHtmlReader } from './html-reader.ts';
import type { IdempotencyKeys } from './idempotency.ts';
import type { Pressure } from './pressure.ts';
import { type ParsedSend, parseSend, type SendRequest } from './request.ts';
import { type Wording, wordingOf } from './wording.ts';

/**
 * The door for transactional mail: checked, rendered, stored, and only then answered. Message, queue row,
 * content and idempotent answer are one transaction. No MIME and no SMTP happens on this way.
 */
export interface AcceptRequest {
  sender: Sender;
  body: SendRequest;
  /** A well-formed Idempotency-Key, null when the caller gave none. */
  idempotencyKey: string | null;
  /** Makes the answer's body from its data, as it will be sent and stored. */
  envelope(data: SendResult): string;
}

export interface SendResult {
  message: string;
  messageId: string;
  from: string;
  totalRecipients: number;
  recipients: { email: string; status: 'sent'; role: string; messageId: string }[];
  status: 'sent';
}

export type Accepted =
  | { kind: 'accepted'; data: SendResult; body: string; firstSeq: number }
  | { kind: 'replayed'; status: number; body: string };

export interface Acceptance {
  /**
   * Accepts or refuses. When it returns an acceptance, it is on disk; `beforeAnnounce` (with the first
   * message's seq) runs after that and before delivery can start.
   */
  transactional(request: AcceptRequest, beforeAnnounce?: (seq: number) => void): Promise<Accepted | Refusal>;
}

export interface AcceptanceSettings {
  clock: Clock;
  ids: Ids;
  tables: Tables;
  writer: Writer;
  recorder: Recorder;
  keys: IdempotencyKeys;
  pressure: Pressure;
  simulatorDomain: string;
  /** How long a transactional message is tried, ms. */
  expireTransactional: number;
  announce(lane: 0 | 1, stream: Stream): void;
}

const ENDPOINT = 'transactional/send';
const ACCEPTED = 200;

export function createAcceptance(settings: AcceptanceSettings): Acceptance {
  const { clock, ids, tables, writer, recorder, keys, pressure } = settings;
  const readHtml = createHtmlReader();

  async function accept(
    request: AcceptRequest,
    send: ParsedSend,
    keep: (all: Tables, body: string) => void,
  ): Promise<Stored | Refusal> {
    const busy = pressure.refusal();
    if (busy !== null) return busy;
    const wording = wordingOf(tables, request.sender, send.wording);
    if (isRefusal(wording)) return wording;
    const checked = checkSend(tables, request.sender, send, wording, readHtml);
    if (isRefusal(checked)) {
      await tellRefusal(request.sender, send, wording, checked);
      return checked;
    }
    const draft = makeDraft(request, send, checked);
    const firstSeq = await writer.run((all) => {
      // Deleted while this request waited for its turn: then nothing of it is stored.
      if (all.domains.byId(checked.domain.domain_id) === null)
        return refuse('DOMAIN_NOT_REGISTERED', 'The domain was deleted');
      keep(all, draft.body);
      return store(all, draft);
    });
    return isRefusal(firstSeq) ? firstSeq : { ...draft, firstSeq };
  }

  function makeDraft(request: AcceptRequest, send: ParsedSend, { domain, rendered }: Checked): Draft {
    const messageIds = send.recipients.map(() => ids.make('msg'));
    const messageId = messageIds[0] ?? ids.make('msg');
    const boxes = (role: string) =>
      send.recipients.filter((recipient) => recipient.role === role).map(({ mailbox }) => mailbox);
    const now = clock.now();
    const content: MessageContent = {
      ...rendered,
      from: send.from,
      to: boxes('to'),
      cc: boxes('cc'),
      replyTo: send.replyTo,
      headers: send.headers,
      attachments: send.attachments,
      messageId: `${messageId}@${send.fromDomain}`,
      date: now,
    };
    const data: SendResult = {
      message:
        send.recipients.length === 1
          ? 'Email accepted for delivery'
          : `Emails to ${send.recipients.length} recipients accepted for delivery`,
      messageId,
      from: send.fromAsGiven,
      totalRecipients: send.recipients.length,
      recipients: send.recipients.map(({ mailbox, role }, index) => ({
        email: mailbox.address,
        status: 'sent',
        role,
        messageId: messageIds[index] ?? messageId,
      })),
      status: 'sent',
    };
    return { sender: request.sender, send, domain, content, data, body: request.envelope(data), now };
  }

  /** In a unit of work: one content, and a message and a queue row for each recipient. */
  function store(all: Tables, { sender, send, domain, content, data, now }: Draft): number {
    const contentId = all.messages.insertContent(JSON.stringify(content), now);
    const seqs = send.recipients.map(({ mailbox, role }, index) => {
      const destination = domainOf(mailbox.address);
      const seq = all.messages.insert({
        message_id: data.recipients[index]?.messageId ?? data.messageId,
        account_id: sender.account.account_id,
        content_id: contentId,
        use_case: sender.useCase,
        domain_id: domain.domain_id,
        job_id: null,
        campaign_id: null,
        subscription_group_id: null,
        from_address: send.from.address,
        recipient: mailbox.address,
        recipient_hash: emailIdentifier(mailbox.address),
        role,
        subject: content.subject,
        simulated: destination === settings.simulatorDomain ? 1 : 0,
        track_clicks: send.trackClicks ? 1 : 0,
        track_opens: send.trackOpens ? 1 : 0,
        created_at: now,
        expires_at: now + settings.expireTransactional,
      });
      all.queue.insert({
        seq,
        lane: TRANSACTIONAL_LANE,
        account_id: sender.account.account_id,
        domain_id: domain.domain_id,
        destination,
        due_at: now,
        ready: 1,
        lease: null,
      });
      return seq;
    });
    return seqs[0] ?? 0;
  }

  /** A refusal about a person (not about the request) is an event: the account's other systems want to know. */
  async function tellRefusal(
    sender: Sender,
    send: ParsedSend,
    wording: Wording,
    refusal: Refusal,
  ): Promise<void> {
    const people = (refusal.extras.details ?? []).filter(({ recipient }) => recipient !== undefined);
    if (people.length === 0) return;
    await writer.run((all) => {
      for (const { recipient = '', code, reason } of people) {
        const fields = {
          reasonCode: code ?? refusal.code,
          reason,
          useCase: sender.useCase,
          from: send.from.address,
          recipient,
          contactIdentifier: emailIdentifier(recipient),
          subject: wording.subject,
        };
        recorder.refusedSend(all, { accountId: sender.account.account_id, domainId: null, fields });
      }
    });
  }

  return {
    transactional: async (request, beforeAnnounce) => {
      const send = parseSend(request.body);
      if (isRefusal(send)) return send;
      const { idempotencyKey, sender } = request;
      const reservation =
        idempotencyKey === null
          ? null
          : keys.begin({
              accountId: sender.account.account_id,
              endpoint: ENDPOINT,
              key: idempotencyKey,
              body: request.body,
            });
      if (isRefusal(reservation)) return reservation;
      if (reservation?.kind === 'stored')
        return { kind: 'replayed', status: reservation.status, body: reservation.body };
      try {
        const stored = await accept(request, send, (all, body) => reservation?.keep(all, ACCEPTED, body));
        if (isRefusal(stored)) return stored;
        beforeAnnounce?.(stored.firstSeq);
        for (const destination of new Set(send.recipients.map(({ mailbox }) => domainOf(mailbox.address)))) {
          settings.announce(TRANSACTIONAL_LANE, { account_id: sender.account.account_id, destination });
        }
        return { kind: 'accepted', data: stored.data, body: stored.body, firstSeq: stored.firstSeq };
      } finally {
        reservation?.release();
      }
    },
  };
}

interface Draft {
  sender: Sender;
  send: ParsedSend;
  domain: Checked['domain'];
  content: MessageContent;
  data: SendResult;
  body: string;
  now: number;
}

type Stored = Draft & { firstSeq: number };
