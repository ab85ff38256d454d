import { DAY, parseMoment } from '../core/clock.ts';
import { invalid, isRefusal, type Refusal, type RefusalDetail, refuse, shortened } from '../core/refusal.ts';
import { domainOf, parseMailbox, parseMailboxList } from '../mail/address.ts';
import type { Alternative, Attachment, Mailbox } from '../mail/content.ts';
import { isServiceVariable } from '../mail/template.ts';
import type { Role } from '../store/messages/messages.ts';
import type { TemplateWording, Wording } from '../templates/source.ts';
import { textFault } from '../templates/text.ts';
import { checkAttachments, decodedLength, tooManyAttachments } from './attachments.ts';
import { type CalendarInput, parseCalendar } from './calendar.ts';
import { checkHeaders } from './headers.ts';

/**
 * A send request from the edge (types are right, nothing else is known) made into one that the rest of this
 * room can rely on. Every fault is told, with the field's name, before anything is stored.
 */
export interface MailRequest {
  from: string;
  /** A template in place of subject, html and text; a subject given all the same stands over its own. */
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
  /** An iCalendar object: an alternative of the text, and a file. Transactional only. */
  calendar?: CalendarInput | undefined;
  /** Ignores a transactional opt-out, and carries no way to unsubscribe. Transactional only. */
  essential?: boolean | undefined;
  /** Only of a mail submitted over SMTP, as is the next: other forms of its text. */
  alternatives?: Alternative[] | undefined;
  /** Without angle brackets. */
  messageId?: string | undefined;
  /** Marketing only, as is the next. */
  campaignId?: string | undefined;
  subscriptionGroupId?: string | undefined;
}

export interface Recipient {
  mailbox: Mailbox;
  role: Role;
}

/** What every mail has, whoever it goes to. */
export interface ParsedMail {
  from: Mailbox;
  fromDomain: string;
  replyTo: Mailbox | null;
  wording: Wording | TemplateWording;
  variables: Record<string, unknown>;
  trackClicks: boolean;
  trackOpens: boolean;
  /** Epoch ms; null: at once. */
  scheduledAt: number | null;
  /** What of the request has no effect, in words. */
  warnings: string[];
}

export interface ParsedSend extends ParsedMail {
  /** `from` as the caller wrote it: the answer repeats it. */
  fromAsGiven: string;
  /** Each address once, in the order to, cc, bcc. */
  recipients: Recipient[];
  headers: [name: string, value: string][];
  attachments: Attachment[];
  alternatives: Alternative[];
  /** Null: made of the message's id. */
  messageId: string | null;
  essential: boolean;
  campaignId: string | null;
  groupId: string | null;
}

export const MAX_RECIPIENTS = 50;
const MAX_SUBJECT = 998;
const MAX_VARIABLE_DEPTH = 32;
const FARTHEST_AHEAD = 30 * DAY;

/** The request in narrow types, or a VALIDATION_ERROR with every fault, or an attachment limit's refusal. */
export function parseSend(request: SendRequest, now: number): ParsedSend | Refusal {
  const { attachments = [], alternatives = [] } = request;
  const tooMany = tooManyAttachments(attachments);
  if (tooMany !== null) return tooMany;
  const parsed = collectFaults((fault) => {
    const mail = parseMail(request, now, fault);
    const recipients = parseRecipients(request, fault);
    const headers = checkHeaders(request.headers ?? {}, fault);
    const calendar = request.calendar === undefined ? null : parseCalendar(request.calendar, fault);
    const tooMuch = checkAttachments(attachments, fault, (calendar?.bytes ?? 0) + bytesOf(alternatives));
    return mail === null ? null : { ...mail, recipients, headers, calendar, tooMuch };
  });
  if (isRefusal(parsed)) return parsed;
  const { tooMuch, calendar, ...rest } = parsed;
  if (tooMuch !== null) return tooMuch;
  return {
    ...rest,
    warnings: [...rest.warnings, ...(calendar?.warnings ?? [])],
    fromAsGiven: request.from,
    attachments: calendar === null ? attachments : [...attachments, calendar.file],
    alternatives: calendar === null ? alternatives : [...alternatives, calendar.alternative],
    messageId: request.messageId ?? null,
    essential: request.essential ?? false,
    campaignId: request.campaignId ?? null,
    groupId: request.subscriptionGroupId ?? null,
  };
}

export type Fault = (field: string, message: string) => void;

/** Errors named in an answer; the rest are counted. */
const MAX_FAULTS = 50;
/** Characters of a field's path and of a message, which may repeat what the caller sent. */
const MAX_FIELD = 128;
const MAX_MESSAGE = 300;

/** What `parse` made of a request, or one VALIDATION_ERROR with the faults that it reported. */
export function collectFaults<Parsed>(parse: (fault: Fault) => Parsed | null): Parsed | Refusal {
  const faults: RefusalDetail[] = [];
  let count = 0;
  const parsed = parse((field, message) => {
    count++;
    if (faults.length === MAX_FAULTS) return;
    faults.push({ field: shortened(field, MAX_FIELD), message: shortened(message, MAX_MESSAGE) });
  });
  const [first] = faults;
  if (first === undefined && parsed !== null) return parsed;
  const sentence = first ? `${first.field}: ${first.message}` : 'the request is not valid';
  const more = count > 1 ? ` (and ${count - 1} more)` : '';
  return refuse('VALIDATION_ERROR', `${sentence}${more}`, { details: faults });
}

/** The part of a request that says what is sent and when; null after a fault without which there is no mail. */
export function parseMail(request: MailRequest, now: number, fault: Fault): ParsedMail | null {
  const from = oneMailbox('from', request.from, fault);
  const replyTo = request.replyTo === undefined ? null : oneMailbox('replyTo', request.replyTo, fault);
  const wording = parseWording(request, fault);
  const variables = request.templateVariables ?? {};
  checkVariables(variables, fault);
  const scheduledAt = parseSchedule(request.scheduledAt, now, fault);
  if (from === null) return null;
  return {
    from,
    fromDomain: domainOf(from.address),
    replyTo,
    wording,
    variables,
    trackClicks: request.enableClickTracking ?? false,
    trackOpens: request.enableOpenTracking ?? false,
    scheduledAt,
    warnings: isTextOnly(wording) ? trackingWarnings(request) : [],
  };
}

function isTextOnly(wording: Wording | TemplateWording): boolean {
  return !('templateId' in wording) && wording.html === '';
}

/** Opens are seen by an image, and clicks by the links of the html. */
function trackingWarnings(request: MailRequest): string[] {
  return (['enableClickTracking', 'enableOpenTracking'] as const)
    .filter((field) => request[field] === true)
    .map((field) => `${field} has no effect on a message without html`);
}

function bytesOf(alternatives: readonly Alternative[]): number {
  return alternatives.reduce((sum, { content }) => sum + decodedLength(content), 0);
}

/** A time that has passed means at once: clocks differ, and nobody wants the mail lost for that. */
function parseSchedule(text: string | undefined, now: number, fault: Fault): number | null {
  if (text === undefined) return null;
  const at = parseMoment(text);
  if (at === null)
    fault('scheduledAt', 'must be an ISO 8601 time with its zone, such as 2026-01-31T12:00:00Z');
  else if (at > now + FARTHEST_AHEAD) fault('scheduledAt', 'must be at most 30 days ahead');
  return at;
}

function oneMailbox(field: string, text: string, fault: Fault): Mailbox | null {
  const mailbox = parseMailbox(text);
  if (typeof mailbox !== 'string') return mailbox;
  fault(field, mailbox);
  return null;
}

function parseRecipients(request: SendRequest, fault: Fault): Recipient[] {
  const byAddress = new Map<string, Recipient>();
  let named = 0;
  for (const role of ['to', 'cc', 'bcc'] as const) {
    const value = request[role];
    const mailboxes = value === undefined ? [] : parseMailboxList(value);
    if (typeof mailboxes === 'string') {
      fault(role, mailboxes);
      continue;
    }
    named += mailboxes.length;
    for (const mailbox of mailboxes) {
      // The same address twice is one recipient: nobody wants to get a mail twice.
      const key = mailbox.address.toLowerCase();
      if (!byAddress.has(key)) byAddress.set(key, { mailbox, role });
    }
  }
  const recipients = [...byAddress.values()];
  const roles = new Set(recipients.map(({ role }) => role));
  if (named > MAX_RECIPIENTS)
    fault('to', `at most ${MAX_RECIPIENTS} recipients in one request, here are ${named}`);
  if (!roles.has('to') && (roles.has('cc') || !roles.has('bcc')) && request.to === undefined)
    fault('to', 'is required');
  else if (!roles.has('to') && (roles.has('cc') || !roles.has('bcc')))
    fault('to', 'must name at least one recipient');
  return recipients;
}

function parseWording(request: MailRequest, fault: Fault): Wording | TemplateWording {
  const { templateId, subject, html, text } = request;
  for (const [field, given] of Object.entries({ subject, html, text })) {
    const problem = textFault(given ?? '');
    if (problem !== null) fault(field, problem);
  }
  if (subject !== undefined && /[\r\n]/.test(subject)) fault('subject', 'must not hold a line break');
  if (subject !== undefined && subject.length > MAX_SUBJECT)
    fault('subject', `must be at most ${MAX_SUBJECT} characters long`);
  if (templateId !== undefined) {
    // A part of the one beside a part of the other would be two mails in one.
    if (html !== undefined) fault('html', 'cannot be given together with templateId');
    if (text !== undefined) fault('text', 'cannot be given together with templateId');
    return { templateId, subject: subject ?? null };
  }
  if (subject === undefined) fault('subject', 'is required');
  if (html === undefined && text === undefined) fault('html', 'is required, unless text is given');
  // An empty text says that the html has no text part, and is no message of its own.
  else if (html === undefined && text === '') fault('text', 'must not be empty without html');
  return { subject: subject ?? '', html: html ?? '', text: text ?? null };
}

function checkVariables(variables: Record<string, unknown>, fault: Fault): void {
  for (const name of Object.keys(variables)) {
    if (isServiceVariable(name))
      fault(`templateVariables.${name}`, 'is filled in by the service and cannot be set');
  }
  if (deeperThan(variables, MAX_VARIABLE_DEPTH))
    fault('templateVariables', `must not be nested deeper than ${MAX_VARIABLE_DEPTH} levels`);
}

function deeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((inner) => deeperThan(inner, depth - 1));
}

/** A rendered subject that grew too long, or nothing. */
export function subjectFault(subject: string): Refusal | null {
  return subject.length > MAX_SUBJECT
    ? invalid('subject', `is longer than ${MAX_SUBJECT} characters with its variables filled in`)
    : null;
}
