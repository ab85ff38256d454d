import * as z from 'zod';
import type { Authenticator } from '../../accounts/authenticate.ts';
import { iso } from '../../core/clock.ts';
import { invalid, isRefusal, type Refusal, type RefusalCode } from '../../core/refusal.ts';
import type { SendRequest } from '../../sending/request.ts';
import { idempotencyKey } from '../api/sending/send.ts';
import { Reply, routesOf } from '../route.ts';
import {
  createSubstitution,
  headersFrom,
  ignored,
  mailboxOf,
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

/* `POST /v3/mail/send` of SendGrid. Each personalization is a mail of its own. */

const route = routesOf({ tag: 'SendGrid', scope: 'transactional' });

const MAX_PERSONALIZATIONS = 1000;
/** Unix seconds in the year 2096. */
const MAX_SECONDS = 4_000_000_000;

const text = optional(z.string());
const texts = optional(z.record(z.string(), z.string()));
const address = z.object({ email: z.string(), name: text });
const addresses = optional(z.array(address).max(1000));
const seconds = optional(z.int().min(0).max(MAX_SECONDS));
const toggle = optional(z.object({ enable: optional(z.boolean()) }));

const personalization = z.object({
  to: addresses,
  cc: addresses,
  bcc: addresses,
  from: optional(address),
  subject: text,
  headers: texts,
  substitutions: optional(z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))),
  dynamic_template_data: optional(z.record(z.string(), z.unknown())),
  custom_args: texts,
  send_at: seconds,
});

const attachment = z.object({
  content: z.string(),
  filename: z.string(),
  type: text,
  disposition: optional(z.enum(['attachment', 'inline'])),
  content_id: text,
});

const mail = z.object({
  personalizations: z.array(personalization).min(1).max(MAX_PERSONALIZATIONS),
  from: address,
  reply_to: optional(address),
  reply_to_list: optional(z.array(address).max(1000)),
  subject: text,
  content: optional(
    z.array(z.object({ type: z.enum(['text/plain', 'text/html']), value: z.string() })).max(10),
  ),
  attachments: optional(z.array(attachment).max(50)),
  template_id: text,
  headers: texts,
  categories: optional(z.union([z.string(), z.array(z.string()).max(100)])),
  custom_args: texts,
  send_at: seconds,
  sections: refusedField('is not supported: put the text into the content or the template'),
  mail_settings: optional(
    z.object({
      sandbox_mode: toggle,
      footer: toggle,
      bypass_list_management: toggle,
      bypass_spam_management: toggle,
      bypass_bounce_management: toggle,
      bypass_unsubscribe_management: toggle,
    }),
  ),
  tracking_settings: optional(z.object({ click_tracking: toggle, open_tracking: toggle })),
  // Unsubscribing is the business of the footer and the preferences page: the groups of SendGrid do not exist here.
  asm: ignored,
  batch_id: ignored,
  ip_pool_name: ignored,
});

type Mail = z.output<typeof mail>;
type Personalization = z.output<typeof personalization>;

/** Names of fields in errors, by ours. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['from', 'from.email'],
  ['to', 'personalizations.to'],
  ['cc', 'personalizations.cc'],
  ['bcc', 'personalizations.bcc'],
  ['replyTo', 'reply_to'],
  ['html', 'content'],
  ['text', 'content'],
  ['templateId', 'template_id'],
  ['templateVariables', 'dynamic_template_data'],
  ['scheduledAt', 'send_at'],
  ['tags', 'categories'],
  ['metadata', 'custom_args'],
]);

/** `POST /v3/mail/send`. */
export function sendgrid(
  context: CompatContext,
  services: CompatServices & { authenticator: Authenticator },
): ProviderInterface {
  const send = compatSender(context, services, 'sendgrid');
  return {
    routes: [
      route('POST /compat/sendgrid/v3/mail/send', {
        operationId: 'compatSendgridSend',
        summary: 'Send mail',
        stores: () => false,
        limit: 'send',
        body: mail,
        handle: async ({ caller, body, headers, turn }) => {
          const mails = mailsOf(context, caller.accountId, body);
          if (isRefusal(mails)) return renamed(mails, NAMES);
          const key = idempotencyKey(headers['idempotency-key']);
          if (isRefusal(key)) return key;
          const fault = await faultIn(mails, context.clock.now(), turn);
          if (fault !== null) return renamed(fault, NAMES);
          if (body.mail_settings?.sandbox_mode?.enable === true)
            return new Reply({ raw: '' }, { status: 200, contentType: '' });
          const sent = await sendEach(send, caller, mails, key);
          if (isRefusal(sent)) return renamed(sent, NAMES);
          const id = sent.find((one) => one !== null)?.messageId ?? '';
          return new Reply({ raw: '' }, { status: 202, contentType: '', headers: { 'X-Message-Id': id } });
        },
      }),
    ],
    authenticate: bySecret(services.authenticator, (req) => authorizationOf(req, 'bearer')),
    errorOf,
  };
}

function mailsOf(context: CompatContext, accountId: string, given: Mail): CompatMail[] | Refusal {
  const { sandbox_mode: _, ...settings } = given.mail_settings ?? {};
  const changed = Object.entries(settings).find(([, setting]) => setting?.enable === true);
  if (changed !== undefined) return invalid(`mail_settings.${changed[0]}`, 'is not supported');
  const templateId =
    given.template_id === undefined ? undefined : templateIdOf(context.tables, accountId, given.template_id);
  if (isRefusal(templateId)) return templateId;
  const attachments = (given.attachments ?? []).map(
    ({ content, filename, type, content_id: id, disposition }) => ({
      name: filename,
      content: unwrapped(content),
      contentType: mediaTypeOf(filename, type),
      ...(id === undefined || disposition === 'attachment' ? {} : { contentId: id }),
    }),
  );
  const substitute = createSubstitution();
  const mails: CompatMail[] = [];
  for (const [index, one] of given.personalizations.entries()) {
    const body = requestOf(given, one, `personalizations[${index}]`, templateId, substitute);
    if (isRefusal(body)) return body;
    mails.push({ stream: null, body: { ...body, attachments } });
  }
  return mails;
}

function requestOf(
  given: Mail,
  one: Personalization,
  path: string,
  templateId: string | undefined,
  substitute: ReturnType<typeof createSubstitution>,
): SendRequest | Refusal {
  const from = one.from ?? given.from;
  const sender = mailboxOf('from', from.email, from.name);
  if (isRefusal(sender)) return sender;
  const recipients = recipientsOf(one, path);
  if (isRefusal(recipients)) return recipients;
  const replyTo = mailboxes(
    'reply_to',
    given.reply_to_list ?? (given.reply_to === undefined ? [] : [given.reply_to]),
  );
  if (isRefusal(replyTo)) return replyTo;
  const headers = headersFrom(Object.entries({ ...given.headers, ...one.headers }));
  if (isRefusal(headers)) return headers;
  const words = Object.entries(one.substitutions ?? {}).map(
    ([word, value]) => [word, String(value)] as const,
  );
  if (words.length > 0 && templateId !== undefined)
    return invalid(
      `${path}.substitutions`,
      'cannot be given together with template_id: use dynamic_template_data',
    );
  const subject = one.subject ?? given.subject;
  const filled = filledContent(substitute, words, subject, given.content ?? []);
  if (filled === null) return invalid(`${path}.substitutions`, 'are too many for the length of the content');
  const sendAt = one.send_at ?? given.send_at;
  const { categories } = given;
  const { click_tracking: clicks, open_tracking: opens } = given.tracking_settings ?? {};
  return {
    ...filled,
    ...recipients,
    from: sender,
    replyTo: replyTo.length === 0 ? undefined : replyTo,
    headers,
    templateId,
    ...(templateId === undefined ? {} : { templateVariables: one.dynamic_template_data }),
    tags: typeof categories === 'string' ? [categories] : categories,
    metadata: { ...given.custom_args, ...one.custom_args },
    scheduledAt: sendAt === undefined || sendAt === 0 ? undefined : iso(sendAt * 1000),
    enableClickTracking: clicks?.enable,
    enableOpenTracking: opens?.enable,
  };
}

/** Null: the substitutions are too many. */
function filledContent(
  substitute: ReturnType<typeof createSubstitution>,
  words: readonly (readonly [string, string])[],
  subject: string | undefined,
  content: readonly { type: string; value: string }[],
): Pick<SendRequest, 'subject' | 'html' | 'text'> | null {
  const valueOf = (type: string) => content.find((part) => part.type === type)?.value;
  const fill = (given: string | undefined) => (given === undefined ? undefined : substitute(given, words));
  const filled = {
    subject: fill(subject),
    html: fill(valueOf('text/html')),
    text: fill(valueOf('text/plain')),
  };
  const { html, text: plain } = filled;
  if (filled.subject === null || html === null || plain === null) return null;
  return { subject: filled.subject, html: html === '' ? undefined : html, text: plain };
}

function recipientsOf(one: Personalization, path: string): Pick<SendRequest, 'to' | 'cc' | 'bcc'> | Refusal {
  const to = mailboxes(`${path}.to`, one.to ?? []);
  if (isRefusal(to)) return to;
  const cc = mailboxes(`${path}.cc`, one.cc ?? []);
  if (isRefusal(cc)) return cc;
  const bcc = mailboxes(`${path}.bcc`, one.bcc ?? []);
  if (isRefusal(bcc)) return bcc;
  return to.length === 0 ? invalid(`${path}.to`, 'must name at least one recipient') : { to, cc, bcc };
}

function mailboxes(
  field: string,
  given: readonly { email: string; name: string | undefined }[],
): string[] | Refusal {
  const found: string[] = [];
  for (const [index, { email, name }] of given.entries()) {
    const mailbox = mailboxOf(`${field}[${index}].email`, email, name);
    if (isRefusal(mailbox)) return mailbox;
    found.push(mailbox);
  }
  return found;
}

/** Statuses that differ from ours: SendGrid answers 400 to all that is not valid. */
const STATUS: Partial<Record<RefusalCode, number>> = {
  UNAUTHENTICATED: 401,
  INSUFFICIENT_SCOPE: 401,
  ACCOUNT_DISABLED: 403,
  KEY_NOT_ALLOWED: 403,
  DOMAIN_NOT_REGISTERED: 403,
  DOMAIN_NOT_VERIFIED: 403,
  USE_CASE_MISMATCH: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  IDEMPOTENCY_IN_PROGRESS: 409,
  PAYLOAD_TOO_LARGE: 413,
  ATTACHMENTS_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  RATE_LIMITED: 429,
  LIMIT_REACHED: 429,
  INTERNAL_ERROR: 500,
  UNAVAILABLE: 503,
};

function errorOf({ code, message, extras: { details = [] } }: Refusal): CompatError {
  const errors = details
    .slice(0, 10)
    .map((detail) => ({ message: `${detail.field}: ${detail.message}`, field: detail.field, help: null }));
  return {
    status: STATUS[code] ?? 400,
    body: { errors: errors.length > 0 ? errors : [{ message, field: null, help: null }] },
  };
}
