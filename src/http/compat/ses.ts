import type { IncomingHttpHeaders } from 'node:http';
import * as z from 'zod';
import type { Authenticator } from '../../accounts/authenticate.ts';
import { invalid, isRefusal, type Refusal, type RefusalCode } from '../../core/refusal.ts';
import { bytesOfBase64, type SendRequest } from '../../sending/request.ts';
import type { Context } from '../../store/context.ts';
import { idempotencyKey, REPLAYED_HEADER } from '../api/sending/send.ts';
import { addressesOf, type RawMail } from '../api/sending/send-raw.ts';
import { type AnyCall, Reply, routesOf } from '../route.ts';
import { parseInput } from '../validation/parse.ts';
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
import type { CompatError, ProviderInterface } from './provider.ts';
import {
  type CompatContext,
  type CompatMail,
  type CompatServices,
  compatSender,
  faultIn,
  itemSender,
} from './sending.ts';
import { bySignature } from './signature.ts';
import { templateIdOf } from './templates.ts';

/* The sending endpoints of version 2 of Amazon SES: a mail by its parts, as MIME or from a template, and a bulk of them. */

const route = routesOf({ tag: 'SES', scope: 'transactional' });

/** Mails of one bulk. */
const MAX_ENTRIES = 50;

const text = optional(z.string());
const addresses = optional(z.array(z.string()).max(50));
const content = z.object({ Data: z.string(), Charset: ignored });

const destination = z.object({ ToAddresses: addresses, CcAddresses: addresses, BccAddresses: addresses });
const headers = optional(z.array(z.object({ Name: z.string(), Value: z.string() })).max(50));
const tags = optional(z.array(z.object({ Name: z.string(), Value: z.string() })).max(50));

const attachments = optional(
  z
    .array(
      z.object({
        RawContent: z.string(),
        FileName: z.string(),
        ContentType: text,
        ContentDisposition: optional(z.enum(['ATTACHMENT', 'INLINE'])),
        ContentId: text,
        ContentDescription: ignored,
        ContentTransferEncoding: ignored,
      }),
    )
    .max(50),
);

const simple = z.object({
  Subject: content,
  Body: z.object({ Html: optional(content), Text: optional(content) }),
  Headers: headers,
  Attachments: attachments,
});

const template = z.object({
  TemplateName: text,
  TemplateArn: text,
  TemplateContent: refusedField('is not supported: create a template'),
  TemplateData: text,
  Headers: headers,
  Attachments: attachments,
});

/** Fields of both operations without an effect. */
const COMMON = {
  FromEmailAddressIdentityArn: ignored,
  FeedbackForwardingEmailAddress: ignored,
  FeedbackForwardingEmailAddressIdentityArn: ignored,
  ConfigurationSetName: ignored,
  EndpointId: ignored,
  TenantName: ignored,
};

const email = z.object({
  ...COMMON,
  FromEmailAddress: text,
  Destination: optional(destination),
  ReplyToAddresses: addresses,
  Content: z.object({
    Simple: optional(simple),
    Raw: optional(z.object({ Data: z.string() })),
    Template: optional(template),
  }),
  EmailTags: tags,
  ListManagementOptions: refusedField('is not supported: recipients unsubscribe from groups and streams'),
});

const entry = z.object({
  Destination: destination,
  ReplacementTags: tags,
  ReplacementHeaders: headers,
  ReplacementEmailContent: optional(
    z.object({ ReplacementTemplate: optional(z.object({ ReplacementTemplateData: text })) }),
  ),
});

const bulk = z.object({
  ...COMMON,
  FromEmailAddress: z.string(),
  ReplyToAddresses: addresses,
  DefaultContent: z.object({ Template: template }),
  DefaultEmailTags: tags,
  BulkEmailEntries: z.array(entry).min(1).max(MAX_ENTRIES),
});

type Email = z.output<typeof email>;
type Template = z.output<typeof template>;
type Pairs = readonly { Name: string; Value: string }[];

const variables = z.record(z.string(), z.unknown());

/** Names of fields in errors, by ours. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['from', 'FromEmailAddress'],
  ['to', 'ToAddresses'],
  ['cc', 'CcAddresses'],
  ['bcc', 'BccAddresses'],
  ['replyTo', 'ReplyToAddresses'],
  ['subject', 'Subject'],
  ['html', 'Html'],
  ['text', 'Text'],
  ['headers', 'Headers'],
  ['attachments', 'Attachments'],
  ['templateId', 'TemplateName'],
  ['templateVariables', 'TemplateData'],
  ['metadata', 'EmailTags'],
  ['raw', 'Data'],
]);

/** `POST /v2/email/outbound-emails` and `/v2/email/outbound-bulk-emails`. */
export function ses(
  context: CompatContext & Pick<Context, 'seal'>,
  services: CompatServices & { authenticator: Authenticator; rawMail: RawMail },
): ProviderInterface {
  const send = compatSender(context, services, 'ses');
  const asItem = itemSender(context);
  return {
    routes: [
      route('POST /compat/ses/v2/email/outbound-emails', {
        operationId: 'compatSesSend',
        summary: 'Send a mail',
        stores: () => false,
        limit: 'send',
        body: email,
        handle: async ({ caller, body, headers: fields }) => {
          const mail = await mailOf(context, services, caller.accountId, body);
          if (isRefusal(mail)) return renamed(mail, NAMES);
          const key = keyOf(fields);
          if (isRefusal(key)) return key;
          const sent = await send(caller, mail, key);
          if (isRefusal(sent)) return renamed(sent, NAMES);
          return new Reply(
            { raw: JSON.stringify({ MessageId: sent.messageId }) },
            sent.isReplay ? { headers: REPLAYED_HEADER } : {},
          );
        },
      }),
      route('POST /compat/ses/v2/email/outbound-bulk-emails', {
        operationId: 'compatSesBulk',
        summary: 'Send up to 50 mails from a template',
        stores: () => false,
        limit: 'send',
        body: bulk,
        handle: async ({ caller, body, headers: fields, requestId, turn }) => {
          const key = keyOf(fields);
          if (isRefusal(key)) return key;
          const results: object[] = [];
          for (const [index, one] of body.BulkEmailEntries.entries()) {
            const mail = await checkedEntry(context, caller.accountId, body, one, turn);
            const sent = isRefusal(mail)
              ? mail
              : await asItem({ requestId }, index, () =>
                  send(caller, mail, key === null ? null : `${key}#${index}`),
                );
            results.push(
              isRefusal(sent)
                ? entryError(renamed(sent, NAMES))
                : { Status: 'SUCCESS', MessageId: sent.messageId },
            );
          }
          return new Reply({ raw: JSON.stringify({ BulkEmailEntryResults: results }) });
        },
      }),
    ],
    authenticate: bySignature(context, services.authenticator, 'ses'),
    errorOf,
  };
}

/**
 * The idempotency key of a request: SDKs send the same id with each attempt of a call, so that those which they repeat after
 * a timeout or a lost response send nothing more.
 */
function keyOf(fields: IncomingHttpHeaders): string | null | Refusal {
  return idempotencyKey(
    fields['idempotency-key'] ?? fields['amz-sdk-invocation-id'] ?? fields['aws-sdk-invocation-id'],
  );
}

async function mailOf(
  context: CompatContext,
  services: { rawMail: RawMail },
  accountId: string,
  given: Email,
): Promise<CompatMail | Refusal> {
  const { Simple, Raw, Template } = given.Content;
  if ([Simple, Raw, Template].filter((one) => one !== undefined).length !== 1)
    return invalid('Content', 'must have one of Simple, Raw and Template');
  if (Raw !== undefined) return rawMailOf(services, accountId, given, Raw.Data);
  if (given.FromEmailAddress === undefined) return invalid('FromEmailAddress', 'is required');
  const common = commonPart(given.FromEmailAddress, given, given.EmailTags ?? []);
  if (isRefusal(common)) return common;
  if (Template !== undefined) return templateMail(context, accountId, common, Template, {}, []);
  const fields = headersFrom((Simple?.Headers ?? []).map(({ Name, Value }) => [Name, Value]));
  if (isRefusal(fields)) return fields;
  return {
    stream: null,
    body: {
      ...common,
      subject: Simple?.Subject.Data,
      html: filled(Simple?.Body.Html?.Data),
      text: Simple?.Body.Text?.Data,
      headers: fields,
      attachments: filesOf(Simple?.Attachments),
    },
  };
}

/** The parts of a mail that do not depend on its kind of content. */
function commonPart(
  from: string,
  { Destination, ReplyToAddresses = [] }: Pick<Email, 'Destination' | 'ReplyToAddresses'>,
  given: Pairs,
): SendRequest | Refusal {
  if (new Set(given.map(({ Name }) => Name)).size < given.length)
    return invalid('metadata', 'must not have a name twice');
  return {
    from,
    to: Destination?.ToAddresses,
    cc: Destination?.CcAddresses,
    bcc: Destination?.BccAddresses,
    replyTo: ReplyToAddresses.length === 0 ? undefined : ReplyToAddresses,
    metadata: Object.fromEntries(given.map(({ Name, Value }) => [Name, Value])),
  };
}

/** A whole mail, which is transactional. Its envelope is the destination, or without one the recipients that it names. */
async function rawMailOf(
  { rawMail }: { rawMail: RawMail },
  accountId: string,
  given: Email,
  data: string,
): Promise<CompatMail | Refusal> {
  const raw = bytesOfBase64(unwrapped(data));
  if (raw === null) return invalid('raw', 'must be base64');
  const common = commonPart('', given, given.EmailTags ?? []);
  if (isRefusal(common)) return common;
  const lists = [common.to, common.cc, common.bcc].flatMap((list) => list ?? []);
  const recipients = lists.length === 0 ? null : addressesOf(lists);
  if (isRefusal(recipients)) return recipients;
  const read = await rawMail.read(accountId, raw, recipients);
  if (isRefusal(read)) return read;
  const { body } = read;
  return {
    stream: 'tx',
    body: {
      ...body,
      replyTo: body.replyTo ?? common.replyTo,
      metadata: { ...body.metadata, ...common.metadata },
    },
  };
}

/** `replaced`, `fields`: the variables and header fields that replace those of the template. */
function templateMail(
  { tables }: CompatContext,
  accountId: string,
  common: SendRequest,
  given: Template,
  replaced: Record<string, unknown>,
  fields: Pairs,
): CompatMail | Refusal {
  const name = given.TemplateName ?? given.TemplateArn?.slice(given.TemplateArn.lastIndexOf('/') + 1);
  if (name === undefined) return invalid('templateId', 'is required');
  const templateId = templateIdOf(tables, accountId, name);
  if (isRefusal(templateId)) return templateId;
  const own = variablesIn('TemplateData', given.TemplateData);
  if (isRefusal(own)) return own;
  const names = new Set(fields.map(({ Name }) => Name.toLowerCase()));
  const kept = (given.Headers ?? []).filter(({ Name }) => !names.has(Name.toLowerCase()));
  const all = headersFrom([...kept, ...fields].map(({ Name, Value }) => [Name, Value]));
  if (isRefusal(all)) return all;
  return {
    stream: null,
    body: {
      ...common,
      templateId,
      templateVariables: { ...own, ...replaced },
      headers: all,
      attachments: filesOf(given.Attachments),
    },
  };
}

/** The mail of one entry of a bulk, checked in a turn of its own: all may have the same large attachments. */
async function checkedEntry(
  context: CompatContext,
  accountId: string,
  given: z.output<typeof bulk>,
  one: z.output<typeof entry>,
  turn: AnyCall['turn'],
): Promise<CompatMail | Refusal> {
  const names = new Set((one.ReplacementTags ?? []).map(({ Name }) => Name));
  const kept = (given.DefaultEmailTags ?? []).filter(({ Name }) => !names.has(Name));
  const common = commonPart(
    given.FromEmailAddress,
    { Destination: one.Destination, ReplyToAddresses: given.ReplyToAddresses },
    [...kept, ...(one.ReplacementTags ?? [])],
  );
  if (isRefusal(common)) return common;
  const data = one.ReplacementEmailContent?.ReplacementTemplate?.ReplacementTemplateData;
  const own = variablesIn('ReplacementTemplateData', data);
  if (isRefusal(own)) return own;
  const mail = templateMail(
    context,
    accountId,
    common,
    given.DefaultContent.Template,
    own,
    one.ReplacementHeaders ?? [],
  );
  return isRefusal(mail) ? mail : ((await faultIn([mail], context.clock.now(), turn)) ?? mail);
}

/** The variables in a JSON object. */
function variablesIn(field: string, json: string | undefined): Record<string, unknown> | Refusal {
  if (json === undefined || json.trim() === '') return {};
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return invalid(field, 'must be JSON');
  }
  const parsed = parseInput(variables, value, field);
  return isRefusal(parsed) ? invalid(field, 'must be an object of JSON') : parsed;
}

function filesOf(given: z.output<typeof attachments>): SendRequest['attachments'] {
  return (given ?? []).map(({ RawContent, FileName, ContentType, ContentDisposition, ContentId }) => ({
    name: FileName,
    content: unwrapped(RawContent),
    contentType: mediaTypeOf(FileName, ContentType),
    ...(ContentDisposition === 'INLINE' && ContentId !== undefined ? { contentId: ContentId } : {}),
  }));
}

/** Status and exception of SES, by the code of a refusal. https://docs.aws.amazon.com/ses/latest/APIReference-V2/ */
const ERRORS: Partial<Record<RefusalCode, readonly [status: number, type: string]>> = {
  INVALID_JSON: [400, 'SerializationException'],
  UNAUTHENTICATED: [403, 'UnrecognizedClientException'],
  INSUFFICIENT_SCOPE: [403, 'AccessDeniedException'],
  KEY_NOT_ALLOWED: [403, 'AccessDeniedException'],
  ACCOUNT_DISABLED: [400, 'SendingPausedException'],
  DOMAIN_NOT_REGISTERED: [400, 'MessageRejected'],
  DOMAIN_NOT_VERIFIED: [400, 'MailFromDomainNotVerifiedException'],
  USE_CASE_MISMATCH: [400, 'MessageRejected'],
  CONSENT_REQUIRED: [400, 'MessageRejected'],
  RECIPIENT_SUPPRESSED: [400, 'MessageRejected'],
  RECIPIENT_UNSUBSCRIBED: [400, 'MessageRejected'],
  TEMPLATE_NOT_FOUND: [404, 'NotFoundException'],
  NOT_FOUND: [404, 'UnknownOperationException'],
  METHOD_NOT_ALLOWED: [405, 'UnknownOperationException'],
  REQUEST_TIMEOUT: [408, 'RequestTimeout'],
  IDEMPOTENCY_KEY_REUSED: [409, 'ConflictException'],
  // The SDK repeats it, and then gets the response of the request in progress.
  IDEMPOTENCY_IN_PROGRESS: [429, 'TooManyRequestsException'],
  PAYLOAD_TOO_LARGE: [413, 'BadRequestException'],
  LIMIT_REACHED: [400, 'LimitExceededException'],
  RATE_LIMITED: [429, 'TooManyRequestsException'],
  INTERNAL_ERROR: [500, 'InternalServiceErrorException'],
  UNAVAILABLE: [503, 'ServiceUnavailable'],
};

function errorOf({ code, message, extras: { details = [] } }: Refusal): CompatError {
  const [status, exception] = ERRORS[code] ?? [400, 'BadRequestException'];
  // Which fault a signature has.
  const type = code === 'UNAUTHENTICATED' ? (details[0]?.name ?? exception) : exception;
  return { status, body: { message }, headers: { 'x-amzn-ErrorType': type } };
}

/** Statuses of entries of a bulk, by the code of a refusal. */
const ENTRY_STATUS: Partial<Record<RefusalCode, string>> = {
  ACCOUNT_DISABLED: 'ACCOUNT_SENDING_PAUSED',
  DOMAIN_NOT_REGISTERED: 'MESSAGE_REJECTED',
  DOMAIN_NOT_VERIFIED: 'MAIL_FROM_DOMAIN_NOT_VERIFIED',
  USE_CASE_MISMATCH: 'MESSAGE_REJECTED',
  CONSENT_REQUIRED: 'MESSAGE_REJECTED',
  RECIPIENT_SUPPRESSED: 'MESSAGE_REJECTED',
  RECIPIENT_UNSUBSCRIBED: 'MESSAGE_REJECTED',
  TEMPLATE_NOT_FOUND: 'TEMPLATE_NOT_FOUND',
  LIMIT_REACHED: 'ACCOUNT_DAILY_QUOTA_EXCEEDED',
  RATE_LIMITED: 'ACCOUNT_THROTTLED',
  IDEMPOTENCY_IN_PROGRESS: 'TRANSIENT_FAILURE',
  INTERNAL_ERROR: 'FAILED',
  UNAVAILABLE: 'TRANSIENT_FAILURE',
};

function entryError({ code, message }: Refusal): object {
  return { Status: ENTRY_STATUS[code] ?? 'INVALID_PARAMETER', Error: message };
}
