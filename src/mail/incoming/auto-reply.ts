import { type Fields, firstAddress } from './fields.ts';
import type { ReturnedMail } from './notice.ts';
import { isReply } from './notice-kind.ts';
import { type IncomingReport, NO_BOUNCE } from './report.ts';

/**
 * Recognizes automatic replies (RFC 3834), vacation notices without the header fields of RFC 3834, and read receipts
 * (RFC 8098). They change no state: the mail was delivered.
 */

/** Null when the mail is not an automatic reply. The recipient is the sender of the reply. */
export function readAutoReply(mail: Fields, parts: ReturnedMail): IncomingReport | null {
  if (!isAutoReply(mail, parts)) return null;
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
  // Bounces may declare themselves automatic replies (Exim's do), from any address that their operator configures.
  if (
    mail.get('x-failed-recipients') !== '' ||
    parts.statusTexts.length > 0 ||
    contentType.includes('delivery-status')
  )
    return false;
  const from = mail.get('from').toLowerCase();
  if (MAIL_SYSTEMS.some((name) => from.includes(name))) return false;
  const submitted = mail.get('auto-submitted').toLowerCase();
  if (submitted.startsWith('auto-replied')) return true;
  if (AUTO_REPLY_FIELDS.some((name) => isYes(mail.get(name)))) return true;
  const precedence = mail.get('precedence').toLowerCase();
  if (precedence === 'auto_reply' || precedence === 'auto-reply') return true;
  const subject = mail.get('subject').toLowerCase();
  if (SUBJECT_PREFIXES.some((prefix) => subject.startsWith(prefix))) return true;
  return (
    isReply(mail) &&
    AWAY_PHRASES.some((phrase) => parts.lines.slice(0, 20).join(' ').toLowerCase().includes(phrase))
  );
}

/**
 * Senders whose replies are always about delivery: bounces as text, and Exim's delay warnings, are declared `auto-replied`
 * without naming failed recipients in the header. A postmaster is also a person with vacation notices.
 */
const MAIL_SYSTEMS = ['mailer-daemon', 'mail delivery s'];

const AUTO_REPLY_FIELDS = [
  'x-autoreply',
  'x-auto-reply',
  'x-autorespond',
  'x-auto-respond',
  'x-autoresponse',
  'x-mail-autoreply',
  'x-vacation',
];

function isYes(value: string): boolean {
  return value !== '' && value.toLowerCase() !== 'no';
}

const SUBJECT_PREFIXES = [
  'auto:',
  'auto-reply',
  'auto reply',
  'autoreply',
  'auto response',
  'automatic reply',
  'automated reply',
  'autosvar',
  'out of office',
  'out of the office',
  'out-of-office',
  'vacation',
  'away from',
  'automatische antwort',
  'abwesenheit',
  'réponse automatique',
  'absence du bureau',
  'absent du bureau',
  'risposta automatica',
  'respuesta automática',
  'fuera de la oficina',
  'resposta automática',
  'automatisch antwoord',
  'automatyczna odpowied',
  'автоответ',
  '自動返信',
  '自动回复',
];

const AWAY_PHRASES = [
  'out of the office',
  'out of office',
  'on vacation',
  'am away',
  'on holiday',
  'limited access to email',
  'annual leave',
];
