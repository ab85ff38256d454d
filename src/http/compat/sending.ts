import type { Caller } from '../../accounts/authenticate.ts';
import { iso } from '../../core/clock.ts';
import { createErrorLog } from '../../core/log.ts';
import { invalid, isRefusal, type Refusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import type { Acceptance } from '../../sending/accept.ts';
import type { SendResult } from '../../sending/draft.ts';
import { parseSend, type SendRequest } from '../../sending/request.ts';
import type { Context } from '../../store/context.ts';
import { storageFailure } from '../../store/database/failure.ts';
import type { Stream } from '../../store/domains/domains.ts';
import { senderOfCaller } from '../api/sending/send.ts';
import { faultRefusal } from '../responses.ts';

export interface CompatContext extends Pick<Context, 'clock' | 'log' | 'tables'> {}

/** What the adapters of all providers need. */
export interface CompatServices {
  acceptance: Acceptance;
}

/** The mail of a request to a provider, as a send of ours. */
export interface CompatMail {
  /** Null: transactional, unless the key is for marketing mail only. */
  stream: Stream | null;
  body: SendRequest;
}

/** An accepted mail. */
export interface Sent {
  /** Of the first recipient. */
  messageId: string;
  /** The time of the acceptance, ISO 8601. */
  at: string;
  isReplay: boolean;
  /** Recipients that are suppressed, or have not consented: the others get the mail, as from other providers. */
  skipped: string[];
}

/** Sends a mail of a caller. `key`: the idempotency key. */
export type SendCompat = (caller: Caller, mail: CompatMail, key: string | null) => Promise<Sent | Refusal>;

/**
 * Returns the function that sends mail for a provider. `endpoint`: the name of the provider; idempotency keys of different
 * endpoints are independent. As for mail that is submitted over SMTP, the footer is appended where the mail lacks it, and
 * braces in a content are text; templates of the account have their variables.
 */
export function compatSender(
  { clock, tables }: CompatContext,
  { acceptance }: CompatServices,
  endpoint: string,
): SendCompat {
  return async (caller, { stream, body }, key) => {
    const useCase = streamOf(caller, stream);
    if (isRefusal(useCase)) return useCase;
    const misplaced = useCase === 'mk' ? transactionalField(body) : null;
    if (misplaced !== null) return invalid(misplaced, 'is for transactional mail only');
    const sender = senderOfCaller({ tables }, caller, useCase);
    if (isRefusal(sender)) return sender;
    const accepted = await acceptance.accept({
      sender,
      body: { ...body, onRefused: 'skip' },
      appendFooter: !caller.strictCompliance,
      literalBraces: body.templateId === undefined,
      idempotency: key === null ? null : { endpoint: `compat/${endpoint}`, key },
      envelope: (data) =>
        JSON.stringify({ messageId: firstId(data), at: iso(clock.now()), skipped: skippedIn(data) }),
    });
    if (isRefusal(accepted)) return accepted;
    // As `envelope` wrote it, now or for an earlier request.
    const sent: Omit<Sent, 'isReplay'> = JSON.parse(accepted.body);
    return { ...sent, isReplay: accepted.kind === 'replayed' };
  };
}

/** Marketing mail has a job: the id of its first message is one that the events and the list of messages have. */
function firstId({ recipients }: SendResult): string {
  return recipients[0]?.messageId ?? '';
}

function skippedIn({ recipients }: SendResult): string[] {
  return recipients.flatMap(({ email, messageId }) => (messageId === undefined ? email : []));
}

/**
 * Returns the function that sends one item of a request with several. It never rejects, because items before may have been
 * accepted: an unexpected error is logged, and refuses the item.
 */
export function itemSender({ log }: Pick<Context, 'log'>) {
  const logError = createErrorLog(log);
  return async <Result>(
    { requestId }: { requestId: string },
    index: number,
    send: () => Promise<Result | Refusal>,
  ): Promise<Result | Refusal> => {
    try {
      return await send();
    } catch (error) {
      logError(
        storageFailure(error)?.kind ?? null,
        { err: error, requestId, index },
        'item of a batch failed',
      );
      return faultRefusal(error);
    }
  };
}

/** Mails of one request that are in progress at the same time. */
const MAILS_IN_PROGRESS = 16;
const OF_RECIPIENTS: ReadonlySet<RefusalCode> = new Set([
  'RECIPIENT_SUPPRESSED',
  'RECIPIENT_UNSUBSCRIBED',
  'CONSENT_REQUIRED',
]);

/**
 * Validates the mails of one request before the first one is sent; null: all are valid. Each takes a turn of the account,
 * because all may have the same large attachments.
 */
export async function faultIn(
  mails: readonly CompatMail[],
  now: number,
  turn: () => Promise<void>,
): Promise<Refusal | null> {
  for (const { body } of mails) {
    await turn();
    const parsed = parseSend(body, now);
    if (isRefusal(parsed)) return parsed;
  }
  return null;
}

/**
 * Sends the mails of one request, which are valid; the results are in their order, null for a mail whose recipients are all
 * suppressed. The first one is sent alone, because what refuses it refuses mostly all: sender, template, limits. Refused if no
 * recipient is left, or when a mail is refused for another reason; the message then states how many were accepted, and the
 * idempotency key, which applies to each mail with its position, continues with the rest.
 */
export async function sendEach(
  send: SendCompat,
  caller: Caller,
  mails: readonly CompatMail[],
  key: string | null,
): Promise<(Sent | null)[] | Refusal> {
  const results: (Sent | Refusal)[] = [];
  const sendOne = (mail: CompatMail, index: number) =>
    send(caller, mail, key === null || mails.length === 1 ? key : `${key}#${index}`);
  for (let at = 0; at < mails.length; at = results.length) {
    const group = mails.slice(at, at === 0 ? 1 : at + MAILS_IN_PROGRESS);
    results.push(...(await Promise.all(group.map((mail, index) => sendOne(mail, at + index)))));
    const refusal = results.slice(at).find((result) => isRefusal(result) && !OF_RECIPIENTS.has(result.code));
    if (isRefusal(refusal)) return partly(refusal, results);
  }
  const [first] = results;
  const isRefused = results.every((result) => isRefusal(result));
  return isRefused && isRefusal(first) ? first : results.map((result) => (isRefusal(result) ? null : result));
}

function partly(refusal: Refusal, results: readonly (Sent | Refusal)[]): Refusal {
  const accepted = results.filter((result) => !isRefusal(result)).length;
  if (accepted === 0) return refusal;
  const { code, message, extras } = refusal;
  return refuse(code, `${message} (${accepted} messages of the request were accepted before)`, extras);
}

function streamOf({ scopes }: Caller, stream: Stream | null): Stream | Refusal {
  const useCase = stream ?? (scopes.includes('transactional') ? 'tx' : 'mk');
  const scope = useCase === 'tx' ? 'transactional' : 'marketing';
  return scopes.includes(scope)
    ? useCase
    : refuse('INSUFFICIENT_SCOPE', `This key does not have the scope "${scope}"`);
}

/** A field that marketing mail cannot have: each of its recipients gets a copy without the others. */
function transactionalField({ cc, bcc, attachments }: SendRequest): 'cc' | 'bcc' | 'attachments' | null {
  if (isGiven(cc)) return 'cc';
  if (isGiven(bcc)) return 'bcc';
  return isGiven(attachments) ? 'attachments' : null;
}

export function isGiven(value: string | readonly unknown[] | undefined): boolean {
  return value !== undefined && value.length > 0;
}
