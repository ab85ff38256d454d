import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Chip, Loaded, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import type { ShownReports } from '../reports/report-data.ts';
import { CopiedName, CopiedValue } from './records.tsx';

export const DMARC_PATH = '/web-setup/domains/{domainId}/dmarc-path';

type Path = DataOf<typeof DMARC_PATH>;

const POLICIES = ['none', 'quarantine', 'reject'] as const;
const SHOWN_SOURCES = 10;

/** From a DMARC policy that only asks for reports to a strict one, as far as the reports permit it. */
export function DmarcPath({ domainId }: { domainId: string }) {
  const { t, time } = useTexts();
  const data = useOperation(DMARC_PATH, { domainId });
  const reports = useOperation('/web-setup/domains/{domainId}/reports', { domainId });
  return (
    <Loaded data={data}>
      {(found) => (
        <>
          <h2>{t('domains.tab.dmarc')}</h2>
          <Policies policy={found.policy} />
          {found.unknown !== null && (
            <p class="notice bad">{t('domains.dmarc.unknown', { reason: found.unknown })}</p>
          )}
          {found.published !== null && (
            <>
              <p>{t('domains.dmarc.published', { name: found.publishedAt ?? '' })}</p>
              <pre tabIndex={0}>{found.published}</pre>
            </>
          )}
          {found.next !== null && <Step path={found} next={found.next} />}
          {found.policy === 'reject' && <p>{t('domains.dmarc.complete')}</p>}
          <h2>{t('domains.dmarc.evidence')}</h2>
          {found.lastFailureAt !== null && (
            <p>{t('domains.dmarc.lastFailure', { time: time(found.lastFailureAt) })}</p>
          )}
          <Loaded data={reports}>{({ dmarc }) => <Evidence dmarc={dmarc} domainId={domainId} />}</Loaded>
        </>
      )}
    </Loaded>
  );
}

/** The three policies, with the one that applies. */
function Policies({ policy }: { policy: Path['policy'] }) {
  const { t } = useTexts();
  return (
    <ol>
      {POLICIES.map((name) => (
        <li key={name} aria-current={name === policy ? 'step' : undefined}>
          <strong>p={name}</strong> {t(`domains.dmarc.policy.${name}`)}{' '}
          {name === policy && (
            <Chip kind={name === 'none' ? 'idle' : 'ok'}>{t('domains.dmarc.current')}</Chip>
          )}
        </li>
      ))}
    </ol>
  );
}

function Step({ path: { domain, policy: current }, next }: { path: Path; next: NonNullable<Path['next']> }) {
  const { t, time } = useTexts();
  const { policy, record, isReady, readyAt } = next;
  return (
    <section class="notice" aria-label={t('domains.dmarc.next', { policy: `p=${policy}` })}>
      <p>
        <strong>{t('domains.dmarc.next', { policy: `p=${policy}` })}</strong>
      </p>
      <p>
        {current === null
          ? t('domains.dmarc.first')
          : isReady
            ? t('domains.dmarc.ready')
            : readyAt === null
              ? t('domains.dmarc.noReports')
              : t('domains.dmarc.readyAt', { time: time(readyAt) })}
      </p>
      <p class="value">
        {record.type} <CopiedName record={record} domain={domain} />
      </p>
      <p class="value">
        <CopiedValue record={record} />
      </p>
    </section>
  );
}

/** What receivers reported in the last 30 days: sources of mail that did not pass come first. */
function Evidence({ dmarc, domainId }: { dmarc: ShownReports['dmarc']; domainId: string }) {
  const { t, number, percent } = useTexts();
  const { href } = useNavigation();
  const { messages, passed, sources } = dmarc;
  const failing = sources.filter((source) => source.passed < source.messages);
  if (messages === 0) return <p>{t('reports.dmarc.empty.hint')}</p>;
  return (
    <>
      <p>{t('reports.dmarc.total', { messages, passed, share: percent(passed, messages, 'down') })}</p>
      {failing.length > 0 && <p>{t('domains.dmarc.failing')}</p>}
      {failing.length > 0 && (
        <Table
          label={t('reports.sources')}
          heads={[
            t('reports.source'),
            { text: t('campaigns.queued'), end: true },
            { text: t('reports.aligned'), end: true },
            { text: t('reports.dkim'), end: true },
            { text: t('reports.spf'), end: true },
          ]}
        >
          {failing.slice(0, SHOWN_SOURCES).map((source) => (
            <tr key={source.sourceIp}>
              <th scope="row">{source.sourceIp}</th>
              <td>{number(source.messages)}</td>
              <td>{percent(source.passed, source.messages, 'down')}</td>
              <td>{percent(source.dkimPassed, source.messages, 'down')}</td>
              <td>{percent(source.spfPassed, source.messages, 'down')}</td>
            </tr>
          ))}
        </Table>
      )}
      <p>
        <a href={href('reputation', { tab: 'dmarc', domain: domainId })}>{t('domains.dmarc.reports')}</a>
      </p>
    </>
  );
}
