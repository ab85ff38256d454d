import type { Fields } from './fields.ts';
import type { ReturnedMail } from './notice.ts';
import type { NoticeEntry } from './notice-entries.ts';
import { quotedReply } from './quoted-reply.ts';

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
    SYSTEM_SENDERS.some((name) => from.includes(name)),
    returnPath === '<>' || returnPath.includes('mailer-daemon'),
    FAILURE_SUBJECTS.some((phrase) => subject.includes(phrase)),
    FAILURE_PHRASES.some((phrase) => head.includes(phrase)),
    entries.some(({ isWeak, text }) => !isWeak && quotedReply(text).code > 0),
    parts.original.names().length > 2,
  ];
  const [, , hasSubject, hasWording, hasReply] = evidence;
  return evidence.filter(Boolean).length >= 2 && (hasSubject || hasWording || hasReply) === true;
}

const SYSTEM_SENDERS = [
  'mailer-daemon',
  'mailerdaemon',
  'postmaster',
  'post_master',
  'post.office',
  'mail delivery',
  'mail system',
  'mail administrator',
  'mail deliver system',
  'delivery subsystem',
  'system administrator',
  'ndr administrator',
  '-admin@',
];

const FAILURE_SUBJECTS = [
  'undeliver',
  'not delivered',
  'returned mail',
  'returned to sender',
  'returning message to sender',
  'delivery fail',
  'delivery status',
  'delivery notification',
  'delivery report',
  'delivery problem',
  'delivery error',
  'delivery has failed',
  'delivery failure',
  'failure notice',
  'failure delivery',
  'mail failure',
  'mail system error',
  'message status',
  'nondeliverable',
  'non-deliverable',
  'non delivery',
  'error sending your mail',
  'could not send message',
  'warning: message',
  'delayed mail',
  'message you sent blocked',
  'mail could not be delivered',
  'unzustellbar',
  'unable to deliver',
  'impossible to deliver',
  'you can not post to',
  'are not member',
  'not member article',
  'loop alert',
  'rejected mail',
];

const FAILURE_PHRASES = [
  'not be delivered',
  "couldn't be delivered",
  "wasn't delivered",
  'was not delivered',
  'could not deliver',
  'cannot be delivered',
  'unable to deliver',
  'not deliver',
  'undeliver',
  'non-deliver',
  'delivery fail',
  'delivery error',
  'delivery to the following',
  'error delivering',
  'error has occurred',
  'error occurred',
  'failed to deliver',
  'failed permanently',
  'fatal error',
  'delivery problems',
  'did not reach',
  'not reach the following',
  'were not received',
  'did not receive this message',
  'was rejected',
  'has been rejected',
  'could not be sent',
  'returned mail',
  'mail was returned',
  'unknown user',
  'user unknown',
  'no such user',
  'invalid user',
  'over quota',
  'mailbox full',
  'transcript of session',
  'delayed for',
  'been delayed',
  'not a member of this mailing list',
];

/** Whether the notice only reports a delay: the server continues to retry, or holds the message in quarantine. */
export function isDelayNotice(mail: Fields, parts: ReturnedMail): boolean {
  const head = `${mail.get('subject')} ${parts.lines.slice(0, 40).join(' ')}`.slice(0, 4000).toLowerCase();
  return DELAY_PHRASES.some((phrase) => head.includes(phrase));
}

const DELAY_PHRASES = [
  '(delay)',
  'warning message only',
  'has been delayed',
  'is delayed for more than',
  'message delayed',
  'delivery delayed',
  'still being retried',
  'will be retried',
  'temporary failure report',
  'not yet been delivered',
  'not been delivered yet',
  'not delivered yet',
  'not yet delivered',
  'delivery status notification: warning',
  'could not send message for',
];
