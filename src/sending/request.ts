import { DAY, iso, MINUTE, parseMoment } from '../core/clock.ts';
import { INEXACT, inexactPath } from '../core/exact-numbers.ts';
import { invalid, isRefusal, type Refusal, type RefusalDetail, refuse, shortened } from '../core/refusal.ts';
import { domainOf, parseMailbox, parseMailboxList } from '../mail/address.ts';
import { BULK_FIELDS } from '../mail/compose.ts';
import {
  type Alternative,
  type Attachment,
  CONTENT_ID,
  type Mailbox,
  MEDIA_TYPE,
  type ReplyTo,
} from '../mail/content.ts';
import { isUrlList } from '../mail/headers.ts';
import { isServiceVariable } from '../mail/template.ts';
import { textFault } from '../mail/text-fault.ts';
import type { Stream } from '../store/domains/domains.ts';
import { writeLabels } from '../store/messages/labels.ts';
import type { Role } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import type { TemplateSource } from '../templates/templates.ts';

/*
 * Validates a send request whose fields have the right types, and parses it into narrow types. All faults are reported
 * with the names of their fields.
 */

/** The fields that all send requests have, with the right types. */
export interface MailRequest {
  from: string;
  /** A template in place of html and text; `subject` replaces the subject of the template. */
  templateId?: string | undefined;
  subject?: string | undefined;
  html?: string | undefined;
  text?: string | undefined;
  /** Of subject, html and text; default: simple. A template has its own. */
  syntax?: 'simple' | 'liquid' | undefined;
  replyTo?: string | string[] | undefined;
  templateVariables?: Record<string, unknown> | undefined;
  enableClickTracking?: boolean | undefined;
  enableOpenTracking?: boolean | undefined;
  /** ISO 8601. */
  scheduledAt?: string | undefined;
  tags?: string[] | undefined;
  metadata?: Record<string, string> | undefined;
}

type ContentRequest = Pick<MailRequest, 'templateId' | 'subject' | 'html' | 'text' | 'syntax'>;

export interface SendRequest extends MailRequest {
  to?: string | string[] | undefined;
  cc?: string | string[] | undefined;
  bcc?: string | string[] | undefined;
  headers?: Record<string, string> | undefined;
  attachments?: AttachmentInput[] | undefined;
  /** An iCalendar object, sent as an alternative and as a file. Transactional only. */
  calendar?: CalendarInput | undefined;
  /** Ignores a transactional opt-out and has no unsubscribe link. Transactional only. */
  essential?: boolean | undefined;
  /** Further alternatives of the body. Only for mail submitted over SMTP, like `messageId`. */
  alternatives?: Alternative[] | undefined;
  /** Whether a refused recipient refuses the request, the default, or is skipped. */
  onRefused?: 'refuse' | 'skip' | undefined;
  /** Without angle brackets. */
  messageId?: string | undefined;
  /** The To and Cc fields, where they name others than the recipients. Only for transactional mail submitted over SMTP. */
  displayed?: DisplayedRecipients | undefined;
  /** Marketing only, like `subscriptionGroupId`. */
  campaignId?: string | undefined;
  subscriptionGroupId?: string | undefined;
}

/** An attachment with its content, or with the address from which it is fetched before the message is accepted. */
export interface AttachmentInput {
  /** Required without `url`, as `contentType` and `content` are. */
  name?: string | undefined;
  contentType?: string | undefined;
  content?: string | undefined;
  /** In place of `content`: https. */
  url?: string | undefined;
  contentId?: string | undefined;
}

export interface DisplayedRecipients {
  to: Mailbox[];
  cc: Mailbox[];
}

export interface Recipient {
  mailbox: Mailbox;
  role: Role;
}

/** The part of a request that does not depend on the recipients. */
export interface ParsedMail {
  from: Mailbox;
  fromDomain: string;
  replyTo: ReplyTo | null;
  source: TemplateSource;
  variables: Record<string, unknown>;
  trackClicks: boolean;
  trackOpens: boolean;
  /** Epoch ms; null: now. */
  scheduledAt: number | null;
  /** Tags and metadata in their stored form (store/messages/labels); null: none. */
  labels: string | null;
  /** Sentences about fields without effect. */
  warnings: string[];
}

export interface ParsedSend extends ParsedMail {
  /** `from` as in the request: the response repeats it. */
  fromAsGiven: string;
  /** Each address once, in the order to, cc, bcc. */
  recipients: Recipient[];
  /** The To and Cc fields; null: the recipients by their roles. */
  displayed: DisplayedRecipients | null;
  headers: [name: string, value: string][];
  /** Those that `linked` names have no content yet. */
  attachments: Attachment[];
  linked: LinkedFiles;
  alternatives: Alternative[];
  /** Null: derived from the id of the message. */
  messageId: string | null;
  essential: boolean;
  campaignId: string | null;
  groupId: string | null;
}

/** The attachments whose content is fetched. */
export interface LinkedFiles {
  files: LinkedFile[];
  /** Bytes that they may have together: what the other attachments leave. */
  maxBytes: number;
}

export interface LinkedFile {
  /** The position in `attachments`. */
  index: number;
  url: URL;
  /** Whether the attachment has the media type of the response. */
  takesType: boolean;
}

/** Of a request over HTTP. */
export const MAX_RECIPIENTS = 50;
/** The rest of a request with this many is not read: lists of a megabyte would block the event loop. */
const MAX_INVALID_RECIPIENTS = 50;
const MAX_SUBJECT_LENGTH = 998;
const MAX_SCHEDULE_AHEAD_MS = 30 * DAY;
/** Clocks differ, and a request can be repeated: a time that passed this recently means now. */
const MAX_SCHEDULE_PAST_MS = 15 * MINUTE;

/** What is tracked of mail that does not state it. */
export interface TrackingDefaults {
  clicks: boolean;
  opens: boolean;
}

const UNTRACKED: TrackingDefaults = { clicks: false, opens: false };

/** The defaults of the domains of an account for a stream. */
export function trackingDefaults({ domains }: Tables, accountId: string, stream: Stream) {
  return (name: string): TrackingDefaults => {
    const domain = domains.named(accountId, name).find(({ use_case }) => use_case === stream);
    return domain === undefined
      ? UNTRACKED
      : { clicks: domain.track_clicks === 1, opens: domain.track_opens === 1 };
  };
}

interface ParseOptions {
  maxRecipients?: number | undefined;
  /** Of a From domain. Default: nothing is tracked. */
  trackingOf?: (domain: string) => TrackingDefaults;
}

/** Refuses with a VALIDATION_ERROR that lists the faults, or because of a limit of attachments. `now`: epoch ms. */
export function parseSend(
  request: SendRequest,
  now: number,
  { maxRecipients = MAX_RECIPIENTS, trackingOf = () => UNTRACKED }: ParseOptions = {},
): ParsedSend | Refusal {
  const { alternatives = [] } = request;
  const inputs = request.attachments ?? [];
  const tooMany = tooManyAttachments(inputs);
  if (tooMany !== null) return tooMany;
  const parsed = collectFaults((fault) => {
    const mail = parseMail(request, now, fault, trackingOf);
    const recipients = parseRecipients(request, maxRecipients, fault);
    const headers = checkHeaders(request.headers ?? {}, fault);
    const calendar = request.calendar === undefined ? null : parseCalendar(request.calendar, fault);
    const files = linkedFiles(inputs, fault);
    const attachments = inputs.map((input, index) => parseAttachment(input, index, fault));
    const bytes = checkAttachments(attachments, fault) + (calendar?.bytes ?? 0) + bytesOf(alternatives);
    return mail === null ? null : { recipients, headers, calendar, attachments, files, bytes, ...mail };
  });
  if (isRefusal(parsed)) return parsed;
  const { attachments, files, bytes, calendar, warnings, ...rest } = parsed;
  if (bytes > MAX_ATTACHMENT_BYTES) return tooLarge('attachments', `; those of the request have ${bytes}`);
  return {
    warnings: [...warnings, ...(calendar?.warnings ?? [])],
    fromAsGiven: request.from,
    attachments: calendar === null ? attachments : [...attachments, calendar.file],
    linked: { files, maxBytes: MAX_ATTACHMENT_BYTES - bytes },
    alternatives: calendar === null ? alternatives : [...alternatives, calendar.alternative],
    messageId: request.messageId ?? null,
    displayed: request.displayed ?? null,
    essential: request.essential ?? false,
    campaignId: request.campaignId ?? null,
    groupId: request.subscriptionGroupId ?? null,
    ...rest,
  };
}

/** Parses the part of a request that does not depend on the recipients; null after a fault in `from`. */
export function parseMail(
  request: MailRequest,
  now: number,
  fault: Fault,
  trackingOf: (domain: string) => TrackingDefaults,
): ParsedMail | null {
  const from = oneMailbox('from', request.from, fault);
  const replyTo = parseReplyTo(request.replyTo ?? [], fault);
  const source = parseSource(request, fault);
  const variables = request.templateVariables ?? {};
  checkVariables(variables, fault);
  const scheduledAt = parseSchedule(request.scheduledAt, now, fault);
  const labels = parseLabels(request, fault);
  if (from === null) return null;
  const fromDomain = domainOf(from.address);
  const tracking = trackingOf(fromDomain);
  return {
    from,
    fromDomain,
    replyTo,
    source,
    variables,
    trackClicks: request.enableClickTracking ?? tracking.clicks,
    trackOpens: request.enableOpenTracking ?? tracking.opens,
    scheduledAt,
    labels,
    warnings: isTextOnly(source) ? trackingWarnings(request) : [],
  };
}

/** Tags of a message, characters of one, and bytes of all names and values of its metadata. */
export const MAX_TAGS = 10;
export const MAX_TAG_LENGTH = 50;
export const MAX_METADATA_BYTES = 2048;

function parseLabels({ tags = [], metadata = {} }: MailRequest, fault: Fault): string | null {
  if (tags.length > MAX_TAGS) fault('tags', `must have at most ${MAX_TAGS} entries`);
  for (const [index, tag] of tags.slice(0, MAX_TAGS).entries()) {
    const problem =
      tag === ''
        ? 'must not be empty'
        : tag.length > MAX_TAG_LENGTH
          ? `must have at most ${MAX_TAG_LENGTH} characters`
          : textFault(tag);
    if (problem !== null) fault(`tags[${index}]`, problem);
  }
  const entries = Object.entries(metadata);
  const bytes = entries.reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value),
    0,
  );
  if (bytes > MAX_METADATA_BYTES)
    fault('metadata', `must have at most ${MAX_METADATA_BYTES} bytes of names and values; it has ${bytes}`);
  else
    for (const [name, value] of entries) {
      const problem = name === '' ? 'must have a name' : (textFault(name) ?? textFault(value));
      if (problem !== null) fault(`metadata.${name}`, problem);
    }
  return writeLabels({ tags: [...new Set(tags)], metadata });
}

function isTextOnly(source: TemplateSource): boolean {
  return !('templateId' in source) && source.html === '';
}

/** Opens are tracked by an image in the html, and clicks by its links. */
function trackingWarnings(request: MailRequest): string[] {
  return (['enableClickTracking', 'enableOpenTracking'] as const)
    .filter((field) => request[field] === true)
    .map((field) => `${field} has no effect on a message without html`);
}

function bytesOf(alternatives: readonly Alternative[]): number {
  return alternatives.reduce((sum, { content }) => sum + decodedLength(content), 0);
}

/** RFC 3339 §5.6 full-date. The zone of a day is not known. */
const DAY_ALONE = /^\d{4}-\d\d-\d\d$/;

function parseSchedule(text: string | undefined, now: number, fault: Fault): number | null {
  if (text === undefined) return null;
  const at = DAY_ALONE.test(text) ? null : parseMoment(text);
  if (at === null)
    fault('scheduledAt', 'must be an ISO 8601 time with its zone, such as 2026-01-31T12:00:00Z');
  else if (at > now + MAX_SCHEDULE_AHEAD_MS) fault('scheduledAt', 'must be at most 30 days ahead');
  return at;
}

/** The time of a scheduled message, epoch ms, as in a send. `now`: epoch ms, which it may precede by some minutes. */
export function parseNewSchedule(text: string, now: number): number | Refusal {
  const at = collectFaults((fault) => parseSchedule(text, now, fault));
  return isRefusal(at) ? at : (pastScheduleRefusal({ scheduledAt: at }, now) ?? at);
}

function oneMailbox(field: string, text: string, fault: Fault): Mailbox | null {
  const mailbox = parseMailbox(text);
  if (typeof mailbox !== 'string') return mailbox;
  fault(field, mailbox);
  return null;
}

/** Addresses of Reply-To. */
export const MAX_REPLY_TO = 10;

function parseReplyTo(value: string | string[], fault: Fault): ReplyTo | null {
  if (typeof value === 'string') return oneMailbox('replyTo', value, fault);
  if (value.length > MAX_REPLY_TO) fault('replyTo', `must have at most ${MAX_REPLY_TO} entries`);
  const mailboxes = value
    .slice(0, MAX_REPLY_TO)
    .map((text, index) => oneMailbox(`replyTo[${index}]`, text, fault))
    .filter((mailbox) => mailbox !== null);
  const [first = null, ...others] = mailboxes;
  return others.length === 0 ? first : mailboxes;
}

function parseRecipients(request: SendRequest, maxRecipients: number, fault: Fault): Recipient[] {
  const byAddress = new Map<string, Recipient>();
  /** Roles with an address, valid or not. */
  const roles = new Set<Role>();
  let count = 0;
  let invalidCount = 0;
  for (const role of ['to', 'cc', 'bcc'] as const) {
    const value = request[role] ?? [];
    const lists = typeof value === 'string' ? [value] : value;
    for (const [index, list] of lists.entries()) {
      roles.add(role);
      if (invalidCount === MAX_INVALID_RECIPIENTS) break;
      const mailboxes = parseMailboxList(list, (text, error) => {
        count++;
        invalidCount++;
        const isWhole = text === '' || text === value;
        const field = typeof value === 'string' ? role : `${role}[${index}]`;
        fault(field, isWhole ? error : `${shortened(text)}: ${error}`);
        return invalidCount < MAX_INVALID_RECIPIENTS;
      });
      count += mailboxes.length;
      for (const mailbox of mailboxes) {
        // An address that is given twice is one recipient.
        const key = mailbox.address.toLowerCase();
        if (!byAddress.has(key)) byAddress.set(key, { mailbox, role });
      }
    }
  }
  if (count > maxRecipients)
    fault(
      'to',
      `must have at most ${maxRecipients} recipients, cc and bcc included; the request has ${count}`,
    );
  if (!roles.has('to') && (roles.has('cc') || !roles.has('bcc')))
    fault('to', request.to === undefined ? 'is required' : 'must name at least one recipient');
  return [...byAddress.values()];
}

/** Parses the content of a request, or the template that it names. */
export function parseSource(request: ContentRequest, fault: Fault): TemplateSource {
  const { templateId, subject, html, text, syntax } = request;
  for (const [field, given] of Object.entries({ subject, html, text })) {
    const problem = textFault(given ?? '');
    if (problem !== null) fault(field, problem);
  }
  if (subject !== undefined && /[\r\n]/.test(subject)) fault('subject', 'must not contain a line break');
  if (subject !== undefined && subject.length > MAX_SUBJECT_LENGTH)
    fault('subject', `must have at most ${MAX_SUBJECT_LENGTH} characters`);
  if (templateId !== undefined) {
    // A template and content in the request would be two different messages.
    if (html !== undefined) fault('html', 'cannot be given together with templateId');
    if (text !== undefined) fault('text', 'cannot be given together with templateId');
    if (syntax !== undefined)
      fault('syntax', 'cannot be given together with templateId: the template has its own');
    return { templateId, subject: subject ?? null };
  }
  if (subject === undefined) fault('subject', 'is required');
  if (html === undefined && text === undefined) fault('html', 'is required, unless text is given');
  // An empty text means that the html has no text part; it is not a message.
  else if (html === undefined && text === '') fault('text', 'must not be empty without html');
  const content = { subject: subject ?? '', html: html ?? '', text: text ?? null };
  return syntax === 'liquid' ? { ...content, liquid: {} } : content;
}

/**
 * Refuses a scheduled time that has passed. For a request that is not a replay: a stored response is repeated whenever the
 * time was.
 */
export function pastScheduleRefusal(
  { scheduledAt }: Pick<ParsedMail, 'scheduledAt'>,
  now: number,
): Refusal | null {
  return scheduledAt !== null && scheduledAt < now - MAX_SCHEDULE_PAST_MS
    ? invalid('scheduledAt', `is in the past: ${iso(scheduledAt)}; omit it to send immediately`)
    : null;
}

/** Refuses a rendered subject that is too long. */
export function subjectRefusal(subject: string): Refusal | null {
  return subject.length > MAX_SUBJECT_LENGTH
    ? invalid('subject', `is longer than ${MAX_SUBJECT_LENGTH} characters after rendering`)
    : null;
}

/** Checks of `templateVariables`, of sends and of previews. Whether a value can be inserted is found by rendering. */
type Variables = Readonly<Record<string, unknown>>;

const MAX_DEPTH = 32;

/** Reports names of the service's variables, and values that cannot be used. */
function checkVariables(variables: Variables, fault: Fault): void {
  for (const name of Object.keys(variables)) {
    if (isServiceVariable(name))
      fault(`templateVariables.${name}`, 'is set by the service and cannot be given');
  }
  checkValues(variables, fault);
}

/** Reports the first inexact number of each variable, or that the values are nested too deep. */
export function checkValues(variables: Variables, fault: Fault): void {
  if (isDeeperThan(variables, MAX_DEPTH)) {
    fault('templateVariables', `must not be nested more than ${MAX_DEPTH} levels deep`);
    return;
  }
  for (const [name, value] of Object.entries(variables)) {
    const path = inexactPath(value);
    if (path !== null) fault(`templateVariables.${name}${path}`, INEXACT);
  }
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((inner) => isDeeperThan(inner, depth - 1));
}

export const MAX_ATTACHMENTS = 10;
/** Decoded bytes of all attachments of a message. */
export const MAX_ATTACHMENT_BYTES = 2 * 1024 * 1024;

/** Strict RFC 4648 §4: bits after the last byte are zero (§3.5), so each content has one form. */
const BASE64 = /^[A-Za-z0-9+/]*(?:[AQgw]==|[AEIMQUYcgkosw048]=)?$/;
const BAD_NAME = /[\p{Cc}/\\\u2028\u2029]/u;

const MAX_URL_LENGTH = 2048;

/** The address of a file, relative to `base`; a clause about an address from which nothing is fetched. */
export function fileAddress(address: string, base?: URL): URL | string {
  const url = address.length > MAX_URL_LENGTH ? null : URL.parse(address, base?.href);
  if (url === null) return `must be a URL of at most ${MAX_URL_LENGTH} characters`;
  if (url.protocol !== 'https:') return 'must begin with https://';
  return url.username === '' && url.password === '' ? url : 'must not contain a user name or a password';
}

/** Reports addresses that are not valid. */
function linkedFiles(attachments: readonly AttachmentInput[], fault: Fault): LinkedFile[] {
  return attachments.flatMap(({ url: address, content, contentType }, index) => {
    if (address === undefined) return [];
    const url = content === undefined ? fileAddress(address) : 'cannot be given together with content';
    if (typeof url !== 'string') return { index, url, takesType: contentType === undefined };
    fault(`attachments[${index}].url`, url);
    return [];
  });
}

/** Reports what an attachment lacks. Without a name, one with an address has the last part of its path. */
function parseAttachment(
  { name, contentType, content, url, contentId }: AttachmentInput,
  index: number,
  fault: Fault,
): Attachment {
  if (url === undefined)
    for (const [field, value] of Object.entries({ name, contentType, content }))
      if (value === undefined) fault(`attachments[${index}].${field}`, 'is required');
  return {
    name: name ?? (url === undefined ? 'file' : nameInPath(url, index)),
    contentType: contentType ?? 'application/octet-stream',
    content: canonicalBase64(content ?? ''),
    ...(contentId === undefined ? {} : { contentId }),
  };
}

const MAX_NAME_IN_PATH = 200;

/** The last part of the path, as far as it can name a file. */
function nameInPath(address: string, index: number): string {
  const part = URL.parse(address)?.pathname.split('/').at(-1) ?? '';
  let name = part;
  try {
    name = decodeURIComponent(part);
  } catch {
    // It is not percent-encoded UTF-8.
  }
  const usable = name
    .replaceAll(new RegExp(BAD_NAME, 'gu'), '')
    .slice(0, MAX_NAME_IN_PATH)
    .toWellFormed()
    .trim();
  return usable === '' ? `attachment-${index + 1}` : usable;
}

/** Checked before the contents of the attachments. */
function tooManyAttachments(attachments: readonly AttachmentInput[]): Refusal | null {
  if (attachments.length <= MAX_ATTACHMENTS) return null;
  const message = `A message can have at most ${MAX_ATTACHMENTS} attachments; the request has ${attachments.length}`;
  return refuse('TOO_MANY_ATTACHMENTS', message, { details: [{ field: 'attachments', message }] });
}

/** The attachments have too many bytes together. */
export function tooLarge(field: string, more: string): Refusal {
  const message = `Attachments can have at most ${MAX_ATTACHMENT_BYTES} decoded bytes together${more}`;
  return refuse('ATTACHMENTS_TOO_LARGE', message, { details: [{ field, message }] });
}

/** Reports malformed attachments; returns the number of their bytes. */
function checkAttachments(attachments: readonly Attachment[], fault: Fault): number {
  const ids = new Set<string>();
  let total = 0;
  for (const [index, attachment] of attachments.entries()) {
    const field = `attachments[${index}]`;
    const { name, contentType, content, contentId } = attachment;
    if (name.length < 1 || name.length > 255) fault(`${field}.name`, 'must have 1 to 255 characters');
    else if (BAD_NAME.test(name) || !name.isWellFormed())
      fault(`${field}.name`, 'must not contain path separators or control characters');
    if (!MEDIA_TYPE.test(contentType))
      fault(`${field}.contentType`, 'must be a media type such as "application/pdf"');
    else if (/^(multipart|message)\//i.test(contentType)) {
      fault(
        `${field}.contentType`,
        'cannot be attached as base64 (RFC 2046 §5); send it as "application/octet-stream"',
      );
    }
    if (!isBase64(content)) fault(`${field}.content`, 'must be base64 without line breaks');
    else total += decodedLength(content);
    if (contentId !== undefined && !CONTENT_ID.test(contentId)) {
      fault(`${field}.contentId`, 'must have 1 to 250 visible ASCII characters and no angle brackets');
    } else if (contentId !== undefined && ids.has(contentId)) fault(`${field}.contentId`, 'is used twice');
    if (contentId !== undefined) ids.add(contentId);
  }
  return total;
}

/** Base64 of the URL-safe alphabet, or without padding (RFC 4648 §3.2 and §5), in the usual form; other text unchanged. */
export function canonicalBase64(text: string): string {
  const usual =
    text.includes('-') || text.includes('_') ? text.replaceAll('-', '+').replaceAll('_', '/') : text;
  return usual.length % 4 === 0 || usual.length % 4 === 1
    ? usual
    : usual.padEnd(usual.length + 4 - (usual.length % 4), '=');
}

/** The bytes that base64 in either alphabet encodes; null: it is malformed. */
export function bytesOfBase64(text: string): Buffer | null {
  const base64 = canonicalBase64(text);
  return isBase64(base64) ? Buffer.from(base64, 'base64') : null;
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && BASE64.test(text);
}

/** Number of bytes that valid base64 encodes. */
function decodedLength(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

/** An iCalendar object of a request, and the parts of the message that it becomes (RFC 6047). */
interface CalendarInput {
  method: string;
  content: string;
}

interface CalendarParts {
  alternative: Alternative;
  /** For mail programs that offer to open or import a file. */
  file: Attachment;
  /** Length of the object, which is counted once. */
  bytes: number;
  /** Sentences about the reasons why mail programs may show no invitation. */
  warnings: string[];
}

/** RFC 5546 §1.4. */
export const CALENDAR_METHODS = [
  'PUBLISH',
  'REQUEST',
  'REPLY',
  'ADD',
  'CANCEL',
  'REFRESH',
  'COUNTER',
  'DECLINECOUNTER',
] as const;

/**
 * RFC 5545 §3.1: lines end with CRLF. The property names are not case-sensitive. Without the flag `m`, which takes other
 * characters (U+2028) for line ends, too: each of them would begin another search to the end of the line.
 */
const OBJECT = /^BEGIN:VCALENDAR\r\n[\s\S]*\r\nEND:VCALENDAR\r\n$/i;
const METHOD_PROPERTY = /\nMETHOD(?:;[^:\r\n]*)?:([^\r\n]*)\r\n/i;

/** Reports each fault; null without a valid method. */
export function parseCalendar(calendar: CalendarInput, fault: Fault): CalendarParts | null {
  const method = CALENDAR_METHODS.find((known) => known === calendar.method.trim().toUpperCase());
  if (method === undefined) fault('calendar.method', `must be one of ${CALENDAR_METHODS.join(', ')}`);
  const content = `${calendar.content
    .replace(/^\ufeff/, '')
    .trim()
    .replace(/\r\n?|\n/g, '\r\n')}\r\n`;
  const problem = textFault(content);
  if (problem !== null) fault('calendar.content', problem);
  else if (!OBJECT.test(content))
    fault('calendar.content', 'must be an iCalendar object, from BEGIN:VCALENDAR to END:VCALENDAR');
  const property = METHOD_PROPERTY.exec(content)?.[1]?.trim();
  if (method !== undefined && property !== undefined && property.toUpperCase() !== method)
    fault('calendar.method', `must equal the METHOD property of calendar.content, which is "${property}"`);
  if (method === undefined) return null;
  const utf8 = Buffer.from(content);
  const encoded = utf8.toString('base64');
  return {
    alternative: {
      position: 'after-html',
      contentType: `text/calendar; charset=utf-8; method=${method}`,
      content: encoded,
    },
    // Some mail programs would show a second text/calendar part as a second invitation.
    file: { name: 'invite.ics', contentType: 'application/ics', content: encoded },
    bytes: utf8.length,
    warnings:
      property === undefined
        ? ['calendar.content has no METHOD property: many mail programs show no invitation without it']
        : [],
  };
}

const NAME = /^[A-Za-z0-9-]{1,76}$/;
export const MAX_HEADERS = 50;
const MAX_BYTES = 8 * 1024;

/** Fields that the service sets, that identify the sender or that are traces: a request may not set them. */
const SERVICE_FIELDS: ReadonlySet<string> = new Set([
  'from',
  'sender',
  'to',
  'cc',
  'bcc',
  'subject',
  'reply-to',
  'date',
  'message-id',
  'return-path',
  'authentication-results',
  'mime-version',
  'feedback-id',
]);
const SERVICE_PREFIXES = ['received', 'dkim-', 'arc-', 'content-', 'x-postrider-', 'cfbl-', 'resent-'];

/** Whether a caller cannot set the field. `name`: in lower case. */
export function isServiceField(name: string): boolean {
  return SERVICE_FIELDS.has(name) || SERVICE_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** A warning for each field that the service replaces in marketing mail. */
export function replacedFieldWarnings(headers: readonly [name: string, value: string][]): string[] {
  return headers.flatMap(([name]) =>
    BULK_FIELDS.has(name.toLowerCase())
      ? [`headers.${name} has no effect: the service sets it in marketing mail`]
      : [],
  );
}

/** Returns the custom header fields in order and reports each fault. */
function checkHeaders(headers: Record<string, string>, fault: Fault): [string, string][] {
  const entries = Object.entries(headers);
  if (entries.length > MAX_HEADERS)
    fault('headers', `must have at most ${MAX_HEADERS} fields; it has ${entries.length}`);
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value) + 4, 0);
  if (bytes > MAX_BYTES) {
    // The values are not checked: they can have megabytes.
    fault('headers', `must have at most ${MAX_BYTES} bytes; it has ${bytes}`);
    return entries;
  }
  const seen = new Set<string>();
  for (const [name, value] of entries.slice(0, MAX_HEADERS)) {
    const problem = headerFault(name, value, seen);
    if (problem !== null) fault(`headers.${name}`, problem);
    seen.add(name.toLowerCase());
  }
  return entries;
}

function headerFault(name: string, value: string, seen: ReadonlySet<string>): string | null {
  const lower = name.toLowerCase();
  if (!NAME.test(name)) return 'must have a name of 1 to 76 characters from A-Z, a-z, 0-9 and "-"';
  if (isServiceField(lower)) return 'is set by the service and cannot be given here';
  if (seen.has(lower)) return 'is given twice';
  if (/[\r\n]/.test(value)) return 'must not contain a line break';
  if (lower === 'list-unsubscribe' && !isUrlList(value)) {
    return 'must be a list of addresses in angle brackets, such as "<https://example.com/u>", in ASCII and with at most 898 characters each';
  }
  return textFault(value);
}

/** Reports that a field of a request is invalid. `message` completes a sentence: `must be …`. */
type Fault = (field: string, message: string) => void;

/** Faults that a response lists; the rest are counted. */
const MAX_FAULTS = 50;
/** Characters of the path of a field and of a message, which can quote the request. */
const MAX_FIELD_LENGTH = 128;
const MAX_MESSAGE_LENGTH = 300;

/** Returns the result of `parse`, or a VALIDATION_ERROR with the faults that it reported. */
export function collectFaults<Parsed>(parse: (fault: Fault) => Parsed | null): Parsed | Refusal {
  const faults: RefusalDetail[] = [];
  let count = 0;
  const parsed = parse((field, message) => {
    count++;
    if (faults.length === MAX_FAULTS) return;
    faults.push({
      field: shortened(field, MAX_FIELD_LENGTH),
      message: shortened(message, MAX_MESSAGE_LENGTH),
    });
  });
  const [first] = faults;
  if (first === undefined && parsed !== null) return parsed;
  const sentence = first ? `${first.field}: ${first.message}` : 'The request is not valid';
  const more = count > 1 ? ` (and ${count - 1} more)` : '';
  return refuse('VALIDATION_ERROR', `${sentence}${more}`, { details: faults });
}
