import type * as z from 'zod';
import type { reportSchema } from '../../../http/api/doctor.ts';
import type { queueSchema } from '../../../http/api/queue/queue.ts';
import type { siteSchema } from '../../../http/api/queue/queue-schemas.ts';
import { useConsoleData, useRefresh } from '../../data.ts';
import { siteName } from '../../parts/site-name.ts';
import { Time } from '../../parts/time.tsx';
import { Empty, Loaded, Page, Status, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { Facts } from './facts.tsx';
import { Section } from './section.tsx';

type Report = z.output<typeof reportSchema>;
type Queue = z.output<typeof queueSchema>;
type Site = z.output<typeof siteSchema>;
type Finding = Report['findings'][number];

const ORDER = ['failure', 'warning', 'unknown', 'ok'] as const satisfies Finding['status'][];
const SHOWN_DESTINATIONS = 10;
const SHOWN_CHARACTERS = 120;

/** Checks, queue, egress and accounts of the installation. */
export function SystemPage() {
  const { t } = useTexts();
  const { person } = useMember();
  if (!person.operator)
    return (
      <Page title={t('page.system')}>
        <Empty title={t('system.operatorsOnly')} />
      </Page>
    );
  return (
    <Page title={t('page.system')} question={t('system.question')} curl="/web-setup/doctor">
      <Facts />
      <Findings />
      <QueueTotals />
      <Sites />
      <Accounts />
    </Page>
  );
}

/** The checks, worst first; those that pass are folded. */
function Findings() {
  const { t, time } = useTexts();
  const { location, href } = useNavigation();
  const data = useConsoleData<Report>('/console/api/web-setup/doctor');
  const showsAll = location.query['checks'] === 'all';
  return (
    <>
      <h2>{t('system.checks')}</h2>
      {data.value === null && data.error === null && <p class="small">{t('system.checks.wait')}</p>}
      <Loaded data={data}>
        {({ checkedAt, counts, findings }) => {
          const problems = findings.filter(({ status }) => status !== 'ok');
          const shown = [...(showsAll ? findings : problems)].sort(
            (a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status),
          );
          return (
            <>
              <p>
                {t('system.checks.counts', {
                  ok: counts.ok,
                  failure: counts.failure,
                  warning: counts.warning,
                  unknown: counts.unknown,
                })}{' '}
                <span class="small">{t('system.checks.at', { time: time(checkedAt) })}</span>
              </p>
              <p class="actions">
                <button class="button" type="button" onClick={data.reload}>
                  {t('system.checks.again')}
                </button>
                <a class="button" href={href('system', { checks: showsAll ? undefined : 'all' })}>
                  {t(showsAll ? 'system.checks.problems' : 'system.checks.all')}
                </a>
              </p>
              {shown.length === 0 ? (
                <Empty title={t('system.checks.none')} />
              ) : (
                <Table
                  label={t('system.checks')}
                  heads={[t('messages.status'), t('system.check'), t('system.reason'), t('system.fix')]}
                >
                  {shown.map(({ check, subject, status, reason, fix }, index) => (
                    <tr key={`${check} ${subject} ${index}`}>
                      <td>
                        <Status name={status} prefix="system.status" />
                      </td>
                      <td>
                        {check}
                        <p class="small">{subject}</p>
                      </td>
                      <td>{reason}</td>
                      <td>{fix !== undefined && <Fix text={fix} />}</td>
                    </tr>
                  ))}
                </Table>
              )}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

/** What to change; a long text is folded. */
function Fix({ text }: { text: string }) {
  const { t } = useTexts();
  if (text.length <= SHOWN_CHARACTERS) return <span class="value">{text}</span>;
  return (
    <details>
      <summary>{t('system.fix.show')}</summary>
      <p class="value">{text}</p>
    </details>
  );
}

function QueueTotals() {
  const { t } = useTexts();
  const data = useConsoleData<Queue>('/console/api/web-setup/queue');
  useRefresh(data.reload);
  return (
    <Section id="queue" title={t('system.queue')}>
      <Loaded data={data}>
        {({ stopped, sessions, controls, destinations }) => {
          const total = (name: 'messages' | 'sending' | 'deferred' | 'held') =>
            destinations.reduce((sum, each) => sum + each[name], 0);
          return (
            <>
              {stopped !== null && <p class="notice bad">{t('system.stopped', { reason: stopped })}</p>}
              <dl class="facts">
                {(
                  [
                    [t('system.waiting'), total('messages')],
                    [t('system.sending'), total('sending')],
                    [t('system.deferred'), total('deferred')],
                    [t('system.held'), total('held')],
                    [
                      t('system.sessions'),
                      t('campaigns.of', { count: sessions.used, members: sessions.limit }),
                    ],
                    [t('system.controls'), controls.length],
                  ] as const
                ).map(([name, value]) => (
                  <div key={name}>
                    <dt>{name}</dt>
                    <dd>{value}</dd>
                  </div>
                ))}
              </dl>
              {destinations.length === 0 ? (
                <Empty title={t('system.queue.empty')} />
              ) : (
                <Table
                  label={t('system.queue')}
                  heads={[
                    t('system.destination'),
                    { text: t('system.waiting'), end: true },
                    { text: t('system.deferred'), end: true },
                    { text: t('messages.next'), end: true },
                  ]}
                >
                  {destinations.slice(0, SHOWN_DESTINATIONS).map((each) => (
                    <tr key={each.destination}>
                      <th scope="row">{each.destination}</th>
                      <td>{each.messages}</td>
                      <td>{each.deferred}</td>
                      <td>
                        <Time at={each.nextAttemptAt} />
                      </td>
                    </tr>
                  ))}
                </Table>
              )}
            </>
          );
        }}
      </Loaded>
    </Section>
  );
}

function Sites() {
  const { t } = useTexts();
  const data = useConsoleData<{ sites: Site[] }>('/console/api/web-setup/queue/sites');
  return (
    <Section id="sites" title={t('system.sites')}>
      <Loaded data={data}>
        {({ sites }) =>
          sites.length === 0 ? (
            <Empty title={t('system.sites.empty')} />
          ) : (
            <Table
              label={t('system.sites')}
              heads={[t('system.site'), t('system.pool'), t('system.connections'), t('system.limitedUntil')]}
            >
              {sites.map(({ site, pool, connections, suspendedUntil, limitedUntil }) => (
                <tr key={`${site} ${pool}`}>
                  <th scope="row">{siteName({ site, pool })}</th>
                  <td>{pool}</td>
                  <td>{t('campaigns.of', { count: connections.used, members: connections.allowed })}</td>
                  <td>
                    <Time at={suspendedUntil ?? limitedUntil} />
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
    </Section>
  );
}

function Accounts() {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { person } = useMember();
  return (
    <Section id="accounts" title={t('system.accounts')}>
      <p class="actions">
        <a class="button" href={href('system/accounts')}>
          {t('accounts.manage')}
        </a>
      </p>
      {person.memberships.length === 0 ? (
        <Empty title={t('system.accounts.empty')}>
          <p>{t('app.noAccount.operator')}</p>
        </Empty>
      ) : (
        <Table label={t('system.accounts')} heads={[t('people.name'), 'ID']}>
          {person.memberships.map(({ accountId, accountName }) => (
            <tr key={accountId}>
              <td>
                <a href={href('', { account: accountId })}>{accountName || accountId}</a>
              </td>
              <td class="value">{accountId}</td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}
