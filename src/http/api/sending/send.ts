import * as z from 'zod';
import { invalid, isRefusal, type Refusal, type RefusalCode, refuse } from '../../../core/refusal.ts';
import type { DeliveryOutcome } from '../../../delivery/attempt-result.ts';
import type { Acceptance, Accepted, AcceptRequest } from '../../../sending/accept.ts';
import { senderOf } from '../../../sending/checks.ts';
import { parseIdempotencyKey } from '../../../sending/idempotency.ts';
import type { Resend } from '../../../sending/resend.ts';
import type { Context } from '../../../store/context.ts';
import type { Stream } from '../../../store/domains/domains.ts';
import { successBody } from '../../responses.ts';
import { type Call, type Caller, mapResult, Reply, type Route, routesOf } from '../../route.ts';
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

/*
 * `POST /transactional/send` (with `Prefer: wait=N`, 30 s at most, after the first outcome), `POST /marketing/send` and
 * `POST /transactional/resend`.
 */

const MAX_WAIT_SECONDS = 30;

export const KEY_HEADER = {
  'Idempotency-Key':
    'A unique value such as a UUID. A request that repeats it within 24 hours, at the same path with the same body, gets the first response and sends nothing.',
};

export const WAIT_HEADER = {
  Prefer:
    '`wait=N` (seconds, at most 30) delays the response until the first delivery outcome. Without effect with `scheduledAt`.',
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
const TRANSACTIONAL_REFUSALS: RefusalCode[] = [
  ...SEND_REFUSALS,
  'ATTACHMENTS_TOO_LARGE',
  'ATTACHMENT_NOT_FETCHED',
  'TOO_MANY_ATTACHMENTS',
];
const MARKETING_REFUSALS: RefusalCode[] = [
  ...SEND_REFUSALS,
  'SUBSCRIPTION_GROUP_NOT_FOUND',
  'CAMPAIGN_NOT_FOUND',
  'CONSENT_REQUIRED',
  'TEMPLATE_SYNTAX',
];

const ofTransactional = routesOf({ tag: 'Sending', scope: 'transactional', permissions: ['send', 'send'] });
const ofMarketing = routesOf({ tag: 'Sending', scope: 'marketing', permissions: ['send', 'send'] });

/** What the operations of each stream have in common. */
export const STREAMS = {
  tx: {
    route: ofTransactional,
    name: 'transactional',
    body: transactionalBody,
    example: TRANSACTIONAL_EXAMPLE,
    success: { status: 200, data: transactionalResult, example: TRANSACTIONAL_RESULT },
    refusals: TRANSACTIONAL_REFUSALS,
  },
  mk: {
    route: ofMarketing,
    name: 'marketing',
    body: marketingBody,
    example: MARKETING_EXAMPLE,
    success: { status: 202, data: marketingResult, example: MARKETING_RESULT },
    refusals: MARKETING_REFUSALS,
  },
} as const;

/** What accepts mail, and its outcome. */
export interface SendServices {
  acceptance: Acceptance;
  firstOutcome(seq: number, ms: number, signal: AbortSignal): Promise<DeliveryOutcome | null>;
}

export type SendContext = Pick<Context, 'tables'>;

/** One route for each stream. `Prefer: wait` applies to transactional mail only. */
export function sendRoutes(context: SendContext, services: SendServices): Route[] {
  const { acceptance } = services;
  const { tx, mk } = STREAMS;
  return [
    ofTransactional('POST /transactional/send', {
      operationId: 'sendTransactional',
      // As the send path decides: a repeated request gets its first response.
      stores: () => false,
      summary: 'Send a transactional email',
      description:
        'Responds when the message is checked, rendered and stored durably. Delivery starts immediately.',
      limit: 'send',
      body: transactionalBody,
      refusesMisnamed: true,
      example: tx.example,
      headers: {
        ...KEY_HEADER,
        ...WAIT_HEADER,
      },
      response: { description: 'The message was accepted.', ...tx.success },
      refusals: tx.refusals,
      handle: async (call) => {
        const request = acceptRequest(context, call, 'tx');
        if (isRefusal(request)) return request;
        return call.body.scheduledAt === undefined
          ? send(context, services, request, call)
          : mapResult(await acceptance.accept(request), replyOf);
      },
    }),
    ofMarketing('POST /marketing/send', {
      operationId: 'sendMarketing',
      // As the send path decides: a repeated request gets its first response.
      stores: () => false,
      summary: 'Send a marketing email',
      description:
        'Responds when the job is stored durably. Every recipient must have given consent. `GET /web-setup/messages?jobId=` lists the messages of the job.',
      limit: 'send',
      body: marketingBody,
      refusesMisnamed: true,
      example: mk.example,
      headers: KEY_HEADER,
      response: { description: 'The messages were queued.', ...mk.success },
      refusals: mk.refusals,
      handle: async (call) => {
        const request = acceptRequest(context, call, 'mk');
        return isRefusal(request) ? request : mapResult(await acceptance.accept(request), replyOf);
      },
    }),
  ];
}

/** `POST /transactional/resend`: sends a message again. */
export function resendRoute(context: SendContext, { resend }: { resend: Resend }): Route {
  const { tx } = STREAMS;
  return ofTransactional('POST /transactional/resend', {
    operationId: 'resendTransactional',
    // The send path refuses it, except for a request that was repeated.
    stores: () => false,
    summary: 'Send a transactional email again',
    description:
      'Sends a new message, with its own id, that has the sender, the recipient and the content of one that is delivered or failed. Domain, suppression and limits are checked as for a new email. A deferred message is retried instead.',
    limit: 'send',
    body: z.object({ messageId: z.string().max(100) }).meta({ id: 'ResendInput' }),
    example: { messageId: 'msg_1769860500000_4r6t8y1u3i5o' },
    headers: KEY_HEADER,
    response: { description: 'The new message was accepted.', ...tx.success },
    refusals: [
      'IDEMPOTENCY_IN_PROGRESS',
      'IDEMPOTENCY_KEY_REUSED',
      'MESSAGE_NOT_FOUND',
      'INVALID_STATE',
      'DOMAIN_NOT_REGISTERED',
      'DOMAIN_NOT_VERIFIED',
      'USE_CASE_MISMATCH',
      'KEY_NOT_ALLOWED',
      'RECIPIENT_UNSUBSCRIBED',
      'RECIPIENT_SUPPRESSED',
      'UNAVAILABLE',
    ],
    handle: async ({ caller, body: { messageId }, headers, warnings }) => {
      const sender = senderOfCaller(context, caller, 'tx');
      if (isRefusal(sender)) return sender;
      const key = idempotencyKey(headers['idempotency-key']);
      if (isRefusal(key)) return key;
      const envelope = (data: object) => successBody(data, warnings);
      const resent = await resend({ sender, messageId, key, envelope });
      return mapResult(resent, ({ body, isReplay }) =>
        isReplay ? new Reply({ raw: body }, { headers: REPLAYED_HEADER }) : new Reply({ raw: body }),
      );
    },
  });
}

/** Accepts a send, and waits for the outcome of the first attempt as long as the caller prefers to. */
export async function send(
  context: SendContext,
  { acceptance, firstOutcome }: SendServices,
  request: AcceptRequest,
  call: Pick<Call<unknown, unknown, unknown>, 'headers' | 'signal' | 'warnings'>,
): Promise<Reply | Refusal> {
  const waitMs = preferredWait(call.headers['prefer']);
  if (waitMs === 0) return mapResult(await acceptance.accept(request), replyOf);
  const waiting: { outcome?: Promise<DeliveryOutcome | null> } = {};
  const accepted = await acceptance.accept(request, (seq) => {
    waiting.outcome = firstOutcome(seq, waitMs, call.signal);
  });
  if (isRefusal(accepted)) return accepted;
  return waiting.outcome === undefined || accepted.kind === 'replayed'
    ? replyOf(accepted)
    : withDelivery(context, accepted, await waiting.outcome, call.warnings);
}

/** The body of a send of either stream. */
type SendBody = z.output<typeof transactionalBody> | z.output<typeof marketingBody>;

function acceptRequest(
  context: SendContext,
  { caller, headers, body, warnings: ofRequest }: Call<unknown, unknown, SendBody>,
  stream: Stream,
): AcceptRequest | Refusal {
  const sender = senderOfCaller(context, caller, stream);
  if (isRefusal(sender)) return sender;
  const key = idempotencyKey(headers['idempotency-key']);
  if (isRefusal(key)) return key;
  return {
    sender,
    body,
    idempotency: key === null ? null : { endpoint: `${STREAMS[stream].name}/send`, key },
    envelope: (data, warnings) => successBody(data, [...ofRequest, ...warnings]),
  };
}

/** The sender of a request: the account with what its key may do. */
export function senderOfCaller(
  { tables }: SendContext,
  caller: Caller,
  useCase: Stream,
): AcceptRequest['sender'] | Refusal {
  const account = tables.accounts.get(caller.accountId);
  return account === null
    ? refuse('UNAUTHENTICATED', 'The account does not exist')
    : senderOf(account, caller, useCase);
}

function replyOf({ kind, status, body }: Accepted): Reply {
  return new Reply({ raw: body }, kind === 'replayed' ? { status, headers: REPLAYED_HEADER } : { status });
}

/** Adds the outcome; without one in time, the current status of the message. */
function withDelivery(
  { tables }: SendContext,
  accepted: Extract<Accepted, { kind: 'accepted' }>,
  outcome: DeliveryOutcome | null,
  ignored: readonly string[],
): Reply {
  const statusOf = (messageId: string) => tables.messages.byId(messageId)?.status;
  const delivery =
    outcome === null
      ? { status: ('messageId' in accepted.data && statusOf(accepted.data.messageId)) || 'queued' }
      : {
          status: outcome.status,
          smtpReply: `${outcome.reply.code} ${outcome.reply.enhanced ?? ''} ${outcome.reply.text}`.replace(
            / +/g,
            ' ',
          ),
        };
  return new Reply(
    { raw: successBody({ ...accepted.data, delivery }, [...ignored, ...accepted.warnings]) },
    { status: accepted.status, headers: { 'Preference-Applied': 'wait' } },
  );
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
