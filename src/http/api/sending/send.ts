import type * as z from 'zod';
import { invalid, isRefusal, type Refusal, type RefusalCode, refuse } from '../../../core/refusal.ts';
import type { DeliveryOutcome } from '../../../delivery/attempt-result.ts';
import type { Acceptance, Accepted, AcceptRequest } from '../../../sending/accept.ts';
import { parseIdempotencyKey } from '../../../sending/idempotency.ts';
import type { AccountRow } from '../../../store/accounts.ts';
import type { Stream } from '../../../store/domains/domains.ts';
import type { MessageStatus } from '../../../store/messages/messages.ts';
import { successBody } from '../../responses.ts';
import { type ApiResponse, type Call, type Route, route } from '../../route.ts';
import { MARKETING_NAMES, TRANSACTIONAL_NAMES } from './field-names.ts';
import {
  MARKETING_EXAMPLE,
  MARKETING_RESULT,
  marketingBody,
  marketingResult,
  TRANSACTIONAL_EXAMPLE,
  TRANSACTIONAL_RESULT,
  transactionalBody,
  transactionalResult,
} from './send-schemas.ts';

/* `POST /transactional/send` (with `Prefer: wait=N`, after the first outcome) and `POST /marketing/send`. */

export interface SendRouteDeps {
  acceptance: Acceptance;
  account(accountId: string): AccountRow | null;
  firstOutcome(seq: number, ms: number, signal: AbortSignal): Promise<DeliveryOutcome | null>;
  /** The current status of a message. */
  statusOf(messageId: string): MessageStatus;
}

const MAX_WAIT_SECONDS = 30;

export const KEY_HEADER = {
  'Idempotency-Key':
    'A unique value such as a UUID. A request that repeats it within 24 hours gets the first response and sends nothing.',
};

/** The response repeats that of an earlier request with the same key. */
export const REPLAYED_HEADER = { 'Idempotency-Replayed': 'true' };

/** Refusals of both streams, in the order of the checks. */
const SEND_REFUSALS: RefusalCode[] = [
  'IDEMPOTENCY_IN_PROGRESS',
  'IDEMPOTENCY_KEY_REUSED',
  'TEMPLATE_NOT_FOUND',
  'DOMAIN_NOT_REGISTERED',
  'DOMAIN_NOT_VERIFIED',
  'USE_CASE_MISMATCH',
  'KEY_NOT_ALLOWED',
  'COMPLIANCE_TEMPLATE_MISSING',
  'COMPANY_ADDRESS_MISSING',
  'TEMPLATE_VARIABLE_MISSING',
  'RECIPIENT_UNSUBSCRIBED',
  'RECIPIENT_SUPPRESSED',
  'LIMIT_REACHED',
  'UNAVAILABLE',
];
export const TRANSACTIONAL_REFUSALS: RefusalCode[] = [
  ...SEND_REFUSALS,
  'ATTACHMENTS_TOO_LARGE',
  'TOO_MANY_ATTACHMENTS',
];
export const MARKETING_REFUSALS: RefusalCode[] = [
  ...SEND_REFUSALS,
  'SUBSCRIPTION_GROUP_NOT_FOUND',
  'CAMPAIGN_NOT_FOUND',
  'CONSENT_REQUIRED',
  'TEMPLATE_SYNTAX',
];

/**
 * One route for each stream, with its scope and the size limit of sends. `Prefer: wait` applies to transactional mail
 * only, for 30 s at most.
 */
export function sendRoutes(deps: SendRouteDeps): Route[] {
  return [transactionalSend(deps), marketingSend(deps)];
}

function transactionalSend(deps: SendRouteDeps): Route {
  return route({
    method: 'POST',
    path: '/transactional/send',
    operationId: 'sendTransactional',
    // As the send path decides: a repeated request gets its first response.
    stores: () => false,
    tag: 'Sending',
    summary: 'Send a transactional email',
    description:
      'Responds when the message is checked, rendered and stored durably. Delivery starts immediately.',
    scope: 'transactional',
    limit: 'send',
    body: transactionalBody,
    significant: TRANSACTIONAL_NAMES,
    example: TRANSACTIONAL_EXAMPLE,
    headers: {
      ...KEY_HEADER,
      Prefer: '`wait=N` (seconds, at most 30) delays the response until the first delivery outcome.',
    },
    responses: {
      200: {
        description: 'The message was accepted.',
        data: transactionalResult,
        example: TRANSACTIONAL_RESULT,
      },
    },
    refusals: TRANSACTIONAL_REFUSALS,
    handle: async (call) => {
      const request = acceptRequest(deps, call, 'tx', 'transactional/send');
      if (isRefusal(request)) return request;
      const waitMs = preferredWait(call.headers['prefer']);
      if (waitMs > 0) return sendAndWait(deps, request, call, waitMs);
      const accepted = await deps.acceptance.accept(request);
      return isRefusal(accepted) ? accepted : responseOf(accepted);
    },
  });
}

function marketingSend(deps: SendRouteDeps): Route {
  return route({
    method: 'POST',
    path: '/marketing/send',
    operationId: 'sendMarketing',
    // As the send path decides: a repeated request gets its first response.
    stores: () => false,
    tag: 'Sending',
    summary: 'Send a marketing email',
    description:
      'Responds when the job is stored durably. Every recipient must have given consent. `GET /web-setup/messages?jobId=` lists the messages of the job.',
    scope: 'marketing',
    limit: 'send',
    body: marketingBody,
    significant: MARKETING_NAMES,
    example: MARKETING_EXAMPLE,
    headers: KEY_HEADER,
    responses: {
      202: { description: 'The messages were queued.', data: marketingResult, example: MARKETING_RESULT },
    },
    refusals: MARKETING_REFUSALS,
    handle: async (call) => {
      const request = acceptRequest(deps, call, 'mk', 'marketing/send');
      if (isRefusal(request)) return request;
      const accepted = await deps.acceptance.accept(request);
      return isRefusal(accepted) ? accepted : responseOf(accepted);
    },
  });
}

/** Accepts a send, and waits up to `waitMs` for the outcome of the first attempt. */
async function sendAndWait(
  deps: SendRouteDeps,
  request: AcceptRequest,
  call: Pick<Call<unknown, unknown, unknown>, 'signal' | 'warnings'>,
  waitMs: number,
): Promise<ApiResponse | Refusal> {
  const waiting: { outcome?: Promise<DeliveryOutcome | null> } = {};
  const accepted = await deps.acceptance.accept(request, (seq) => {
    waiting.outcome = deps.firstOutcome(seq, waitMs, call.signal);
  });
  if (isRefusal(accepted)) return accepted;
  return waiting.outcome === undefined || accepted.kind === 'replayed'
    ? responseOf(accepted)
    : withDelivery(deps, accepted, await waiting.outcome, call.warnings);
}

/** The body of a send of either stream. */
type SendBody = z.output<typeof transactionalBody> | z.output<typeof marketingBody>;

function acceptRequest(
  deps: SendRouteDeps,
  call: Call<unknown, unknown, SendBody>,
  useCase: Stream,
  endpoint: string,
): AcceptRequest | Refusal {
  const account = deps.account(call.caller.accountId);
  if (account === null) return refuse('UNAUTHENTICATED', 'The account does not exist');
  const key = idempotencyKey(call.headers['idempotency-key']);
  if (isRefusal(key)) return key;
  const { body, warnings: ofRequest } = call;
  const { allowFrom, allowEssential } = call.caller;
  return {
    sender: { account, useCase, allowFrom, allowEssential },
    body,
    idempotency: key === null ? null : { endpoint, key },
    envelope: (data, warnings) => successBody(data, [...ofRequest, ...warnings]),
  };
}

function responseOf(accepted: Accepted): ApiResponse {
  return accepted.kind === 'replayed'
    ? { status: accepted.status, raw: accepted.body, headers: REPLAYED_HEADER }
    : { status: accepted.status, raw: accepted.body };
}

/** Adds the outcome; without one in time, the current status of the message. */
function withDelivery(
  { statusOf }: SendRouteDeps,
  accepted: Extract<Accepted, { kind: 'accepted' }>,
  outcome: DeliveryOutcome | null,
  ignored: readonly string[],
): ApiResponse {
  const delivery =
    outcome === null
      ? { status: 'messageId' in accepted.data ? statusOf(accepted.data.messageId) : 'queued' }
      : {
          status: outcome.status,
          smtpReply: `${outcome.reply.code} ${outcome.reply.enhanced ?? ''} ${outcome.reply.text}`.replace(
            / +/g,
            ' ',
          ),
        };
  return {
    status: accepted.status,
    raw: successBody({ ...accepted.data, delivery }, [...ignored, ...accepted.warnings]),
    headers: { 'Preference-Applied': 'wait' },
  };
}

/** The Idempotency-Key of the caller; null when there is none. An array: the request has the field more than once. */
export function idempotencyKey(header: string | string[] | undefined): string | null | Refusal {
  if (header === undefined) return null;
  if (typeof header !== 'string') return invalid('Idempotency-Key', 'is given more than once');
  return (
    parseIdempotencyKey(header) ?? invalid('Idempotency-Key', 'must be 1 to 255 printable ASCII characters')
  );
}

/** RFC 7240 §4.3, in ms; 0 when the field is absent or has no valid `wait`. */
function preferredWait(header: string | string[] | undefined): number {
  const seconds = Number(/(?:^|[,;\s])wait\s*=\s*"?(\d{1,4})"?/i.exec(String(header ?? ''))?.[1] ?? 0);
  return Math.min(seconds, MAX_WAIT_SECONDS) * 1000;
}
