import { DAY, iso, MINUTE, parseMoment } from '../core/clock.ts';
import { invalid, isRefusal, type Refusal, shortened } from '../core/refusal.ts';
import { domainOf, parseMailbox, parseMailboxList } from '../mail/address.ts';
import type { Alternative, Attachment, Mailbox } from '../mail/content.ts';
import { textFault } from '../mail/text-fault.ts';
import type { Role } from '../store/messages/messages.ts';
import type { TemplateSource } from '../templates/source.ts';
import { canonicalBase64, checkAttachments, decodedLength, tooManyAttachments } from './attachments.ts';
import { type CalendarInput, parseCalendar } from './calendar.ts';
import { collectFaults, type Fault } from './faults.ts';
import { checkHeaders } from './headers.ts';
import { checkVariables } from './variables.ts';

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
  replyTo?: string | undefined;
  templateVariables?: Record<string, unknown> | undefined;
  enableClickTracking?: boolean | undefined;
  enableOpenTracking?: boolean | undefined;
  /** ISO 8601; marketing only. */
  scheduledAt?: string | undefined;
}

export interface SendRequest extends MailRequest {
  to?: string | string[] | undefined;
  cc?: string | string[] | undefined;
  bcc?: string | string[] | undefined;
  headers?: Record<string, string> | undefined;
  attachments?: Attachment[] | undefined;
  /** An iCalendar object, sent as an alternative and as a file. Transactional only. */
  calendar?: CalendarInput | undefined;
  /** Ignores a transactional opt-out and has no unsubscribe link. Transactional only. */
  essential?: boolean | undefined;
  /** Further alternatives of the body. Only for mail submitted over SMTP, like `messageId`. */
  alternatives?: Alternative[] | undefined;
  /** Without angle brackets. */
  messageId?: string | undefined;
  /** The To and Cc fields, where they name others than the recipients. Only for transactional mail submitted over SMTP. */
  displayed?: DisplayedRecipients | undefined;
  /** Marketing only, like `subscriptionGroupId`. */
  campaignId?: string | undefined;
  subscriptionGroupId?: string | undefined;
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
  replyTo: Mailbox | null;
  source: TemplateSource;
  variables: Record<string, unknown>;
  trackClicks: boolean;
  trackOpens: boolean;
  /** Epoch ms; null: now. */
  scheduledAt: number | null;
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
  attachments: Attachment[];
  alternatives: Alternative[];
  /** Null: derived from the id of the message. */
  messageId: string | null;
  essential: boolean;
  campaignId: string | null;
  groupId: string | null;
}

/** Of a request over HTTP. */
export const MAX_RECIPIENTS = 50;
/** The rest of a request with this many is not read: lists of a megabyte would block the event loop. */
const MAX_INVALID_RECIPIENTS = 50;
const MAX_SUBJECT_LENGTH = 998;
const MAX_SCHEDULE_AHEAD_MS = 30 * DAY;
/** Clocks differ, and a request can be repeated: a time that passed this recently means now. */
const MAX_SCHEDULE_PAST_MS = 15 * MINUTE;

/** Refuses with a VALIDATION_ERROR that lists the faults, or because of a limit of attachments. `now`: epoch ms. */
export function parseSend(
  request: SendRequest,
  now: number,
  maxRecipients = MAX_RECIPIENTS,
): ParsedSend | Refusal {
  const { alternatives = [] } = request;
  const attachments = (request.attachments ?? []).map(({ content, ...attachment }) => ({
    ...attachment,
    content: canonicalBase64(content),
  }));
  const tooMany = tooManyAttachments(attachments);
  if (tooMany !== null) return tooMany;
  const parsed = collectFaults((fault) => {
    const mail = parseMail(request, now, fault);
    const recipients = parseRecipients(request, maxRecipients, fault);
    const headers = checkHeaders(request.headers ?? {}, fault);
    const calendar = request.calendar === undefined ? null : parseCalendar(request.calendar, fault);
    const tooMuch = checkAttachments(attachments, fault, (calendar?.bytes ?? 0) + bytesOf(alternatives));
    return mail === null ? null : { recipients, headers, calendar, tooMuch, ...mail };
  });
  if (isRefusal(parsed)) return parsed;
  const { tooMuch, calendar, warnings, ...rest } = parsed;
  if (tooMuch !== null) return tooMuch;
  return {
    warnings: [...warnings, ...(calendar?.warnings ?? [])],
    fromAsGiven: request.from,
    attachments: calendar === null ? attachments : [...attachments, calendar.file],
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
export function parseMail(request: MailRequest, now: number, fault: Fault): ParsedMail | null {
  const from = oneMailbox('from', request.from, fault);
  const replyTo = request.replyTo === undefined ? null : oneMailbox('replyTo', request.replyTo, fault);
  const source = parseSource(request, fault);
  const variables = request.templateVariables ?? {};
  checkVariables(variables, fault);
  const scheduledAt = parseSchedule(request.scheduledAt, now, fault);
  if (from === null) return null;
  return {
    from,
    fromDomain: domainOf(from.address),
    replyTo,
    source,
    variables,
    trackClicks: request.enableClickTracking ?? false,
    trackOpens: request.enableOpenTracking ?? false,
    scheduledAt,
    warnings: isTextOnly(source) ? trackingWarnings(request) : [],
  };
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

function oneMailbox(field: string, text: string, fault: Fault): Mailbox | null {
  const mailbox = parseMailbox(text);
  if (typeof mailbox !== 'string') return mailbox;
  fault(field, mailbox);
  return null;
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

function parseSource(request: MailRequest, fault: Fault): TemplateSource {
  const { templateId, subject, html, text } = request;
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
    return { templateId, subject: subject ?? null };
  }
  if (subject === undefined) fault('subject', 'is required');
  if (html === undefined && text === undefined) fault('html', 'is required, unless text is given');
  // An empty text means that the html has no text part; it is not a message.
  else if (html === undefined && text === '') fault('text', 'must not be empty without html');
  return { subject: subject ?? '', html: html ?? '', text: text ?? null };
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
