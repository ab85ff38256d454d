import { enhancedCode } from '../classify/classify.ts';
import type { StatusGroup } from './delivery-status.ts';

/**
 * Amazon SES says in JSON, sent as mail through SNS, what others say in RFC 3464 or RFC 5965. Read into the
 * same groups. The JSON stands among words and may have been folded like a header.
 */
export interface SesNotification {
  kind: 'bounce' | 'complaint' | 'delivery';
  groups: StatusGroup[];
  /** Complaints: SES's word, which is RFC 5965's. */
  feedbackType: string;
  messageId: string | null;
}

/** Null when the lines hold no such notification. */
export function readSesNotification(lines: readonly string[]): SesNotification | null {
  const start = lines.findIndex((line) => line.startsWith('{'));
  if (start < 0) return null;
  const end = lines.indexOf('', start);
  const block = lines.slice(start, end < 0 ? undefined : end);
  if (!block.some((line) => line.includes('notificationType'))) return null;
  const parsed = parseFolded(block);
  // SNS may send its own envelope around it.
  const enveloped = text(parsed, 'Message', LONGEST_MESSAGE);
  const notification = enveloped === '' ? parsed : parseFolded([enveloped]);
  const type = text(notification, 'notificationType');
  const messageId = text(member(notification, 'mail'), 'messageId') || null;
  if (type === 'Bounce') {
    const bounce = member(notification, 'bounce');
    const groups = list(bounce, 'bouncedRecipients').map((each) => bounced(each, text(bounce, 'bounceType')));
    return { kind: 'bounce', groups, feedbackType: '', messageId };
  }
  if (type === 'Complaint') {
    const complaint = member(notification, 'complaint');
    const groups = list(complaint, 'complainedRecipients').map((each) => groupOf(text(each, 'emailAddress')));
    return {
      kind: 'complaint',
      groups,
      feedbackType: text(complaint, 'complaintFeedbackType') || 'abuse',
      messageId,
    };
  }
  if (type === 'Delivery') {
    const delivery = member(notification, 'delivery');
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

/** A line end and the blank after it may stand inside a string, with or without the `!` of an old wrapper. */
function parseFolded(lines: readonly string[]): unknown {
  const json = lines.map((line, i) => (i === 0 ? line : line.replace(/^ /, ''))).join('');
  for (const candidate of [json, lines.map((line) => line.replace(/!$/, '').replace(/^ /, '')).join('')]) {
    try {
      const parsed: unknown = JSON.parse(candidate);
      return parsed;
    } catch {
      // Not folded that way.
    }
  }
  return null;
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

function text(value: unknown, name: string, longest = 4000): string {
  const found = member(value, name);
  return typeof found === 'string' ? found.slice(0, longest) : '';
}

/** SNS takes no message beyond 256 KiB. */
const LONGEST_MESSAGE = 256 * 1024;

function list(value: unknown, name: string): unknown[] {
  const found = member(value, name);
  return Array.isArray(found) ? found.slice(0, 200) : [];
}
