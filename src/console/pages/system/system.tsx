import { useInstallation, useRefresh } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { siteName } from '../../parts/site-name.ts';
import { Time } from '../../parts/time.tsx';
import { Empty, Loaded, Notice, Page, Status, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { Facts } from './facts.tsx';
import { Section } from './section.tsx';

type Report = DataOf<'/web-setup/doctor'>;
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
      <Findings />
      <div class="system-parts">
        <Facts />
        <QueueTotals />
        <Sites />
        <Accounts />
      </div>
    </Page>
  );
}

/** One sentence of health, then the checks by cause, the worst first; those that pass are folded. */
function Findings() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const data = useInstallation('/web-setup/doctor');
  const showsAll = location.query['checks'] === 'all';
  return (
    <>
      {data.value === null && data.error === null && <p class="small">{t('system.checks.wait')}</p>}
      <Loaded data={data}>
        {({ checkedAt, counts, findings }) => {
          const groups = groupsOf(showsAll ? findings : findings.filter(({ status }) => status !== 'ok'));
          return (
            <>
              <Health counts={counts} />
              <section class="card" aria-label={t('system.checks')}>
                <div class="card-head">
                  <h2>{t('system.checks')}</h2>
                  <span class="small">
                    {t('system.checks.at')} <Time at={checkedAt} />
                  </span>
                  <a class="button small" href={href('system', { checks: showsAll ? undefined : 'all' })}>
                    {t(showsAll ? 'system.checks.problems' : 'system.checks.all')}
                  </a>
                  <button class="button small" type="button" onClick={data.reload}>
                    {t('system.checks.again')}
                  </button>
                </div>
                {groups.length === 0 ? (
                  <p class="card-body">{t('system.checks.none')}</p>
                ) : (
                  <ul class="findings">
                    {groups.map((group) => (
                      <FindingGroup key={`${group[0].status} ${group[0].check}`} of={group} />
                    ))}
                  </ul>
                )}
              </section>
            </>
          );
        }}
      </Loaded>
    </>
  );
}

/** What the checks say together: something fails, could be better, or all is well. */
function Health({ counts }: { counts: Report['counts'] }) {
  const { plural } = useTexts();
  if (counts.failure > 0) return <Notice kind="bad" title={plural('system.health.bad', counts.failure)} />;
  const open = counts.warning + counts.unknown;
  if (open > 0) return <Notice kind="warn" title={plural('system.health.warn', open)} />;
  return <Notice kind="ok" title={plural('system.health.ok', counts.ok)} />;
}

type FindingGroupOf = [Finding, ...Finding[]];

/** The findings of each check with one status, the worst first. */
function groupsOf(findings: readonly Finding[]): FindingGroupOf[] {
  const groups = new Map<string, FindingGroupOf>();
  for (const finding of findings) {
    const key = `${finding.status} ${finding.check}`;
    const known = groups.get(key);
    if (known === undefined) groups.set(key, [finding]);
    else known.push(finding);
  }
  return [...groups.values()].sort(([a], [b]) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status));
}

/** One cause: a single finding, or the number of its subjects with each of them folded. */
function FindingGroup({ of: group }: { of: FindingGroupOf }) {
  const { t } = useTexts();
  const [first] = group;
  return (
    <li class="finding">
      <div class="finding-name">
        <strong>{first.check}</strong>{' '}
        <span class="small">
          {group.length === 1 ? first.subject : t('system.checks.subjects', { count: group.length })}
        </span>
      </div>
      <Status name={first.status} prefix="system.status" />
      {group.length === 1 ? (
        <FindingText of={first} />
      ) : (
        <details>
          <summary>{first.reason}</summary>
          {group.map((finding, index) => (
            <div key={`${finding.subject} ${index}`}>
              <strong>{finding.subject}</strong>
              <FindingText of={finding} />
            </div>
          ))}
        </details>
      )}
    </li>
  );
}

/** What was found, and what to change; a long text is folded. */
function FindingText({ of: { reason, fix } }: { of: Finding }) {
  const { t } = useTexts();
  return (
    <div>
      <p>{reason}</p>
      {fix !== undefined &&
        (fix.length <= SHOWN_CHARACTERS ? (
          <p class="fix">{fix}</p>
        ) : (
          <details>
            <summary>{t('system.fix.show')}</summary>
            <p class="fix">{fix}</p>
          </details>
        ))}
    </div>
  );
}

function QueueTotals() {
  const { t } = useTexts();
  const data = useInstallation('/web-setup/queue');
  useRefresh(data.reload);
  return (
    <Section
      id="queue"
      title={t('system.queue')}
      chip={
        data.value !== null && data.value.stopped !== null && <Status name="failure" prefix="system.status" />
      }
    >
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
  const data = useInstallation('/web-setup/queue/sites');
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
