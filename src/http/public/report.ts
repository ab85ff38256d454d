import { ABUSE_REPORT_REASONS } from '../../events/event-types.ts';
import type { SentMail } from '../../mail/sent-mail.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { Tables } from '../../store/tables.ts';
import type { ReportAbuse } from '../../suppression/unsubscribe.ts';
import { isOwnHost, type PageHosts, redirectToPlatform } from './own-host.ts';
import { partiesOf } from './parties.ts';
import { unknownLinkPage } from './plain-pages.ts';
import { reportedPage, reportForm } from './report-page.ts';
import type { PublicResponse, PublicRoute } from './response.ts';

/* `/r/<token>`: GET shows the form, POST records the complaint. A repeated POST records nothing. */

export interface ReportDeps {
  hosts: PageHosts;
  tables: Tables;
  writer: Writer;
  tokens: Pick<Tokens, 'reportUrl'>;
  reportAbuse: ReportAbuse;
}

/**
 * A reason that is not in the form counts as `other`. The report is one unit of work, and the page follows when it is
 * durable.
 */
export function reportRoute({ tables, writer, tokens, reportAbuse, hosts }: ReportDeps): PublicRoute {
  async function report(
    mail: SentMail,
    reason: string,
    ip: string,
    userAgent: string,
  ): Promise<PublicResponse> {
    const known = ABUSE_REPORT_REASONS.find((each) => each === reason) ?? 'other';
    const isNew = await writer.run(
      (all) => reportAbuse(all, mail, { reason: known, ip, userAgent }),
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
