import { z } from 'zod';
import { isRefusal, refuse } from '../../core/refusal.ts';
import type { Outcome } from '../../delivery/outcome.ts';
import type { Acceptance, Accepted } from '../../sending/accept.ts';
import { parseIdempotencyKey } from '../../sending/idempotency.ts';
import type { AccountRow } from '../../store/accounts.ts';
import { successBody } from '../answers.ts';
import { type Answer, type Route, route } from '../route.ts';

/** `POST /transactional/send`: parse, accept, answer; with `Prefer: wait=N` after the first outcome. */
const oneOrMany = z.union(
  [z.string(), z.array(z.string())],
  'must be an address, a comma-joined list, or an array of addresses',
);

const attachment = z.object({
  name: z.string().describe('File name, 1 to 255 characters, no path.'),
  contentType: z.string().describe('Media type such as `application/pdf`.'),
  content: z.string().describe('The file as base64 without line breaks.'),
  contentId: z.string().optional().describe('Makes it inline: the html refers to it as `cid:<contentId>`.'),
});

export const transactionalBody = z.object({
  to: oneOrMany
    .optional()
    .describe(
      'Recipient, plain or with display name; also a comma-joined list or an array, 50 together with cc and bcc.',
    ),
  cc: oneOrMany.optional(),
  bcc: oneOrMany.optional().describe('Each gets a copy that names none of them; may stand without `to`.'),
  from: z.string().describe('Sender, plain or with display name; its domain must be verified.'),
  subject: z.string().min(1).optional().describe('Required, unless a template is named that has one.'),
  html: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Must use `{{company_address_html}}` and `{{unsubscribe_email_html}}`. Required, unless a template is named.',
    ),
  text: z.string().optional().describe('Plain text version; made from the html when absent.'),
  templateId: z
    .string()
    .max(100)
    .optional()
    .describe(
      'A stored template in place of subject, html and text. A subject given beside it stands over its own.',
    ),
  replyTo: z.string().optional(),
  headers: z
    .record(z.string(), z.string())
    .optional()
    .describe('Own header fields, at most 50, 8 KiB together.'),
  attachments: z.array(attachment).optional().describe('At most 10, 2 MB together after decoding.'),
  templateVariables: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Values for `{{name}}` in subject, html and text.'),
  enableClickTracking: z.boolean().optional(),
  enableOpenTracking: z.boolean().optional(),
});

const delivery = z.object({
  status: z
    .enum(['delivered', 'deferred', 'bounced', 'failed', 'pending'])
    .describe('`pending`: no outcome within the time asked for.'),
  smtpReply: z.string().optional(),
});

const result = z.object({
  message: z.string(),
  messageId: z.string(),
  from: z.string(),
  totalRecipients: z.int(),
  recipients: z.array(
    z.object({
      email: z.string(),
      status: z.literal('sent'),
      role: z.enum(['to', 'cc', 'bcc']),
      messageId: z.string(),
    }),
  ),
  status: z.literal('sent'),
  delivery: delivery.optional(),
});

const EXAMPLE = {
  to: 'Ada Lovelace <ada@example.net>',
  from: 'Example Shop <orders@example.com>',
  subject: 'Your order {{orderNumber}}',
  html: '<p>Thank you, {{name}}.</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>',
  templateVariables: { name: 'Ada', orderNumber: '10042' },
};

const RESULT_EXAMPLE: z.output<typeof result> = {
  message: 'Email accepted for delivery',
  messageId: 'msg_1769860800000_2q8w4e6r1t5y',
  from: EXAMPLE.from,
  totalRecipients: 1,
  recipients: [
    { email: 'ada@example.net', status: 'sent', role: 'to', messageId: 'msg_1769860800000_2q8w4e6r1t5y' },
  ],
  status: 'sent',
};

const MAX_WAIT_SECONDS = 30;

export interface SendRouteSettings {
  acceptance: Acceptance;
  account(accountId: string): AccountRow | null;
  firstOutcome(seq: number, ms: number, signal: AbortSignal): Promise<Outcome | null>;
}

export function sendRoutes(settings: SendRouteSettings): Route[] {
  return [transactionalSend(settings)];
}

function transactionalSend({ acceptance, account, firstOutcome }: SendRouteSettings): Route {
  return route({
    method: 'POST',
    path: '/transactional/send',
    operationId: 'sendTransactional',
    tag: 'Sending',
    summary: 'Send a transactional email',
    description: 'Answers once the message is checked, rendered and stored durably; delivery starts at once.',
    scope: 'transactional',
    limit: 'send',
    body: transactionalBody,
    example: EXAMPLE,
    headers: {
      'Idempotency-Key':
        'A UUID, say: a repeated request with it within 24 hours gets the first answer and sends nothing.',
      Prefer: '`wait=N` (seconds, at most 30) holds the answer for the first delivery outcome.',
    },
    answers: { 200: { description: 'Accepted', data: result, example: RESULT_EXAMPLE } },
    refusals: [
      'TEMPLATE_NOT_FOUND',
      'DOMAIN_NOT_REGISTERED',
      'DOMAIN_NOT_VERIFIED',
      'USE_CASE_MISMATCH',
      'KEY_NOT_ALLOWED',
      'RECIPIENT_UNSUBSCRIBED',
      'RECIPIENT_SUPPRESSED',
      'IDEMPOTENCY_IN_PROGRESS',
      'IDEMPOTENCY_KEY_REUSED',
      'ATTACHMENTS_TOO_LARGE',
      'TOO_MANY_ATTACHMENTS',
      'COMPLIANCE_TEMPLATE_MISSING',
      'COMPANY_ADDRESS_MISSING',
      'TEMPLATE_VARIABLE_MISSING',
      'UNAVAILABLE',
    ],
    handle: async (call) => {
      const sender = account(call.caller.accountId);
      if (sender === null) return refuse('UNAUTHENTICATED', 'The account is gone');
      const key = idempotencyKey(call.headers['idempotency-key']);
      if (isRefusal(key)) return key;
      const waitMs = preferredWait(call.headers['prefer']);
      const waiting: { outcome?: Promise<Outcome | null> } = {};
      const accepted = await acceptance.transactional(
        {
          sender: { account: sender, useCase: 'tx', allowFrom: call.caller.allowFrom },
          body: call.body,
          idempotencyKey: key,
          envelope: (data) => successBody(data, call.warnings),
        },
        (seq) => {
          if (waitMs > 0) waiting.outcome = firstOutcome(seq, waitMs, call.signal);
        },
      );
      if (isRefusal(accepted)) return accepted;
      return answer(accepted, waiting.outcome === undefined ? null : { outcome: await waiting.outcome });
    },
  });
}

function answer(accepted: Accepted, waited: { outcome: Outcome | null } | null): Answer {
  if (accepted.kind === 'replayed')
    return { status: accepted.status, raw: accepted.body, headers: { 'Idempotency-Replayed': 'true' } };
  if (waited === null) return { status: 200, raw: accepted.body };
  const { outcome } = waited;
  const shown =
    outcome === null
      ? { status: 'pending' }
      : {
          status: outcome.status,
          smtpReply: `${outcome.reply.code} ${outcome.reply.enhanced ?? ''} ${outcome.reply.text}`.replace(
            / +/g,
            ' ',
          ),
        };
  return {
    status: 200,
    data: { ...accepted.data, delivery: shown },
    headers: { 'Preference-Applied': 'wait' },
  };
}

function idempotencyKey(header: string | string[] | undefined) {
  if (header === undefined) return null;
  const key = typeof header === 'string' ? parseIdempotencyKey(header) : null;
  const message = 'must be 1 to 255 printable ASCII characters';
  return (
    key ??
    refuse('VALIDATION_ERROR', `Idempotency-Key ${message}`, {
      details: [{ field: 'Idempotency-Key', message }],
    })
  );
}

/** RFC 7240 §4.3; 0 when nothing, or nothing sensible, was asked for. */
function preferredWait(header: string | string[] | undefined): number {
  const seconds = Number(/(?:^|[,;\s])wait\s*=\s*"?(\d{1,4})"?/i.exec(String(header ?? ''))?.[1] ?? 0);
  return Math.min(seconds, MAX_WAIT_SECONDS) * 1000;
}
