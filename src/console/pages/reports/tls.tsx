import { useMemo } from 'preact/hooks';
import { Figure, FigureRow } from '../../parts/figures.tsx';
import { FirstRows } from '../../parts/first-rows.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { Card, Empty, Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import { DayChart } from './day-chart.tsx';
import { IndividualReports } from './individual-reports.tsx';
import type { ShownReports } from './report-data.ts';

type Tls = ShownReports['tls'];

/** Whether sessions to the domain's return path were encrypted, as senders report it (RFC 8460). */
export function TlsReports({ tls }: { tls: Tls }) {
  const { t, number, percent, plural } = useTexts();
  const { successful, failed, failures, days, reports } = tls;
  const counted = useMemo(
    () => days.map((day) => ({ date: day.date, good: day.successful, bad: day.failed })),
    [days],
  );
  if (reports.length === 0)
    return (
      <Empty title={t('reports.tls.empty')} icon="chart-line">
        <p>{t('reports.tls.empty.hint')}</p>
      </Empty>
    );
  const sessions = successful + failed;
  return (
    <>
      <FigureRow>
        <Figure
          color="--c-accepted"
          label={t('reports.sessionTotal')}
          value={number(sessions)}
          note={plural('reports.reportCount', reports.length)}
        />
        <Figure
          color="--c-delivered"
          label={t('reports.encrypted')}
          value={percent(successful, sessions, 'down')}
          note={number(successful)}
        />
        <Figure
          color="--c-bounced"
          label={t('reports.failed')}
          value={number(failed)}
          note={percent(failed, sessions)}
        />
      </FigureRow>
      <DayChart days={counted} good={t('reports.encrypted')} bad={t('reports.failed')} />
      <Card title={t('reports.failures')}>
        {failures.length === 0 ? (
          <p class="all-well">
            <Icon name="circle-check" />
            {t('reports.failures.none')}
          </p>
        ) : (
          <FirstRows rows={failures}>
            {(rows) => (
              <Table
                label={t('reports.failures')}
                isList
                heads={[
                  t('reports.failure'),
                  t('queue.host'),
                  t('queue.reason'),
                  { text: t('reports.sessions'), end: true },
                ]}
              >
                {rows.map((each) => (
                  <tr key={`${each.type} ${each.receivingHost} ${each.reason}`}>
                    <th scope="row">{each.type}</th>
                    <td class="second">{each.receivingHost}</td>
                    <td class="when">{each.reason}</td>
                    <td class="aside">{number(each.sessions)}</td>
                  </tr>
                ))}
              </Table>
            )}
          </FirstRows>
        )}
      </Card>
      <Card title={t('reports.byDay')}>
        <FirstRows rows={days}>
          {(rows) => (
            <Table
              label={t('reports.byDay')}
              isList
              heads={[
                t('reports.day'),
                { text: t('reports.sessions'), end: true },
                { text: t('reports.encrypted'), end: true },
              ]}
            >
              {rows.map((day) => (
                <tr key={day.date}>
                  <th scope="row">{day.date}</th>
                  <td class="aside">{number(day.successful + day.failed)}</td>
                  <td class="second labelled">
                    <meter
                      aria-hidden="true"
                      min={0}
                      max={day.successful + day.failed}
                      value={day.successful}
                    />{' '}
                    {percent(day.successful, day.successful + day.failed, 'down')}
                  </td>
                </tr>
              ))}
            </Table>
          )}
        </FirstRows>
      </Card>
      <IndividualReports
        reports={reports}
        partOf={({ policyType }) => policyType}
        policyOf={({ policyType }) => policyType}
        counts={[
          { head: t('reports.encrypted'), of: (report) => number(report.successful) },
          { head: t('reports.failed'), of: (report) => number(report.failed) },
        ]}
      />
    </>
  );
}
