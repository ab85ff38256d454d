import * as z from 'zod';
import type { Authenticator } from '../../accounts/authenticate.ts';
import { invalid, isRefusal, type Refusal, type RefusalCode, refuse } from '../../core/refusal.ts';
import { messageHistory, presentMessage } from '../../events/message-view.ts';
import { parseMailboxList } from '../../mail/address.ts';
import type { QueuedMail } from '../../sending/queued-mail.ts';
import type { SendRequest } from '../../sending/request.ts';
import type { Context } from '../../store/context.ts';
import { idempotencyKey, REPLAYED_HEADER } from '../api/sending/send.ts';
import { Reply, routesOf } from '../route.ts';
import {
  filled,
  headersFrom,
  ignored,
  mediaTypeOf,
  optional,
  refusedField,
  renamed,
  unwrapped,
} from './fields.ts';
import { authorizationOf, bySecret, type CompatError, type ProviderInterface } from './provider.ts';
import {
  type CompatContext,
  type CompatMail,
  type CompatServices,
  compatSender,
  faultIn,
  sendEach,
} from './sending.ts';
import { templateIdOf } from './templates.ts';

/* The endpoints of Resend for mail: send, send a batch, read, reschedule, cancel. */

const route = routesOf({ tag: 'Resend', scope: 'transactional' });
const readRoute = routesOf({ tag: 'Resend', scope: 'setup' });

const MAX_BATCH = 100;

const text = optional(z.string());
const addresses = optional(z.union([z.string(), z.array(z.string()).max(50)]));
/** A Buffer of Node in JSON. */
const bytes = z
  .object({ type: z.literal('Buffer'), data: z.array(z.int().min(0).max(255)) })
  .transform(({ data }) => Buffer.from(data).toString('base64'));

const attachment = z.object({
  filename: text,
  content: optional(z.union([z.string(), bytes], 'must be base64')),
  content_type: text,
  content_id: text,
  inline_content_id: text,
  /** An https address. */
  path: text,
});

const email = z.object({
  from: z.string(),
  to: addresses,
  cc: addresses,
  bcc: addresses,
  reply_to: addresses,
  subject: text,
  html: text,
  text,
  headers: optional(z.record(z.string(), z.string())),
  attachments: optional(z.array(attachment).max(50)),
  tags: optional(z.array(z.object({ name: z.string(), value: z.string() })).max(50)),
  scheduled_at: text,
  template: optional(z.object({ id: z.string(), variables: optional(z.record(z.string(), z.unknown())) })),
  topic_id: refusedField('is not supported: recipients unsubscribe from groups and streams'),
  react: ignored,
});

type Email = z.output<typeof email>;

/** Names of fields in errors, by ours. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['replyTo', 'reply_to'],
  ['scheduledAt', 'scheduled_at'],
  ['templateId', 'template.id'],
  ['templateVariables', 'template.variables'],
  ['metadata', 'tags'],
  ['attachments[].url', 'path'],
  ['attachments[].name', 'filename'],
  ['attachments[].contentType', 'content_type'],
]);

/** `POST /emails`, `POST /emails/batch`, `GET` and `PATCH /emails/{id}`, `POST /emails/{id}/cancel`. */
export function resend(
  context: CompatContext & Pick<Context, 'reader'>,
  services: CompatServices & { authenticator: Authenticator; queuedMail: QueuedMail },
): ProviderInterface {
  const send = compatSender(context, services, 'resend');
  const { queuedMail } = services;
  return {
    routes: [
      route('POST /compat/resend/emails', {
        operationId: 'compatResendSend',
        summary: 'Send a mail',
        stores: () => false,
        limit: 'send',
        body: email,
        handle: async ({ caller, body, headers }) => {
          const mail = mailOf(context, caller.accountId, body);
          if (isRefusal(mail)) return renamed(mail, NAMES);
          const key = idempotencyKey(headers['idempotency-key']);
          if (isRefusal(key)) return key;
          const sent = await send(caller, mail, key);
          if (isRefusal(sent)) return renamed(sent, NAMES);
          return new Reply(
            { raw: JSON.stringify({ id: sent.messageId }) },
            sent.isReplay ? { headers: REPLAYED_HEADER } : {},
          );
        },
      }),
      route('POST /compat/resend/emails/batch', {
        operationId: 'compatResendBatch',
        summary: 'Send up to 100 mails',
        stores: () => false,
        limit: 'send',
        body: z.array(email).min(1).max(MAX_BATCH),
        handle: async ({ caller, body, headers, turn }) => {
          const isPermissive = headers['x-batch-validation'] === 'permissive';
          const key = idempotencyKey(headers['idempotency-key']);
          if (isRefusal(key)) return key;
          const now = context.clock.now();
          const mails: CompatMail[] = [];
          const errors: { index: number; message: string }[] = [];
          for (const [index, one] of body.entries()) {
            const found = mailOf(context, caller.accountId, one);
            const mail = isRefusal(found) ? found : ((await faultIn([found], now, turn)) ?? found);
            if (!isRefusal(mail)) mails.push(mail);
            else if (!isPermissive) return renamed(mail, NAMES);
            else errors.push({ index, message: renamed(mail, NAMES).message });
          }
          if (mails.length === 0) return new Reply({ raw: JSON.stringify({ data: [], errors }) });
          const sent = await sendEach(send, caller, mails, key);
          if (isRefusal(sent)) return renamed(sent, NAMES);
          // A mail whose recipients are suppressed has no message: as there, the batch is accepted.
          const data = sent.map((each) => ({ id: each?.messageId ?? '' }));
          return new Reply({ raw: JSON.stringify(isPermissive ? { data, errors } : { data }) });
        },
      }),
      readRoute('GET /compat/resend/emails/{id}', {
        operationId: 'compatResendGet',
        summary: 'Get a mail',
        handle: async ({ caller, params: { id } }) => {
          const history = await context.reader.query(caller.accountId, messageHistory, id);
          if (history === null || history.message.account_id !== caller.accountId)
            return refuse('MESSAGE_NOT_FOUND', 'Email not found');
          const shown = presentMessage(history.message, history.reason);
          return new Reply({
            raw: JSON.stringify({
              object: 'email',
              id,
              from: shown.from,
              to: [shown.recipient],
              cc: [],
              bcc: [],
              reply_to: [],
              subject: shown.subject,
              html: null,
              text: null,
              created_at: shown.createdAt,
              scheduled_at: shown.status === 'scheduled' ? (shown.nextAttemptAt ?? null) : null,
              last_event: LAST_EVENT[shown.status] ?? shown.status,
            }),
          });
        },
      }),
      readRoute('PATCH /compat/resend/emails/{id}', {
        operationId: 'compatResendReschedule',
        refusesTestKeys: 'always',
        summary: 'Change the time of a scheduled mail',
        stores: () => false,
        body: z.object({ scheduled_at: z.string() }),
        handle: async ({ caller, params: { id }, body }) => {
          const changed = await queuedMail.reschedule(caller.accountId, id, body.scheduled_at);
          return isRefusal(changed) ? renamed(changed, NAMES) : new Reply({ raw: objectOf(id) });
        },
      }),
      readRoute('POST /compat/resend/emails/{id}/cancel', {
        operationId: 'compatResendCancel',
        summary: 'Cancel a scheduled mail',
        stores: () => false,
        handle: async ({ caller, params: { id } }) => {
          const cancelled = await queuedMail.cancel(caller.accountId, id);
          return isRefusal(cancelled) ? cancelled : new Reply({ raw: objectOf(id) });
        },
      }),
    ],
    authenticate: bySecret(services.authenticator, (req) => authorizationOf(req, 'bearer')),
    errorOf,
  };
}

function objectOf(id: string): string {
  return JSON.stringify({ object: 'email', id });
}

function mailOf({ tables }: CompatContext, accountId: string, given: Email): CompatMail | Refusal {
  const { template, tags = [], headers = {} } = given;
  const templateId = template === undefined ? undefined : templateIdOf(tables, accountId, template.id);
  if (isRefusal(templateId)) return templateId;
  const fields = headersFrom(Object.entries(headers));
  if (isRefusal(fields)) return fields;
  if (new Set(tags.map(({ name }) => name)).size < tags.length)
    return invalid('tags', 'must not have a name twice');
  const body: SendRequest = {
    from: given.from,
    to: given.to,
    cc: given.cc,
    bcc: given.bcc,
    replyTo: given.reply_to === undefined || given.reply_to.length === 0 ? undefined : given.reply_to,
    subject: given.subject,
    html: filled(given.html),
    text: given.text,
    headers: fields,
    attachments: (given.attachments ?? []).map((file) => {
      const contentId = file.content_id ?? file.inline_content_id;
      return {
        name: file.filename,
        content: file.content === undefined ? undefined : unwrapped(file.content),
        url: file.path,
        contentType:
          file.path === undefined ? mediaTypeOf(file.filename ?? '', file.content_type) : file.content_type,
        ...(contentId === undefined ? {} : { contentId }),
      };
    }),
    metadata: Object.fromEntries(tags.map(({ name, value }) => [name, value])),
    scheduledAt: given.scheduled_at,
    templateId,
    ...(template === undefined ? {} : { templateVariables: template.variables }),
  };
  return given.scheduled_at !== undefined && isForSeveral(body)
    ? SCHEDULED_FOR_SEVERAL
    : { stream: null, body };
}

/** Its id is that of one message: to cancel it would not cancel the mail to the other recipients. */
const SCHEDULED_FOR_SEVERAL = invalid(
  'scheduled_at',
  'needs a single recipient: send to each recipient in a request of its own',
);

function isForSeveral({ to, cc, bcc }: SendRequest): boolean {
  const lists = [to, cc, bcc].flatMap((list) => list ?? []);
  return lists.flatMap((list) => parseMailboxList(list, () => false)).length > 1;
}

/** The names of Resend for the statuses of messages. */
const LAST_EVENT: Record<string, string> = {
  sending: 'sent',
  deferred: 'delivery_delayed',
  cancelled: 'canceled',
};

/** Status and name of Resend, by the code of a refusal. https://resend.com/docs/api-reference/errors */
const ERRORS: Partial<Record<RefusalCode, readonly [status: number, name: string]>> = {
  UNAUTHENTICATED: [401, 'invalid_api_key'],
  INSUFFICIENT_SCOPE: [401, 'restricted_api_key'],
  KEY_NOT_ALLOWED: [403, 'validation_error'],
  ACCOUNT_DISABLED: [403, 'validation_error'],
  DOMAIN_NOT_REGISTERED: [403, 'validation_error'],
  DOMAIN_NOT_VERIFIED: [403, 'validation_error'],
  USE_CASE_MISMATCH: [403, 'validation_error'],
  MESSAGE_NOT_FOUND: [404, 'not_found'],
  NOT_FOUND: [404, 'not_found'],
  METHOD_NOT_ALLOWED: [405, 'method_not_allowed'],
  REQUEST_TIMEOUT: [408, 'validation_error'],
  INVALID_STATE: [422, 'validation_error'],
  IDEMPOTENCY_KEY_REUSED: [409, 'invalid_idempotent_request'],
  IDEMPOTENCY_IN_PROGRESS: [409, 'concurrent_idempotent_requests'],
  PAYLOAD_TOO_LARGE: [413, 'validation_error'],
  ATTACHMENTS_TOO_LARGE: [422, 'invalid_attachment'],
  ATTACHMENT_NOT_FETCHED: [422, 'invalid_attachment'],
  TOO_MANY_ATTACHMENTS: [422, 'invalid_attachment'],
  LIMIT_REACHED: [429, 'daily_quota_exceeded'],
  RATE_LIMITED: [429, 'rate_limit_exceeded'],
  INTERNAL_ERROR: [500, 'internal_server_error'],
  UNAVAILABLE: [503, 'application_error'],
};

function errorOf({ code, message }: Refusal): CompatError {
  const [statusCode, name] = ERRORS[code] ?? [422, 'validation_error'];
  return { status: statusCode, body: { statusCode, name, message } };
}
