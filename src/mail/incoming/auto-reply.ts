import { type Fields, firstAddress } from './fields.ts';
import type { ReturnedMail } from './notice.ts';
import type { NoticeEntry } from './notice-entries.ts';
import { quotedReply } from './quoted-reply.ts';
import { type IncomingReport, NO_BOUNCE } from './report.ts';
import { WORDING } from './wording.ts';

/**
 * Recognizes automatic replies by their header fields (RFC 3834 and older ones), and read receipts (RFC 8098). They change
 * no state: the mail was delivered. The language of the subject and of the text never matters: people write "vacation", too.
 */

/** Null when the mail is not an automatic reply. The recipient is the sender of the reply. */
export function readAutoReply(mail: Fields, parts: ReturnedMail): IncomingReport | null {
  return isAutoReply(mail, parts) ? autoReplyOf(mail, parts) : null;
}

/**
 * For mail that is not a delivery report: null when it does not declare that a program sent it, or answers nothing. Servers
 * declare delivery reports in the same way, so these fields count only when nothing else is known of the mail.
 */
export function readGeneratedReply(mail: Fields, parts: ReturnedMail): IncomingReport | null {
  if (isDeclaredBounce(mail, parts) || isFromMailSystem(mail)) return null;
  // Exchange writes `auto-generated` into replies, which RFC 3834 §5 reserves for other mail.
  const isAnswer = isYes(mail.get('auto-submitted')) && (isReply(mail) || mail.get('references') !== '');
  return isAnswer || isYes(mail.get('x-auto-response-suppress')) ? autoReplyOf(mail, parts) : null;
}

function autoReplyOf(mail: Fields, parts: ReturnedMail): IncomingReport {
  return {
    ...NO_BOUNCE,
    recipient: firstAddress(mail.get('from')),
    action: 'replied',
    diagnostic: parts.lines.join(' ').replaceAll(/\s+/g, ' ').trim().slice(0, 500),
  };
}

function isAutoReply(mail: Fields, parts: ReturnedMail): boolean {
  const contentType = mail.get('content-type').toLowerCase();
  // RFC 8098 §3: it may return the message, as a bounce does.
  if (contentType.includes('disposition-notification')) return true;
  return !isDeclaredBounce(mail, parts) && !isFromMailSystem(mail) && isDeclaredReply(mail);
}

/** Whether the header declares that a program answered a mail (RFC 3834 §5, and fields that were in use before it). */
export function isDeclaredReply(mail: Fields): boolean {
  if (mail.get('auto-submitted').toLowerCase().startsWith('auto-replied')) return true;
  if (WORDING.autoReplyFields.some((name) => isYes(mail.get(name)))) return true;
  if (PRECEDENCE_FIELDS.some((name) => /^auto[-_ ]?repl(?:y|ied)/i.test(mail.get(name)))) return true;
  // FirstClass and others: `9; Autoresponder`.
  return /auto[-_ ]?re(?:ply|spon)|out[-_ ]?of[-_ ]?office|vacation/i.test(mail.get('x-post-messageclass'));
}

/** Bounces may declare themselves automatic replies (Exim's do), from any address that their operator configures. */
function isDeclaredBounce(mail: Fields, parts: ReturnedMail): boolean {
  return (
    mail.get('x-failed-recipients') !== '' ||
    parts.statusTexts.length > 0 ||
    mail.get('content-type').toLowerCase().includes('delivery-status')
  );
}

function isFromMailSystem(mail: Fields): boolean {
  const from = mail.get('from').toLowerCase();
  return MAIL_SYSTEMS.some((name) => from.includes(name));
}

/**
 * Senders whose replies are always about delivery: bounces as text, and Exim's delay warnings, are declared `auto-replied`
 * without naming failed recipients in the header. A postmaster is also a person with vacation notices.
 */
const MAIL_SYSTEMS = ['mailer-daemon', 'mail delivery s'];

/** RFC 3834 §3.1.8 has no such value; autoresponders write it nevertheless. */
const PRECEDENCE_FIELDS = ['precedence', 'x-precedence', 'preference'];

/** Whether the field is set to something else than "no": `yes`, `1`, `true`, an address, `OOF, AutoReply`. */
export function isYes(value: string): boolean {
  return !/^(?:no|none|false|off|0)?(?:[\s;(]|$)/i.test(value.trim());
}

/** Whether the mail answers another one, and may quote it. A help desk puts the number of its ticket before `Re:`. */
export function isReply(mail: Fields): boolean {
  return mail.get('in-reply-to') !== '' || /^(?:\[[^\]]*\] ?)?re:/i.test(mail.get('subject'));
}

/**
 * Whether a mail without machine-readable fields is a delivery report. Sender, subject and text each count as evidence,
 * because every server omits some of them.
 */
export function isDeliveryNotice(
  mail: Fields,
  parts: ReturnedMail,
  entries: readonly NoticeEntry[],
): boolean {
  if (mail.get('x-failed-recipients') !== '' || parts.statusTexts.length > 0) return true;
  // Text after `Re:` is quoted from the answered mail (RFC 5322 §3.6.5).
  const [subject = ''] = mail.get('subject').toLowerCase().split(/\bre:/, 1);
  const from = `${mail.get('from')} ${mail.get('reply-to')}`.toLowerCase();
  const returnPath = mail.get('return-path').toLowerCase();
  const head = parts.lines.slice(0, 60).join(' ').slice(0, 6000).toLowerCase();
  const evidence = [
    WORDING.systemSenders.some((name) => from.includes(name)),
    returnPath === '<>' || returnPath.includes('mailer-daemon'),
    WORDING.failureSubjects.some((phrase) => subject.includes(phrase)),
    WORDING.failurePhrases.some((phrase) => head.includes(phrase)),
    entries.some(({ isWeak, text }) => !isWeak && quotedReply(text).code > 0),
    parts.original.names().length > 2,
  ];
  const [, , hasSubject, hasWording, hasReply] = evidence;
  return evidence.filter(Boolean).length >= 2 && (hasSubject || hasWording || hasReply) === true;
}

/** Whether the notice only reports a delay: the server continues to retry, or holds the message in quarantine. */
export function isDelayNotice(mail: Fields, parts: ReturnedMail): boolean {
  const head = `${mail.get('subject')} ${parts.lines.slice(0, 40).join(' ')}`.slice(0, 4000).toLowerCase();
  return WORDING.delayPhrases.some((phrase) => head.includes(phrase));
}
