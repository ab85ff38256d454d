import { useMemo } from 'preact/hooks';
import { Chip, Empty, Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import { DayChart } from './day-chart.tsx';
import type { ShownReports } from './report-data.ts';
import { SignedBy } from './signed-by.tsx';

type Dmarc = ShownReports['dmarc'];

interface DmarcReportsProps {
  dmarc: Dmarc;
  /** Whether the account proved control of the domain: otherwise it is shown no reports. */
  isProven: boolean;
}

/** Who sends mail with the domain in From, as receivers report it. */
export function DmarcReports({ dmarc, isProven }: DmarcReportsProps) {
  const { t, percent } = useTexts();
  const { messages, passed, sources, days, reports } = dmarc;
  const counted = useMemo(
    () => days.map((day) => ({ date: day.date, good: day.passed, bad: day.messages - day.passed })),
    [days],
  );
  if (!isProven) return null;
  if (reports.length === 0)
    return (
      <Empty title={t('reports.dmarc.empty')}>
        <p>{t('reports.dmarc.empty.hint')}</p>
      </Empty>
    );
  return (
    <>
      <p>
        {t('reports.dmarc.total', { messages, passed, share: percent(passed, messages, 'down') })}{' '}
        {messages > passed && t('reports.dmarc.failing')}
      </p>
      <h2>{t('reports.sources')}</h2>
      <Sources sources={sources} />
      <h2>{t('reports.byDay')}</h2>
      <DayChart days={counted} good={t('reports.aligned')} bad={t('reports.failed')} />
      <Days days={days} />
      <h2>{t('reports.individual')}</h2>
      <Individual reports={reports} />
      <p class="small">{t('reports.notAuthenticated')}</p>
    </>
  );
}

function Sources({ sources }: { sources: Dmarc['sources'] }) {
  const { t, number, percent } = useTexts();
  return (
    <Table
      label={t('reports.sources')}
      heads={[
        t('reports.source'),
        t('reports.result'),
        { text: t('campaigns.queued'), end: true },
        { text: t('reports.dkim'), end: true },
        { text: t('reports.spf'), end: true },
        { text: t('reports.quarantined'), end: true },
        { text: t('reports.rejected'), end: true },
      ]}
    >
      {sources.map((source) => (
        <tr key={source.sourceIp}>
          <th scope="row">{source.sourceIp}</th>
          <td>
            <Chip kind={source.passed === source.messages ? 'ok' : source.passed === 0 ? 'bad' : 'idle'}>
              {t(
                source.passed === source.messages
                  ? 'reports.result.pass'
                  : source.passed === 0
                    ? 'reports.result.fail'
                    : 'reports.result.some',
              )}
            </Chip>
          </td>
          <td>{number(source.messages)}</td>
          <td>{percent(source.dkimPassed, source.messages, 'down')}</td>
          <td>{percent(source.spfPassed, source.messages, 'down')}</td>
          <td>{number(source.quarantined)}</td>
          <td>{number(source.rejected)}</td>
        </tr>
      ))}
    </Table>
  );
}

function Days({ days }: { days: Dmarc['days'] }) {
  const { t, number, percent } = useTexts();
  return (
    <Table
      label={t('reports.byDay')}
      heads={[
        t('reports.day'),
        { text: t('campaigns.queued'), end: true },
        { text: t('reports.aligned'), end: true },
        { text: t('reports.dkim'), end: true },
        { text: t('reports.spf'), end: true },
      ]}
    >
      {days.map((day) => (
        <tr key={day.date}>
          <th scope="row">{day.date}</th>
          <td>{number(day.messages)}</td>
          <td>
            <meter aria-hidden="true" min={0} max={day.messages} value={day.passed} />{' '}
            {percent(day.passed, day.messages, 'down')}
          </td>
          <td>{percent(day.dkimPassed, day.messages, 'down')}</td>
          <td>{percent(day.spfPassed, day.messages, 'down')}</td>
        </tr>
      ))}
    </Table>
  );
}

function Individual({ reports }: { reports: Dmarc['reports'] }) {
  const { t, time } = useTexts();
  return (
    <Table
      label={t('reports.individual')}
      heads={[
        t('reports.organization'),
        t('reports.period'),
        t('reports.policy'),
        { text: t('campaigns.queued'), end: true },
        t('reports.id'),
      ]}
    >
      {reports.map((report) => (
        <tr key={`${report.organization} ${report.reportId} ${report.begin}`}>
          <th scope="row">
            {report.organization}
            <SignedBy report={report} />
          </th>
          <td>
            {time(report.begin)} – {time(report.end)}
          </td>
          <td>
            p={report.policy} <p class="small">{report.policyDomain}</p>
          </td>
          <td>
            {report.messages}
            {report.truncated && <p class="small">{t('reports.truncated')}</p>}
          </td>
          <td class="value">{report.reportId}</td>
        </tr>
      ))}
    </Table>
  );
}
