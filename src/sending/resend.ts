import type { AccountLimits } from '../accounts/limits.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { domainOf } from '../mail/address.ts';
import type { MessageContent } from '../mail/content.ts';
import type { Context } from '../store/context.ts';
import type { MessageRow, MessageStatus } from '../store/messages/messages.ts';
import type { QueueKey } from '../store/messages/queue.ts';
import { checkDomain, checkSuppression, type Sender } from './checks.ts';
import { PRIORITY_OF_STREAM, type StoreOptions, storeMessage, type TransactionalResult } from './draft.ts';
import { encodeContents } from './encode.ts';
import type { IdempotencyKeys, Reservation } from './idempotency.ts';
import type { Pressure } from './pressure.ts';
import { sentContent } from './sent-content.ts';

/*
 * Sends a transactional message again: a new message with the content, the sender and the recipient of one that is final.
 * Domain, suppression and limits are checked as for a new send.
 */

/** A message to send again. */
export interface ResendRequest {
  sender: Sender;
  messageId: string;
  /** A valid Idempotency-Key; null: the request has none. */
  key: string | null;
  /** Returns the response body as it is sent and stored. */
  envelope(data: TransactionalResult): string;
}

/** `isReplay`: the body is that of an earlier request with the same key. */
export interface Resent {
  body: string;
  isReplay: boolean;
}

export type Resend = (request: ResendRequest) => Promise<Resent | Refusal>;

/** What it shares with the acceptance of mail. */
export interface ResendParts extends StoreOptions {
  keys: IdempotencyKeys;
  pressure: Pick<Pressure, 'refusal'>;
  limits: Pick<AccountLimits, 'takeMessages'>;
  /** Called when messages of a key are in the queue (committed) and due. */
  announce(key: QueueKey): void;
}

const ENDPOINT = 'transactional/resend';
const STATUS = 200;
/** A message with another status may still arrive. */
const FINAL: readonly MessageStatus[] = ['delivered', 'bounced', 'failed', 'cancelled', 'complained'];

/**
 * Returns the function; keeps nothing between calls. The unit of work that stores the message checks the message
 * limits, and again that the domain exists.
 */
export function createResend(
  { clock, ids, tables, reader, writer }: Pick<Context, 'clock' | 'ids' | 'tables' | 'reader' | 'writer'>,
  parts: ResendParts,
): Resend {
  const { keys, pressure, limits } = parts;

  /** The message and its content; a refusal if it cannot be sent again. */
  async function find(
    { account }: Sender,
    messageId: string,
  ): Promise<{ message: MessageRow; content: MessageContent } | Refusal> {
    const accountId = account.account_id;
    const found = await reader.query(accountId, sentContent, { accountId, messageId });
    if (found === null) return refuse('MESSAGE_NOT_FOUND', `There is no message ${messageId}`);
    const { message, content } = found;
    if (message.use_case !== 'tx')
      return refuse('INVALID_STATE', 'Marketing mail cannot be sent again: send a new message');
    if (!FINAL.includes(message.status))
      return refuse('INVALID_STATE', `The message is ${message.status}: it can be retried, not sent again`);
    if (content === null)
      return refuse(
        'INVALID_STATE',
        'The content of the message was deleted, because its time of retention is over or its recipient was erased',
      );
    return { message, content };
  }

  async function resend(
    { sender, messageId, envelope }: ResendRequest,
    reservation: Reservation | null,
  ): Promise<Resent | Refusal> {
    const found = pressure.refusal(sender.account.account_id) ?? (await find(sender, messageId));
    if (isRefusal(found)) return found;
    const { message } = found;
    const fromDomain = domainOf(message.from_address);
    const domain = checkDomain(tables, sender, { fromDomain });
    if (isRefusal(domain)) return domain;
    const essential = message.essential === 1;
    if (essential && !sender.allowEssential)
      return refuse('KEY_NOT_ALLOWED', 'This API key cannot send essential mail');
    const recipient = { mailbox: { name: '', address: message.recipient }, role: message.role };
    const suppressed = checkSuppression(tables, sender, { recipients: [recipient], essential });
    if (suppressed !== null) return suppressed;

    const now = clock.now();
    const newId = ids.make('msg');
    const content = { ...found.content, messageId: `${newId}@${fromDomain}`, date: now };
    const packed = await encodeContents([content], sender.account.account_id);
    if (isRefusal(packed)) return packed;
    const [only] = packed;
    if (only === undefined) throw new Error('one content was encoded to none');
    const { account_id: accountId } = sender.account;
    const body = envelope({
      message: 'Email accepted for delivery',
      messageId: newId,
      from: message.from_address,
      totalRecipients: 1,
      recipients: [{ email: message.recipient, status: 'sent', role: message.role, messageId: newId }],
      status: 'sent',
    });
    const refusal = await writer.run((tx): Refusal | null => {
      // The domain can have been deleted meanwhile.
      if (tx.domains.byId(domain.domain_id) === null)
        return refuse('DOMAIN_NOT_REGISTERED', `The domain ${domain.name} was deleted`);
      const limited = limits.takeMessages(tx, accountId, 1, now);
      if (limited !== null) return limited;
      reservation?.store(tx, STATUS, body);
      storeMessage(
        tx,
        {
          accountId,
          useCase: 'tx',
          domainId: domain.domain_id,
          jobId: null,
          campaignId: null,
          campaignSeq: null,
          groupId: message.subscription_group_id,
          from: message.from_address,
          recipient,
          messageId: newId,
          contentId: tx.messages.insertContent(only, now, accountId),
          contentBytes: only.size,
          subject: content.subject,
          trackClicks: message.track_clicks === 1,
          trackOpens: message.track_opens === 1,
          essential,
          labels: message.labels,
          isSimulation: sender.isSimulation === true,
          now,
          dueAt: now,
        },
        parts,
      );
      return null;
    }, accountId);
    if (refusal !== null) return refusal;
    parts.announce({
      priority: PRIORITY_OF_STREAM.tx,
      account_id: accountId,
      destination: domainOf(message.recipient),
    });
    return { body, isReplay: false };
  }

  return async (request) => {
    const { sender, messageId, key } = request;
    if (key === null) return resend(request, null);
    const reservation = keys.begin({
      accountId: sender.account.account_id,
      endpoint: sender.isSimulation === true ? `test/${ENDPOINT}` : ENDPOINT,
      key,
      body: { messageId },
    });
    if (isRefusal(reservation)) return reservation;
    if (reservation.kind === 'stored') return { body: reservation.body, isReplay: true };
    try {
      return await resend(request, reservation);
    } finally {
      reservation.release();
    }
  };
}
