import { ABUSE_REPORT_REASONS } from '../../events/event-types.ts';
import type { SentMail } from '../../mail/sent-mail.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { Context } from '../../store/context.ts';
import type { ReportAbuse } from '../../suppression/unsubscribe.ts';
import { empty, html } from './html.ts';
import { pageResponse } from './layout.ts';
import { plainLook } from './look.ts';
import { isOwnHost, type PageHosts, redirectToPlatform } from './own-host.ts';
import { type Parties, partiesOf } from './parties.ts';
import { unknownLinkPage } from './plain-pages.ts';
import type { PublicRequest, PublicResponse, PublicRoute } from './response.ts';

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
    { fields, visitor: { ip, userAgent }, acceptLanguage }: PublicRequest,
  ): Promise<PublicResponse> {
    const reason = ABUSE_REPORT_REASONS.find((each) => each === fields.get('reason')) ?? 'other';
    const isNew = await writer.run((tx) => reportAbuse(tx, mail, { reason, ip, userAgent }), mail.accountId);
    return reportedPage(partiesOf(tables, mail, acceptLanguage), mail, isNew);
  }

  return {
    name: 'r',
    methods: ['GET', 'POST'],
    handle: (request) => {
      const { method, host, token, acceptLanguage } = request;
      const mail = tokens.reportUrl(token);
      if (mail === null) return unknownLinkPage(plainLook(acceptLanguage));
      if (!isOwnHost(hosts, host, mail.accountId))
        return method === 'GET'
          ? redirectToPlatform(hosts, `/r/${token}`)
          : unknownLinkPage(plainLook(acceptLanguage));
      if (method === 'GET') return reportForm(partiesOf(tables, mail, acceptLanguage));
      return report(mail, request);
    },
  };
}

/** 200 for GET. */
function reportForm({ look, sender, recipient }: Parties): PublicResponse {
  const options = ABUSE_REPORT_REASONS.map(
    (reason, index) =>
      html`<label><input type="radio" name="reason" value="${reason}"${index === 0 ? html` checked` : empty}><span>${look.text(`report.${reason}`)}</span></label>
`,
  );
  const about =
    recipient === null
      ? look.text('report.aboutYou', { sender })
      : look.text('report.about', { sender, recipient });
  return pageResponse(
    look,
    200,
    'report.title',
    html`<p>${about} ${look.text('report.effect')}</p>
<form method="post">
<fieldset>
<legend>${look.text('report.question')}</legend>
${options}</fieldset>
<button type="submit">${look.text('report.send')}</button>
</form>`,
  );
}

/** 200 after a report; `isNew` false: this mail was reported before, and nothing was recorded. */
function reportedPage({ look, sender }: Parties, { stream }: SentMail, isNew: boolean): PublicResponse {
  const others = stream === 'tx' ? html`<p>${look.text('report.transactional')}</p>` : empty;
  return pageResponse(
    look,
    200,
    'report.thanks',
    html`<p role="status">${look.text(isNew ? 'report.recorded' : 'report.repeated')} ${look.text('report.stopped', { sender })}</p>
${others}`,
  );
}
