import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { FirstRows } from '../../parts/first-rows.tsx';
import { Card, Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';

/** What every report says about itself. */
interface Report {
  organization: string;
  verified: boolean;
  signer: string | null;
  begin: string;
  end: string;
  reportId: string;
}

interface IndividualReportsProps<Shown extends Report> {
  reports: readonly Shown[];
  /** What distinguishes the reports of an organization that have the same id. */
  partOf: (report: Shown) => string;
  policyOf: (report: Shown) => ComponentChildren;
  /** What the reports count; phones show the first. */
  counts: readonly { head: string; of: (report: Shown) => ComponentChildren }[];
}

/** The reports of which the figures are made, and how much they can be trusted. */
export function IndividualReports<Shown extends Report>(props: IndividualReportsProps<Shown>) {
  const { reports, partOf, policyOf, counts } = props;
  const { t, locale } = useTexts();
  const days = useMemo(
    () => new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' }),
    [locale],
  );
  return (
    <>
      <Card title={t('reports.individual')}>
        <FirstRows rows={reports}>
          {(rows) => (
            <Table
              label={t('reports.individual')}
              isList
              heads={[
                t('reports.organization'),
                t('reports.period'),
                t('reports.policy'),
                t('reports.id'),
                ...counts.map(({ head }) => ({ text: head, end: true }) as const),
              ]}
            >
              {rows.map((report) => (
                <tr key={`${report.organization} ${report.reportId} ${partOf(report)}`}>
                  <th scope="row">
                    {report.organization}
                    <SignedBy report={report} />
                  </th>
                  <td class="second">
                    <Period of={report} days={days} />
                  </td>
                  <td class="when">{policyOf(report)}</td>
                  <td class="value small">{report.reportId}</td>
                  {counts.map(({ head, of }, index) => (
                    <td key={head} class={index === 0 ? 'aside' : undefined}>
                      {of(report)}
                    </td>
                  ))}
                </tr>
              ))}
            </Table>
          )}
        </FirstRows>
      </Card>
      <p class="small">{t('reports.notAuthenticated')}</p>
    </>
  );
}

/** Whether the organization of a report has signed it, or who else. */
function SignedBy({ report: { verified, signer } }: { report: Report }) {
  const { t } = useTexts();
  return (
    <p class="small">
      {signer !== null && t('reports.verified', { signer })}
      {signer !== null && !verified && '. '}
      {!verified && t('reports.unverified')}
    </p>
  );
}

/** The time that a report is about: days, with the exact times on demand. */
function Period({ of: { begin, end }, days }: { of: Report; days: Intl.DateTimeFormat }) {
  const { time } = useTexts();
  // It ends at the midnight after its last day.
  const [first, last] = [days.format(Date.parse(begin)), days.format(Date.parse(end) - 1)];
  return <span title={`${time(begin)} – ${time(end)}`}>{first === last ? first : `${first} – ${last}`}</span>;
}
