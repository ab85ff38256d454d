import type { Caller } from '../../accounts/authenticate.ts';
import { iso } from '../../core/clock.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import type { Acceptance } from '../../sending/accept.ts';
import type { SendResult } from '../../sending/draft.ts';
import type { SendRequest } from '../../sending/request.ts';
import type { Context } from '../../store/context.ts';
import type { Stream } from '../../store/domains/domains.ts';
import { senderOfCaller } from '../api/sending/send.ts';

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
}

/**
 * Returns the function that sends mail for a provider. `endpoint`: the name of the provider; idempotency keys of different
 * endpoints are independent. As for mail that is submitted over SMTP, the footer is appended where the mail lacks it, and
 * braces in a content are text; templates of the account have their variables.
 */
export function compatSender(
  { clock, tables }: CompatContext,
  { acceptance }: CompatServices,
  endpoint: string,
) {
  return async (
    caller: Caller,
    { stream, body }: CompatMail,
    key: string | null,
  ): Promise<Sent | Refusal> => {
    const useCase = streamOf(caller, stream);
    if (isRefusal(useCase)) return useCase;
    const misplaced = useCase === 'mk' ? transactionalField(body) : null;
    if (misplaced !== null) return invalid(misplaced, 'is for transactional mail only');
    const sender = senderOfCaller({ tables }, caller, useCase);
    if (isRefusal(sender)) return sender;
    const accepted = await acceptance.accept({
      sender,
      body,
      appendFooter: !caller.strictCompliance,
      literalBraces: body.templateId === undefined,
      idempotency: key === null ? null : { endpoint: `compat/${endpoint}`, key },
      envelope: (data) => JSON.stringify({ messageId: firstId(data), at: iso(clock.now()) }),
    });
    if (isRefusal(accepted)) return accepted;
    // As `envelope` wrote it, now or for an earlier request.
    const { messageId, at }: { messageId: string; at: string } = JSON.parse(accepted.body);
    return { messageId, at, isReplay: accepted.kind === 'replayed' };
  };
}

/** Marketing mail has a job: the id of its first message is one that the events and the list of messages have. */
function firstId({ recipients }: SendResult): string {
  return recipients[0]?.messageId ?? '';
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

function isGiven(value: string | readonly unknown[] | undefined): boolean {
  return value !== undefined && value.length > 0;
}
