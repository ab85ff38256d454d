import * as z from 'zod';
import type { Authenticator } from '../../accounts/authenticate.ts';
import { invalid, isRefusal, type Refusal, type RefusalCode } from '../../core/refusal.ts';
import type { Stream } from '../../store/domains/domains.ts';
import { sendItems } from '../api/sending/batch-items.ts';
import { idempotencyKey, REPLAYED_HEADER } from '../api/sending/send.ts';
import type { JsonElement } from '../body/json-parse.ts';
import { type AnyCall, Reply, type Route, routesOf } from '../route.ts';
import { parseInput } from '../validation/parse.ts';
import { filled, headersFrom, ignored, mediaTypeOf, optional, renamed, unwrapped } from './fields.ts';
import { bySecret, type CompatError, headerOf, type ProviderInterface } from './provider.ts';
import {
  type CompatContext,
  type CompatMail,
  type CompatServices,
  compatSender,
  itemSender,
} from './sending.ts';
import { templateIdOf } from './templates.ts';

/* The sending endpoints of Postmark: single messages and batches, with content or a template. */

const route = routesOf({ tag: 'Postmark', scope: 'transactional' });

const MAX_ITEMS = 500;
const MAX_BATCH_BYTES = 32 * 1024 * 1024;
/** The names that Postmark gives its two default streams. */
const STREAM_OF: ReadonlyMap<string, Stream> = new Map([
  ['outbound', 'tx'],
  ['broadcast', 'mk'],
]);

const text = optional(z.string());
const pair = z.object({ Name: z.string(), Value: z.string() });

const attachment = z.object({
  Name: z.string(),
  Content: z.string(),
  ContentType: optional(z.string()),
  ContentID: text,
});

const message = z.object({
  From: z.string(),
  To: text,
  Cc: text,
  Bcc: text,
  ReplyTo: text,
  Subject: text,
  HtmlBody: text,
  TextBody: text,
  Tag: text,
  Metadata: optional(z.record(z.string(), z.string())),
  Headers: optional(z.array(pair).max(50)),
  Attachments: optional(z.array(attachment).max(50)),
  TrackOpens: optional(z.boolean()),
  TrackLinks: optional(z.enum(['None', 'HtmlAndText', 'HtmlOnly', 'TextOnly'])),
  MessageStream: text,
  TemplateId: optional(z.union([z.int(), z.string()])),
  TemplateAlias: text,
  TemplateModel: optional(z.record(z.string(), z.unknown())),
  // The html is sent as it is stored: its styles were inlined when the template was made.
  InlineCss: ignored,
});

type Message = z.output<typeof message>;

/** Names of fields in errors, by ours. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['from', 'From'],
  ['to', 'To'],
  ['cc', 'Cc'],
  ['bcc', 'Bcc'],
  ['replyTo', 'ReplyTo'],
  ['subject', 'Subject'],
  ['html', 'HtmlBody'],
  ['text', 'TextBody'],
  ['headers', 'Headers'],
  ['attachments', 'Attachments'],
  ['templateId', 'TemplateId'],
  ['templateVariables', 'TemplateModel'],
  ['tags', 'Tag'],
  ['metadata', 'Metadata'],
]);

/** `POST /email`, `/email/batch`, `/email/withTemplate` and `/email/batchWithTemplates`. */
export function postmark(
  context: CompatContext,
  services: CompatServices & { authenticator: Authenticator },
): ProviderInterface {
  const send = compatSender(context, services, 'postmark');
  const asItem = itemSender(context);

  /** Sends one message; returns the body of its response. */
  async function sendOne(
    { caller, headers }: Pick<AnyCall, 'caller' | 'headers'>,
    input: unknown,
    index: number | null,
  ): Promise<{ body: object; isReplay: boolean } | Refusal> {
    const parsed = parseInput(message, input, 'message');
    if (isRefusal(parsed)) return parsed;
    const mail = mailOf(context, caller.accountId, parsed);
    if (isRefusal(mail)) return renamed(mail, NAMES);
    const key = idempotencyKey(headers['idempotency-key']);
    if (isRefusal(key)) return key;
    const sent = await send(caller, mail, key === null || index === null ? key : `${key}#${index}`);
    if (isRefusal(sent)) return renamed(sent, NAMES);
    const { messageId, at, isReplay, skipped } = sent;
    const { To, Cc, Bcc } = parsed;
    const Message =
      skipped.length === 0
        ? 'OK'
        : `Message OK, but will not deliver to these inactive addresses: ${skipped.join(', ')}`;
    const body = { To, Cc, Bcc, SubmittedAt: at, MessageID: messageId, ErrorCode: 0, Message };
    return { body, isReplay };
  }

  async function sendItem(
    call: Pick<AnyCall, 'caller' | 'headers' | 'requestId' | 'turn'>,
    item: JsonElement,
    index: number,
  ): Promise<object> {
    await call.turn();
    const read = item.read();
    if (isRefusal(read)) return errorOf(read).body;
    const sent = await asItem(call, index, () => sendOne(call, read.value, index));
    return isRefusal(sent) ? errorOf(sent).body : sent.body;
  }

  function single(path: string, operationId: string): Route {
    return route(`POST /compat/postmark${path}`, {
      operationId,
      summary: 'Send a message',
      stores: () => false,
      limit: 'send',
      body: z.looseObject({}),
      handle: async (call) => {
        const sent = await sendOne(call, call.body, null);
        if (isRefusal(sent)) return sent;
        return new Reply(
          { raw: JSON.stringify(sent.body) },
          sent.isReplay ? { headers: REPLAYED_HEADER } : {},
        );
      },
    });
  }

  function batch(path: string, operationId: string, isBody: boolean): Route {
    const messages = z.array(z.unknown()).max(MAX_ITEMS);
    return route(`POST /compat/postmark${path}`, {
      operationId,
      summary: 'Send up to 500 messages',
      stores: () => false,
      limit: MAX_BATCH_BYTES,
      body: z.strictObject({ Messages: messages }),
      list: { name: 'Messages', max: MAX_ITEMS, isBody },
      handle: async (call) => {
        const results = await sendItems(call.body.Messages, (item, index) => sendItem(call, item, index));
        return new Reply({ raw: JSON.stringify(results) });
      },
    });
  }

  return {
    routes: [
      single('/email', 'compatPostmarkEmail'),
      single('/email/withTemplate', 'compatPostmarkTemplate'),
      batch('/email/batch', 'compatPostmarkBatch', true),
      batch('/email/batchWithTemplates', 'compatPostmarkTemplateBatch', false),
    ],
    authenticate: bySecret(services.authenticator, (req) => headerOf(req, 'x-postmark-server-token')),
    errorOf,
  };
}

function mailOf(context: CompatContext, accountId: string, given: Message): CompatMail | Refusal {
  const { MessageStream, HtmlBody, TextBody, Headers = [], Attachments = [] } = given;
  const stream = MessageStream === undefined ? null : (STREAM_OF.get(MessageStream) ?? unknownStream());
  if (isRefusal(stream)) return stream;
  const headers = headersFrom(Headers.map(({ Name, Value }) => [Name, Value]));
  if (isRefusal(headers)) return headers;
  const template = templateOf(context, accountId, given);
  if (isRefusal(template)) return template;
  return {
    stream,
    body: {
      from: given.From,
      to: given.To,
      cc: given.Cc,
      bcc: given.Bcc,
      replyTo: filled(given.ReplyTo),
      // A message may have no subject there; that of a template is in the template.
      subject: given.Subject ?? (template === null ? '' : undefined),
      html: filled(HtmlBody),
      text: TextBody === '' && HtmlBody !== undefined ? undefined : TextBody,
      headers,
      attachments: Attachments.map(({ Name, Content, ContentType, ContentID }) => ({
        name: Name,
        content: unwrapped(Content),
        contentType: mediaTypeOf(Name, ContentType),
        ...(ContentID === undefined ? {} : { contentId: ContentID.replace(/^cid:/i, '') }),
      })),
      tags: given.Tag === undefined || given.Tag === '' ? undefined : [given.Tag],
      metadata: given.Metadata,
      enableOpenTracking: given.TrackOpens,
      enableClickTracking:
        given.TrackLinks === undefined
          ? undefined
          : given.TrackLinks === 'HtmlAndText' || given.TrackLinks === 'HtmlOnly',
      ...template,
    },
  };
}

/** The template and its variables; null: the message has its content. */
function templateOf(
  { tables }: CompatContext,
  accountId: string,
  { TemplateId, TemplateAlias, TemplateModel }: Message,
): Pick<CompatMail['body'], 'templateId' | 'templateVariables'> | null | Refusal {
  const reference = TemplateAlias ?? TemplateId;
  if (reference === undefined) return null;
  const templateId = templateIdOf(tables, accountId, String(reference));
  return isRefusal(templateId) ? templateId : { templateId, templateVariables: TemplateModel };
}

function unknownStream(): Refusal {
  return invalid('MessageStream', 'must be "outbound" or "broadcast"');
}

/** Status and error code of Postmark, by the code of a refusal. https://postmarkapp.com/developer/api/overview */
const ERRORS: Partial<Record<RefusalCode, readonly [status: number, code: number]>> = {
  UNAUTHENTICATED: [401, 10],
  INSUFFICIENT_SCOPE: [401, 10],
  KEY_NOT_ALLOWED: [422, 400],
  DOMAIN_NOT_REGISTERED: [422, 400],
  DOMAIN_NOT_VERIFIED: [422, 401],
  USE_CASE_MISMATCH: [422, 401],
  INVALID_JSON: [422, 402],
  LIMIT_REACHED: [422, 405],
  RECIPIENT_SUPPRESSED: [422, 406],
  RECIPIENT_UNSUBSCRIBED: [422, 406],
  CONSENT_REQUIRED: [422, 406],
  UNSUPPORTED_MEDIA_TYPE: [422, 409],
  ACCOUNT_DISABLED: [422, 413],
  TEMPLATE_NOT_FOUND: [422, 1101],
  NOT_FOUND: [404, 300],
  METHOD_NOT_ALLOWED: [405, 300],
  PAYLOAD_TOO_LARGE: [413, 300],
  REQUEST_TIMEOUT: [408, 300],
  IDEMPOTENCY_IN_PROGRESS: [409, 300],
  RATE_LIMITED: [429, 429],
  INTERNAL_ERROR: [500, 500],
  UNAVAILABLE: [503, 100],
};
const INVALID_REQUEST = [422, 300] as const;
const UNKNOWN_STREAM = 1235;
const INACTIVE = 406;

function errorOf(refusal: Refusal): CompatError {
  const [status, code] = ERRORS[refusal.code] ?? INVALID_REQUEST;
  const isStream = refusal.extras.details?.[0]?.field === 'MessageStream';
  return {
    status,
    body: {
      ErrorCode: isStream ? UNKNOWN_STREAM : code,
      Message: code === INACTIVE ? inactiveMessage(refusal) : refusal.message,
    },
  };
}

/** SDKs read the addresses from this sentence. */
function inactiveMessage({ message: why, extras: { details = [] } }: Refusal): string {
  const addresses = details.flatMap(({ recipient }) => recipient ?? []).join(', ');
  return `You tried to send to recipients that have been marked as inactive. Found inactive addresses: ${addresses}. Inactive recipients are ones that have generated a hard bounce, a spam complaint, or a manual suppression. ${why}`;
}
