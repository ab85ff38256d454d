import * as z from 'zod';
import type { Authenticator } from '../../accounts/authenticate.ts';
import { iso } from '../../core/clock.ts';
import { invalid, isRefusal, type Refusal } from '../../core/refusal.ts';
import { domainOf, formatMailbox, parseMailbox, parseMailboxList } from '../../mail/address.ts';
import type { SendRequest } from '../../sending/request.ts';
import { idempotencyKey } from '../api/sending/send.ts';
import { Reply, routesOf } from '../route.ts';
import { parseInput } from '../validation/parse.ts';
import { createSubstitution, filled, headersFrom, mediaTypeOf, renamed } from './fields.ts';
import { type FormValue, parseForm } from './form.ts';
import { authorizationOf, bySecret, type CompatError, type ProviderInterface } from './provider.ts';
import {
  type CompatContext,
  type CompatMail,
  type CompatServices,
  compatSender,
  faultIn,
  isGiven,
  sendEach,
} from './sending.ts';
import { templateIdOf } from './templates.ts';

/* `POST /v3/{domain}/messages` of Mailgun. With `recipient-variables` each recipient gets a mail of its own. */

const route = routesOf({ tag: 'Mailgun', scope: 'transactional' });

/** Mails of one request with `recipient-variables`. */
const MAX_MAILS = 1000;
/** Fields that would change the time or the content, and have no equivalent. */
const REFUSED: ReadonlySet<string> = new Set([
  'o:deliverytime-optimize-period',
  'o:time-zone-localize',
  'o:deliver-within',
  't:version',
  't:text',
  'amp-html',
]);
const YES: ReadonlySet<string> = new Set(['yes', 'true', 'True', 'htmlonly']);
const NO: ReadonlySet<string> = new Set(['no', 'false', 'False']);

type Form = ReadonlyMap<string, FormValue[]>;

/** Names of fields in errors, by ours. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['headers', 'h:'],
  ['replyTo', 'h:Reply-To'],
  ['attachments', 'attachment'],
  ['templateId', 'template'],
  ['templateVariables', 't:variables'],
  ['scheduledAt', 'o:deliverytime'],
  ['tags', 'o:tag'],
  ['metadata', 'v:'],
]);

const variables = z.record(z.string(), z.unknown());
const recipientVariables = z.record(z.string(), variables);

/** `POST /v3/{domain}/messages`. */
export function mailgun(
  context: CompatContext,
  services: CompatServices & { authenticator: Authenticator },
): ProviderInterface {
  const send = compatSender(context, services, 'mailgun');
  return {
    routes: [
      route('POST /compat/mailgun/v3/{domain}/messages', {
        operationId: 'compatMailgunMessages',
        summary: 'Send mail',
        stores: () => false,
        limit: 'send',
        file: ['multipart/form-data', 'application/x-www-form-urlencoded'],
        handle: async ({ caller, file, headers, turn }) => {
          const form = parseForm(file, headers['content-type'] ?? '');
          if (isRefusal(form)) return form;
          const mails = mailsOf(context, caller.accountId, form);
          if (isRefusal(mails)) return renamed(mails, NAMES);
          const key = idempotencyKey(headers['idempotency-key']);
          if (isRefusal(key)) return key;
          const fault = await faultIn(mails, context.clock.now(), turn);
          if (fault !== null) return renamed(fault, NAMES);
          const sent = await sendEach(send, caller, mails, key);
          if (isRefusal(sent)) return renamed(sent, NAMES);
          const id = sent.find((one) => one !== null)?.messageId ?? '';
          const from = parseMailbox(mails[0]?.body.from ?? '');
          const domain = typeof from === 'string' ? '' : domainOf(from.address);
          return new Reply({
            raw: JSON.stringify({ id: `<${id}@${domain}>`, message: 'Queued. Thank you.' }),
          });
        },
      }),
    ],
    authenticate: bySecret(services.authenticator, (req) => {
      const pair = Buffer.from(authorizationOf(req, 'basic'), 'base64').toString('latin1');
      return pair.startsWith('api:') ? pair.slice('api:'.length) : '';
    }),
    errorOf,
  };
}

function mailsOf(context: CompatContext, accountId: string, form: Form): CompatMail[] | Refusal {
  const refused = [...form.keys()].find((name) => REFUSED.has(name));
  if (refused !== undefined) return invalid(refused, 'is not supported');
  if (YES.has(one(form, 'o:testmode') ?? 'no'))
    return invalid('o:testmode', 'is not supported: use a test key');
  const body = requestOf(context, accountId, form);
  if (isRefusal(body)) return body;
  const individual = one(form, 'recipient-variables');
  if (individual === undefined || individual.trim() === '') return [{ stream: null, body }];
  const ofRecipients = jsonIn('recipient-variables', individual, recipientVariables);
  return isRefusal(ofRecipients) ? ofRecipients : individualMails(body, ofRecipients);
}

/** One mail for each recipient, with its variables in place of `%recipient.name%`. */
function individualMails(
  body: SendRequest,
  ofRecipients: Record<string, Record<string, unknown>>,
): CompatMail[] | Refusal {
  if (isGiven(body.cc) || isGiven(body.bcc))
    return invalid(isGiven(body.cc) ? 'cc' : 'bcc', 'cannot be given together with recipient-variables');
  let fault: Refusal | null = null;
  const recipients = [body.to ?? []].flat().flatMap((list) =>
    parseMailboxList(list, (_text, error) => {
      fault ??= invalid('to', error);
      return false;
    }),
  );
  if (fault !== null) return fault;
  if (recipients.length === 0) return invalid('to', 'is required');
  if (recipients.length > MAX_MAILS) return invalid('to', `must have at most ${MAX_MAILS} recipients`);
  const byAddress = new Map(Object.entries(ofRecipients).map(([name, value]) => [name.toLowerCase(), value]));
  const substitute = createSubstitution();
  const mails: CompatMail[] = [];
  for (const mailbox of recipients) {
    const own = byAddress.get(mailbox.address.toLowerCase()) ?? {};
    const words = Object.entries({ email: mailbox.address, ...own }).flatMap(([name, value]) =>
      [`%recipient.${name}%`, `%recipient_${name}%`].map((word) => [word, textOf(value)] as const),
    );
    const fill = (text: string | undefined) => (text === undefined ? undefined : substitute(text, words));
    const subject = fill(body.subject);
    const html = fill(body.html);
    const text = fill(body.text);
    if (subject === null || html === null || text === null)
      return invalid('recipient-variables', 'are too many for the length of the content');
    const templateVariables =
      body.templateId === undefined ? undefined : { ...body.templateVariables, ...own };
    const to = formatMailbox(mailbox);
    mails.push({ stream: null, body: { ...body, subject, html, text, to, templateVariables } });
  }
  return mails;
}

function requestOf(context: CompatContext, accountId: string, form: Form): SendRequest | Refusal {
  const texts = textsIn(form);
  if (isRefusal(texts)) return texts;
  const own = prefixed(form, 'h:').filter(([name]) => name.toLowerCase() !== 'reply-to');
  const headers = headersFrom(own);
  if (isRefusal(headers)) return headers;
  const replyTo = prefixed(form, 'h:').find(([name]) => name.toLowerCase() === 'reply-to')?.[1];
  const scheduledAt = deliveryTime(one(form, 'o:deliverytime'));
  if (isRefusal(scheduledAt)) return scheduledAt;
  const tracking = trackingOf(form);
  if (isRefusal(tracking)) return tracking;
  const template = templateOf(context, accountId, form);
  if (isRefusal(template)) return template;
  const isTemplate = 'templateId' in template;
  return {
    from: one(form, 'from') ?? '',
    to: all(form, 'to'),
    cc: all(form, 'cc'),
    bcc: all(form, 'bcc'),
    subject: one(form, 'subject') ?? (isTemplate ? undefined : ''),
    html: filled(one(form, 'html')),
    text: filled(one(form, 'text')),
    replyTo,
    headers,
    attachments: [...filesIn(form, 'attachment', false), ...filesIn(form, 'inline', true)],
    tags: all(form, 'o:tag'),
    metadata: Object.fromEntries(prefixed(form, 'v:')),
    scheduledAt,
    ...tracking,
    ...template,
  };
}

/** Refuses files where a text is expected. */
function textsIn(form: Form): Refusal | null {
  for (const [name, values] of form) {
    const isFile = name === 'attachment' || name === 'inline';
    if (values.some((value) => (typeof value === 'string') === isFile))
      return invalid(name.slice(0, 100), isFile ? 'must be a file' : 'must be a text');
  }
  return null;
}

function templateOf(
  { tables }: CompatContext,
  accountId: string,
  form: Form,
): Pick<SendRequest, 'templateId' | 'templateVariables'> | Refusal {
  const reference = one(form, 'template');
  if (reference === undefined) return {};
  const given = one(form, 't:variables');
  const own = given === undefined ? {} : jsonIn('t:variables', given, variables);
  if (isRefusal(own)) return own;
  const templateId = templateIdOf(tables, accountId, reference);
  if (isRefusal(templateId)) return templateId;
  return { templateId, templateVariables: { ...Object.fromEntries(prefixed(form, 'v:')), ...own } };
}

function trackingOf(form: Form): Pick<SendRequest, 'enableClickTracking' | 'enableOpenTracking'> | Refusal {
  const found: (boolean | undefined)[] = [];
  for (const name of ['o:tracking', 'o:tracking-clicks', 'o:tracking-opens']) {
    const value = one(form, name);
    if (value !== undefined && !YES.has(value) && !NO.has(value))
      return invalid(name, 'must be "yes" or "no"');
    found.push(value === undefined ? undefined : YES.has(value));
  }
  const [both, clicks, opens] = found;
  const isOff = both === false;
  return {
    enableClickTracking: isOff ? false : (clicks ?? both),
    enableOpenTracking: isOff ? false : (opens ?? both),
  };
}

/** An RFC 2822 date or Unix seconds. */
function deliveryTime(given: string | undefined): string | undefined | Refusal {
  if (given === undefined) return undefined;
  const at = /^\d{1,10}$/.test(given) ? Number(given) * 1000 : Date.parse(given.slice(0, 100));
  return Number.isNaN(at) ? invalid('o:deliverytime', 'must be an RFC 2822 date') : iso(at);
}

function jsonIn<Schema extends z.ZodType>(
  field: string,
  text: string,
  schema: Schema,
): z.output<Schema> | Refusal {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return invalid(field, 'must be JSON');
  }
  const parsed = parseInput(schema, value, field);
  return isRefusal(parsed) ? invalid(field, `is not valid: ${parsed.message}`) : parsed;
}

function filesIn(form: Form, name: string, isInline: boolean): NonNullable<SendRequest['attachments']> {
  return (form.get(name) ?? []).flatMap((value) =>
    typeof value === 'string'
      ? []
      : {
          name: value.name,
          contentType: mediaTypeOf(value.name, value.type),
          content: value.content.toString('base64'),
          ...(isInline ? { contentId: value.name } : {}),
        },
  );
}

/** The fields whose names begin with the prefix, without it. */
function prefixed(form: Form, prefix: string): [string, string][] {
  return [...form].flatMap(([name, values]) =>
    name.startsWith(prefix) ? values.map((value): [string, string] => [name.slice(2), textOf(value)]) : [],
  );
}

function one(form: Form, name: string): string | undefined {
  return all(form, name)[0];
}

function all(form: Form, name: string): string[] {
  return (form.get(name) ?? []).flatMap((value) => (typeof value === 'string' ? value : []));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? '');
}

/** Mailgun has a message only; its statuses are mostly ours. */
function errorOf({ code, status, message }: Refusal): CompatError {
  const theirs = code === 'INSUFFICIENT_SCOPE' ? 401 : status === 422 ? 400 : status;
  return { status: theirs, body: { message: theirs === 401 ? `Forbidden: ${message}` : message } };
}
