import { ABUSE_REPORT_REASONS, type AbuseReportReason } from '../../events/event-types.ts';
import type { SentMail } from '../../mail/sent-mail.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { Context } from '../../store/context.ts';
import type { Stream } from '../../store/domains/domains.ts';
import type { ReportAbuse } from '../../suppression/unsubscribe.ts';
import { empty, html, pageResponse } from './layout.ts';
import { isOwnHost, type PageHosts, redirectToPlatform } from './own-host.ts';
import { partiesOf } from './parties.ts';
import { unknownLinkPage } from './plain-pages.ts';
import type { PublicResponse, PublicRoute } from './response.ts';

/* `/r/<token>`: GET shows the form, POST records the complaint. A repeated POST records nothing. */

/**
 * A reason that is not in the form counts as `other`. The report is one unit of work, and the page follows when it is
 * durable.
 */
export function reportRoute(
  { tables, writer }: Pick<Context, 'tables' | 'writer'>,
  {
    tokens,
    hosts,
    reportAbuse,
  }: { tokens: Pick<Tokens, 'reportUrl'>; hosts: PageHosts; reportAbuse: ReportAbuse },
): PublicRoute {
  async function report(
    mail: SentMail,
    reason: string,
    ip: string,
    userAgent: string,
  ): Promise<PublicResponse> {
    const known = ABUSE_REPORT_REASONS.find((each) => each === reason) ?? 'other';
    const isNew = await writer.run(
      (tx) => reportAbuse(tx, mail, { reason: known, ip, userAgent }),
      mail.accountId,
    );
    return reportedPage({ ...partiesOf(tables, mail), stream: mail.stream }, isNew);
  }

  return {
    name: 'r',
    methods: ['GET', 'POST'],
    handle: ({ method, host, token, visitor, fields }) => {
      const mail = tokens.reportUrl(token);
      if (mail === null) return unknownLinkPage();
      if (!isOwnHost(hosts, host, mail.accountId))
        return method === 'GET' ? redirectToPlatform(hosts, `/r/${token}`) : unknownLinkPage();
      if (method === 'GET') return reportForm({ ...partiesOf(tables, mail), stream: mail.stream });
      return report(mail, fields.get('reason') ?? '', visitor.ip, visitor.userAgent);
    },
  };
}

/** What the page shows. */
interface ReportView {
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
function reportForm({ sender, recipient }: ReportView): PublicResponse {
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
function reportedPage({ sender, stream }: ReportView, isNew: boolean): PublicResponse {
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
