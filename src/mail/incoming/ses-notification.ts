import { memberOf, parseUntrustedJson, stringMember } from '../../core/untrusted-json.ts';
import { enhancedCode } from '../classify/classify.ts';
import type { StatusGroup } from './delivery-status.ts';

/**
 * Bounce, complaint and delivery notifications of Amazon SES, sent as JSON by mail through SNS. They are read into the
 * same groups as RFC 3464 and RFC 5965 reports. The JSON is surrounded by text and may be folded like a header field.
 */
export interface SesNotification {
  kind: 'bounce' | 'complaint' | 'delivery';
  groups: StatusGroup[];
  /** Complaints: the type as SES names it, which is RFC 5965's. */
  feedbackType: string;
  messageId: string | null;
}

/** Null when the lines contain no notification. */
export function readSesNotification(lines: readonly string[]): SesNotification | null {
  const start = lines.findIndex((line) => line.startsWith('{'));
  if (start < 0) return null;
  const end = lines.indexOf('', start);
  const block = lines.slice(start, end < 0 ? undefined : end);
  if (!block.some((line) => line.includes('notificationType'))) return null;
  const parsed = parseFolded(block);
  // SNS may wrap the notification in its own envelope.
  const enveloped = stringMember(parsed, 'Message', MAX_MESSAGE_LENGTH);
  const notification = enveloped === '' ? parsed : parseFolded([enveloped]);
  const type = text(notification, 'notificationType');
  const messageId = text(memberOf(notification, 'mail'), 'messageId') || null;
  if (type === 'Bounce') {
    const bounce = memberOf(notification, 'bounce');
    const groups = list(bounce, 'bouncedRecipients').map((each) => bounced(each, text(bounce, 'bounceType')));
    return { kind: 'bounce', groups, feedbackType: '', messageId };
  }
  if (type === 'Complaint') {
    const complaint = memberOf(notification, 'complaint');
    const groups = list(complaint, 'complainedRecipients').map((each) => groupOf(text(each, 'emailAddress')));
    return {
      kind: 'complaint',
      groups,
      feedbackType: text(complaint, 'complaintFeedbackType') || 'abuse',
      messageId,
    };
  }
  if (type === 'Delivery') {
    const delivery = memberOf(notification, 'delivery');
    const response = text(delivery, 'smtpResponse');
    const groups = list(delivery, 'recipients').map((each) => delivered(each, response));
    return { kind: 'delivery', groups, feedbackType: '', messageId };
  }
  return null;
}

function bounced(recipient: unknown, bounceType: string): StatusGroup {
  const diagnostic = text(recipient, 'diagnosticCode').replace(/^[\w-]{1,20};\s*/, '');
  return {
    ...groupOf(text(recipient, 'emailAddress')),
    action: text(recipient, 'action') || (bounceType === 'Transient' ? 'delayed' : 'failed'),
    status: enhancedCode(text(recipient, 'status')) ?? '',
    diagnostic,
  };
}

function delivered(recipient: unknown, response: string): StatusGroup {
  return {
    ...groupOf(typeof recipient === 'string' ? recipient : ''),
    action: 'delivered',
    status: enhancedCode(response) ?? '',
    diagnostic: response,
  };
}

function groupOf(recipient: string): StatusGroup {
  return {
    recipient,
    originalRecipient: '',
    action: '',
    status: '',
    statusComment: '',
    diagnosticType: 'smtp',
    diagnostic: '',
    category: '',
    remoteMta: '',
  };
}

/** A fold (line end and space) may be inside a string, with or without the `!` that some mail servers insert. */
function parseFolded(lines: readonly string[]): unknown {
  const json = lines.map((line, i) => (i === 0 ? line : line.replace(/^ /, ''))).join('');
  return (
    parseUntrustedJson(json) ??
    parseUntrustedJson(lines.map((line) => line.replace(/!$/, '').replace(/^ /, '')).join(''))
  );
}

function text(value: unknown, name: string): string {
  return stringMember(value, name, MAX_TEXT_LENGTH);
}

const MAX_TEXT_LENGTH = 4000;
/** The maximum of SNS. */
const MAX_MESSAGE_LENGTH = 256 * 1024;
const MAX_RECIPIENTS = 200;

function list(value: unknown, name: string): unknown[] {
  const found = memberOf(value, name);
  return Array.isArray(found) ? found.slice(0, MAX_RECIPIENTS) : [];
}
