import type { AbuseReportReason } from '../../events/event-types.ts';
import type { Stream } from '../../store/domains/domains.ts';
import { empty, html, pageResponse } from './layout.ts';
import type { PublicResponse } from './response.ts';

/* The report-abuse page. Its form has one field, `reason`. */

/** What the page shows. */
export interface ReportView {
  sender: string;
  recipient: string | null;
  stream: Stream;
}

const REASONS: readonly [AbuseReportReason, string][] = [
  ['never_asked', 'I never subscribed to this mail'],
  ['asked_to_stop', 'I unsubscribed, but still get mail'],
  ['fraud', 'It is fraud, or pretends to come from someone else'],
  ['other', 'Another reason'],
];

/** 200 for GET. `recipient`: the masked address; null: the message was deleted, and the page names the sender only. */
export function reportForm({ sender, recipient }: ReportView): PublicResponse {
  const options = REASONS.map(
    ([reason, label], index) =>
      html`<label><input type="radio" name="reason" value="${reason}"${index === 0 ? html` checked` : empty}><span>${label}</span></label>
`,
  );
  const to = recipient === null ? empty : html` to <bdi>${recipient}</bdi>`;
  return pageResponse(
    200,
    'Report abuse',
    html`<p>This is about a mail from <bdi>${sender}</bdi>${to}. Your report is recorded, and the sender's marketing mail to you stops.</p>
<form method="post">
<fieldset>
<legend>What is wrong with this mail?</legend>
${options}</fieldset>
<button type="submit">Report this mail</button>
</form>`,
  );
}

/** 200 after a report; `isNew` false: this mail was reported before, and nothing was recorded. */
export function reportedPage({ sender, stream }: ReportView, isNew: boolean): PublicResponse {
  const others =
    stream === 'tx'
      ? html`<p>This does not block messages about your orders and accounts with the sender. To stop those as well, use the unsubscribe link in the mail.</p>`
      : empty;
  return pageResponse(
    200,
    'Thank you',
    html`<p role="status">${isNew ? 'Your report was recorded.' : 'You have already reported this mail.'} No more marketing mail from <bdi>${sender}</bdi> will be sent to you.</p>
${others}`,
  );
}
