import type { AbuseReportReason, EventFields } from '../events/event-types.ts';
import type { OnSuppressionChange, Recorder } from '../events/record.ts';
import type { SentMail } from '../mail/sent-mail.ts';
import type { Context } from '../store/context.ts';
import type { Tables } from '../store/tables.ts';
import { withoutMessage } from './unsubscribe.ts';

/** A report that a recipient sends with the link in a mail. */
export interface AbuseReport {
  reason: AbuseReportReason;
  ip: string;
  userAgent: string;
}

/**
 * Records a complaint and ends the account's marketing mail to the recipient; transactional mail continues. Called in a
 * unit of work. Returns false, and records nothing, when the mail was reported before.
 */
export type ReportAbuse = (tables: Tables, mail: SentMail, report: AbuseReport) => boolean;

/**
 * Keeps no state. For a message that was purged, the suppression of the stream `mk` with reason `complaint` shows
 * whether it was reported before; simulated mail is then ignored.
 */
export function createReportAbuse(
  { clock }: Pick<Context, 'clock'>,
  { recorder, onSuppressionChange }: { recorder: Recorder; onSuppressionChange: OnSuppressionChange },
): ReportAbuse {
  return (tables, mail, { reason, ip, userAgent }) => {
    const fields: EventFields['email_complained'] = {
      source: 'report_link',
      feedbackType: 'abuse',
      reportReason: reason,
      ip,
      userAgent,
    };
    const message = tables.messages.byId(mail.messageId);
    if (message !== null) {
      // The recipient has the mail, even if the connection was lost before its delivery was confirmed.
      const event = { kind: 'email_complained', fields } as const;
      return recorder.message(tables, message, event, { reported: true });
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
    recorder.complained(tables, withoutMessage(mail, { ...fields, suppressed: true }));
    return true;
  };
}
