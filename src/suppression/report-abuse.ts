import type { Clock } from '../core/clock.ts';
import type { OnSuppressionChange, Recorder } from '../events/record.ts';
import type { SentMail } from '../mail/sent-mail.ts';
import type { Tables } from '../store/tables.ts';
import { withoutMessage } from './unsubscribe.ts';

/**
 * What it means when somebody reports a mail by its own link: a complaint, on record for the account, and the
 * end of its marketing to this person. It never blocks transactional mail (contract §13.10).
 */
export const REPORT_REASONS = ['never_asked', 'asked_to_stop', 'fraud', 'other'] as const;
export type ReportReason = (typeof REPORT_REASONS)[number];

export interface Report {
  reason: ReportReason;
  ip: string;
  userAgent: string;
}

export interface ReportAbuseSettings {
  clock: Clock;
  recorder: Recorder;
  onSuppressionChange: OnSuppressionChange;
}

/** In a unit of work. False: it was reported before, and nothing is recorded. */
export type ReportAbuse = (tables: Tables, mail: SentMail, report: Report) => boolean;

export function createReportAbuse(settings: ReportAbuseSettings): ReportAbuse {
  const { clock, recorder, onSuppressionChange } = settings;

  return (tables, mail, { reason, ip, userAgent }) => {
    const fields = { source: 'report_link', feedbackType: 'abuse', reportReason: reason, ip, userAgent };
    const message = tables.messages.byId(mail.messageId);
    if (message !== null) {
      // The mail is in somebody's hands, whatever became of the connection that brought it there.
      return recorder.message(tables, message, 'email_complained', { fields, reported: true });
    }
    if (mail.simulated) return false;
    const added = tables.suppressions.add({
      account_id: mail.accountId,
      recipient_hash: mail.recipientHash,
      stream: 'mk',
      reason: 'complaint',
      email: null,
      message_seq: null,
      created_at: clock.now(),
    });
    if (!added) return false;
    onSuppressionChange(tables, mail.accountId, mail.recipientHash);
    recorder.complained(tables, withoutMessage(mail, fields));
    return true;
  };
}
