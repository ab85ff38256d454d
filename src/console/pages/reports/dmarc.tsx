import { useMemo } from 'preact/hooks';
import { Figure, FigureRow } from '../../parts/figures.tsx';
import { FirstRows } from '../../parts/first-rows.tsx';
import { Card, Chip, Empty, Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import { DayChart } from './day-chart.tsx';
import { IndividualReports } from './individual-reports.tsx';
import type { ShownReports } from './report-data.ts';

type Dmarc = ShownReports['dmarc'];

/** Who sends mail with the domain in From, as receivers report it. */
export function DmarcReports({ dmarc }: { dmarc: Dmarc }) {
  const { t, number, percent, plural } = useTexts();
  const { messages, passed, sources, days, reports } = dmarc;
  const counted = useMemo(
    () => days.map((day) => ({ date: day.date, good: day.passed, bad: day.messages - day.passed })),
    [days],
  );
  if (reports.length === 0)
    return (
      <Empty title={t('reports.dmarc.empty')} icon="chart-line">
        <p>{t('reports.dmarc.empty.hint')}</p>
      </Empty>
    );
  const quarantined = sources.reduce((sum, each) => sum + each.quarantined, 0);
  const rejected = sources.reduce((sum, each) => sum + each.rejected, 0);
  const share = (count: number) => percent(count, messages);
  return (
    <>
      <FigureRow>
        <Figure
          color="--c-accepted"
          label={t('reports.messages')}
          value={number(messages)}
          note={plural('reports.sourceCount', sources.length)}
        />
        <Figure
          color="--c-delivered"
          label={t('reports.aligned')}
          value={percent(passed, messages, 'down')}
          note={t('overview.figure.messages', { count: passed })}
        />
        <Figure
          color="--c-bounced"
          label={t('reports.failed')}
          value={number(messages - passed)}
          note={share(messages - passed)}
        />
        <Figure
          color="--c-deferred"
          label={t('reports.quarantined')}
          value={number(quarantined)}
          note={share(quarantined)}
        />
        <Figure
          color="--c-complained"
          label={t('reports.rejected')}
          value={number(rejected)}
          note={share(rejected)}
        />
      </FigureRow>
      {messages > passed && <p class="small">{t('reports.dmarc.failing')}</p>}
      <DayChart days={counted} good={t('reports.aligned')} bad={t('reports.failed')} />
      <Card title={t('reports.sources')}>
        <FirstRows rows={sources}>{(rows) => <Sources sources={rows} />}</FirstRows>
      </Card>
      <Card title={t('reports.byDay')}>
        <FirstRows rows={days}>{(rows) => <Days days={rows} />}</FirstRows>
      </Card>
      <IndividualReports
        reports={reports}
        partOf={({ begin }) => begin}
        policyOf={({ policy, policyDomain }) => (
          <>
            p={policy} <p class="small">{policyDomain}</p>
          </>
        )}
        counts={[
          {
            head: t('campaigns.queued'),
            of: (report) => (
              <>
                {number(report.messages)}
                {report.truncated && <p class="small">{t('reports.truncated')}</p>}
              </>
            ),
          },
        ]}
      />
    </>
  );
}

function Sources({ sources }: { sources: readonly Dmarc['sources'][number][] }) {
  const { t, number, percent } = useTexts();
  return (
    <Table
      label={t('reports.sources')}
      isList
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
          <td class="aside">
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
          <td class="when labelled">{number(source.messages)}</td>
          <td class="second labelled">{percent(source.dkimPassed, source.messages, 'down')}</td>
          <td>{percent(source.spfPassed, source.messages, 'down')}</td>
          <td>{number(source.quarantined)}</td>
          <td>{number(source.rejected)}</td>
        </tr>
      ))}
    </Table>
  );
}

function Days({ days }: { days: readonly Dmarc['days'][number][] }) {
  const { t, number, percent } = useTexts();
  return (
    <Table
      label={t('reports.byDay')}
      isList
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
          <td class="aside">{number(day.messages)}</td>
          <td class="second labelled">
            <meter aria-hidden="true" min={0} max={day.messages} value={day.passed} />{' '}
            {percent(day.passed, day.messages, 'down')}
          </td>
          <td class="when labelled">{percent(day.dkimPassed, day.messages, 'down')}</td>
          <td>{percent(day.spfPassed, day.messages, 'down')}</td>
        </tr>
      ))}
    </Table>
  );
}
