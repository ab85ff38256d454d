import type { AbuseReportReason } from '../../events/event-types.ts';
import type { PublicAnswer } from './answer.ts';
import { html, nothing, pageAnswer } from './layout.ts';

/** What the report-abuse page says. Its form's one field is `reason`. */
export interface ReportView {
  sender: string;
  recipient: string | null;
  stream: 'tx' | 'mk';
}

const REASONS: readonly [AbuseReportReason, string][] = [
  ['never_asked', 'I never asked for this mail'],
  ['asked_to_stop', 'I asked for it to stop, and it did not'],
  ['fraud', 'It is a fraud, or pretends to come from somebody else'],
  ['other', 'Something else is wrong with it'],
];

export function reportForm({ sender, recipient }: ReportView): PublicAnswer {
  const options = REASONS.map(
    ([reason, label], index) =>
      html`<label><input type="radio" name="reason" value="${reason}"${index === 0 ? html` checked` : nothing}><span>${label}</span></label>
`,
  );
  const to = recipient === null ? nothing : html` to <bdi>${recipient}</bdi>`;
  return pageAnswer(
    200,
    'Report abuse',
    html`<p>This is about a mail from <bdi>${sender}</bdi>${to}. Your report is kept on record, and the sender's marketing mail to you stops.</p>
<form method="post">
<fieldset>
<legend>What is wrong with it?</legend>
${options}</fieldset>
<button type="submit">Report this mail</button>
</form>`,
  );
}

export function reportedPage({ sender, stream }: ReportView, isNew: boolean): PublicAnswer {
  const others =
    stream === 'tx'
      ? html`<p>Messages about your own orders and accounts with the sender are not blocked by this. To stop those as well, use the unsubscribe link in the mail.</p>`
      : nothing;
  return pageAnswer(
    200,
    'Thank you',
    html`<p role="status">${isNew ? 'Your report is on record.' : 'This mail was reported before.'} No more marketing mail of <bdi>${sender}</bdi> will be sent to you.</p>
${others}`,
  );
}
