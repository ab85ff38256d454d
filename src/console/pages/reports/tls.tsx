import { useMemo } from 'preact/hooks';
import { Empty, Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import { DayChart } from './day-chart.tsx';
import type { ShownReports } from './report-data.ts';
import { SignedBy } from './signed-by.tsx';

type Tls = ShownReports['tls'];

interface TlsReportsProps {
  tls: Tls;
  /** Whether the account proved control of the domain: otherwise it is shown no reports. */
  isProven: boolean;
}

/** Whether sessions to the domain's return path were encrypted, as senders report it (RFC 8460). */
export function TlsReports({ tls, isProven }: TlsReportsProps) {
  const { t, time, number, percent } = useTexts();
  const { successful, failed, failures, days, reports } = tls;
  const counted = useMemo(
    () => days.map((day) => ({ date: day.date, good: day.successful, bad: day.failed })),
    [days],
  );
  if (!isProven) return null;
  if (reports.length === 0)
    return (
      <Empty title={t('reports.tls.empty')}>
        <p>{t('reports.tls.empty.hint')}</p>
      </Empty>
    );
  return (
    <>
      <p>
        {t('reports.tls.total', {
          sessions: successful + failed,
          successful,
          share: percent(successful, successful + failed, 'down'),
        })}
      </p>
      <h2>{t('reports.failures')}</h2>
      {failures.length === 0 ? (
        <p>{t('reports.failures.none')}</p>
      ) : (
        <Table
          label={t('reports.failures')}
          heads={[t('reports.failure'), t('queue.host'), t('reports.sessions'), t('queue.reason')]}
        >
          {failures.map(({ type, receivingHost, reason, sessions }) => (
            <tr key={`${type} ${receivingHost} ${reason}`}>
              <th scope="row">{type}</th>
              <td>{receivingHost}</td>
              <td>{sessions}</td>
              <td>{reason}</td>
            </tr>
          ))}
        </Table>
      )}
      <h2>{t('reports.byDay')}</h2>
      <DayChart days={counted} good={t('reports.encrypted')} bad={t('reports.failed')} />
      <Table
        label={t('reports.byDay')}
        heads={[t('reports.day'), t('reports.sessions'), t('reports.encrypted')]}
      >
        {days.map((day) => (
          <tr key={day.date}>
            <th scope="row">{day.date}</th>
            <td>{number(day.successful + day.failed)}</td>
            <td>
              <meter aria-hidden="true" min={0} max={day.successful + day.failed} value={day.successful} />{' '}
              {percent(day.successful, day.successful + day.failed, 'down')}
            </td>
          </tr>
        ))}
      </Table>
      <h2>{t('reports.individual')}</h2>
      <Table
        label={t('reports.individual')}
        heads={[
          t('reports.organization'),
          t('reports.period'),
          t('reports.policy'),
          t('reports.encrypted'),
          t('reports.failed'),
          t('reports.id'),
        ]}
      >
        {reports.map((report) => (
          <tr key={`${report.organization} ${report.reportId} ${report.policyType}`}>
            <th scope="row">
              {report.organization}
              <SignedBy report={report} />
            </th>
            <td>
              {time(report.begin)} – {time(report.end)}
            </td>
            <td>{report.policyType}</td>
            <td>{number(report.successful)}</td>
            <td>{number(report.failed)}</td>
            <td class="value">{report.reportId}</td>
          </tr>
        ))}
      </Table>
      <p class="small">{t('reports.notAuthenticated')}</p>
    </>
  );
}
