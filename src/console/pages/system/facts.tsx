import { useInstallation, useRefresh } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Chip, Empty, Loaded, Status, Table } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import { Section } from './section.tsx';

type Installation = DataOf<'/web-setup/installation'>;

const REFRESH_MS = 60_000;

/** Versions, storage, backups, certificates and source addresses of the installation. */
export function Facts() {
  const data = useInstallation('/web-setup/installation');
  useRefresh(data.reload, REFRESH_MS);
  return (
    <Loaded data={data}>
      {(facts) => (
        <>
          <Versions of={facts} />
          <Backups of={facts.backups} />
          <Certificates of={facts.certificates} />
          <EgressAddresses of={facts} />
        </>
      )}
    </Loaded>
  );
}

function State({ of: name }: { of: 'ok' | 'warning' | 'failure' }) {
  return <Status name={name} prefix="system.status" />;
}

function Versions({ of: { version, nodeVersion, hostname, startedAt, storage } }: { of: Installation }) {
  const { t, time, size } = useTexts();
  const facts: [string, string][] = [
    ['Postrider', version],
    ['Node.js', nodeVersion],
    [t('system.hostname'), hostname],
    [t('system.startedAt'), time(startedAt)],
    [t('system.database'), size(storage.databaseBytes)],
    [t('system.log'), size(storage.logBytes)],
    [t('system.free'), size(storage.freeBytes)],
  ];
  return (
    <Section id="storage" title={t('system.storage')}>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

function Backups({ of: backups }: { of: Installation['backups'] }) {
  const { t, time } = useTexts();
  return (
    <Section
      id="backups"
      title={t('system.backups')}
      chip={backups !== null && <State of={backups.error === null ? 'ok' : 'failure'} />}
    >
      {backups === null ? (
        <Empty title={t('system.backups.none')}>
          <p>{t('system.backups.none.hint')}</p>
        </Empty>
      ) : (
        <>
          {backups.error !== null && (
            <p class="notice bad">{t('system.backups.failed', { error: backups.error })}</p>
          )}
          <dl class="facts">
            <div>
              <dt>{t('system.backups.last')}</dt>
              <dd>{time(backups.lastSuccessAt) || t('system.never')}</dd>
            </div>
            <div>
              <dt>{t('system.backups.next')}</dt>
              <dd>{backups.isRunning ? t('system.backups.running') : time(backups.nextAt)}</dd>
            </div>
          </dl>
        </>
      )}
    </Section>
  );
}

function Certificates({ of: certificates }: { of: Installation['certificates'] }) {
  const { t, time } = useTexts();
  return (
    <Section
      id="certificates"
      title={t('system.certificates')}
      chip={
        certificates.length > 0 && (
          <State of={certificates.some(({ failures }) => failures > 0) ? 'failure' : 'ok'} />
        )
      }
    >
      {certificates.length === 0 ? (
        <Empty title={t('system.certificates.none')} />
      ) : (
        <Table
          label={t('system.certificates')}
          heads={[t('queue.host'), t('system.certificates.expires'), t('system.certificates.failure')]}
        >
          {certificates.map(({ host, expiresAt, failures, lastError }) => (
            <tr key={host}>
              <th scope="row">{host}</th>
              <td>{expiresAt === null ? t('system.certificates.notIssued') : time(expiresAt)}</td>
              <td>
                {failures > 0 && <Chip kind="bad">{failures}</Chip>} {lastError}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}

function EgressAddresses({ of: { egress, warmup } }: { of: Installation }) {
  const { t, time, number } = useTexts();
  return (
    <Section
      id="egress"
      title={t('system.egress')}
      chip={
        egress.length > 0 && (
          <State of={egress.some(({ refusedBy }) => refusedBy.length > 0) ? 'warning' : 'ok'} />
        )
      }
    >
      {egress.length === 0 ? (
        <Empty title={t('system.egress.none')} />
      ) : (
        <Table
          label={t('system.egress')}
          heads={[
            t('system.egress.address'),
            t('system.pool'),
            t('system.egress.warmup'),
            t('system.egress.today'),
            t('system.egress.refusedBy'),
          ]}
        >
          {egress.map((each) => (
            <tr key={each.entry}>
              <th scope="row">
                {each.entry}
                <p class="small">{[each.address, each.address6, each.hostname].filter(Boolean).join(' ')}</p>
              </th>
              <td>{each.pools.join(', ')}</td>
              <td>{each.warmup ?? t('system.egress.noWarmup')}</td>
              <td>{t('system.egress.counts', each.today)}</td>
              <td>
                {each.refusedBy.map(({ provider, since, reply }) => (
                  <p key={provider}>
                    {provider}, {time(since)}: {reply}
                  </p>
                ))}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {warmup.length > 0 && (
        <details>
          <summary>{t('system.egress.byProvider')}</summary>
          <Table
            label={t('system.egress.byProvider')}
            heads={[
              t('system.egress.address'),
              t('system.egress.provider'),
              t('system.egress.day'),
              t('system.egress.used'),
              t('system.reason'),
            ]}
          >
            {warmup.map(({ entry, provider, day, cap, used, reason }) => (
              <tr key={`${entry} ${provider}`}>
                <th scope="row">{entry}</th>
                <td>{provider === '*' ? t('overview.volume.others') : provider}</td>
                <td>{day}</td>
                <td>{cap === null ? number(used) : t('campaigns.of', { count: used, members: cap })}</td>
                <td>{reason ?? ''}</td>
              </tr>
            ))}
          </Table>
        </details>
      )}
    </Section>
  );
}
