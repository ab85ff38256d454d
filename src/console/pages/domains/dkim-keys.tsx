import { operate } from '../../api.ts';
import { Time } from '../../parts/time.tsx';
import { Confirmed, Outcome, Table, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { CheckedDomain } from './domain.tsx';
import { CopiedName, CopiedValue } from './records.tsx';

interface DkimKeysProps {
  domain: CheckedDomain;
  reload: () => void;
}

/** The keys that sign, and the replacement of the one that the owner of the domain publishes. */
export function DkimKeys({ domain, reload }: DkimKeysProps) {
  const { t } = useTexts();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const pending = domain.dkimKeys.find(
    ({ state, publishedBy }) => state === 'pending' && publishedBy === 'owner',
  );
  const record =
    pending === undefined
      ? undefined
      : domain.records.find(({ name }) => name.startsWith(`${pending.selector}._domainkey.`));
  return (
    <>
      <h2>{t('domains.tab.dkim')}</h2>
      <Table
        label={t('domains.tab.dkim')}
        heads={[
          t('domains.dkim.selector'),
          t('domains.dkim.state'),
          t('domains.dkim.since'),
          t('domains.dkim.algorithm'),
          t('domains.dkim.lane'),
          t('domains.dkim.publishedBy'),
        ]}
      >
        {domain.dkimKeys.map(({ selector, state, since, algorithm, lane, publishedBy }) => (
          <tr key={selector}>
            <th scope="row">{selector}</th>
            <td>{t(`domains.dkim.state.${state}`)}</td>
            <td>
              <Time at={since} />
            </td>
            <td>{algorithm === 'rsa' ? 'RSA' : 'Ed25519'}</td>
            <td>{t(`domains.dkim.lane.${lane}`)}</td>
            <td>{t(`domains.dkim.publishedBy.${publishedBy}`)}</td>
          </tr>
        ))}
      </Table>
      {record !== undefined && (
        <section class="notice" aria-label={t('domains.dkim.pending')}>
          <p>{t('domains.dkim.pending')}</p>
          <p class="value">
            {record.type} <CopiedName record={record} domain={domain.domain} />
          </p>
          <p class="value">
            <CopiedValue record={record} />
          </p>
        </section>
      )}
      {may('rotateDomainDkim') && pending === undefined && (
        <Confirmed
          label={t('domains.rotate')}
          question={t('domains.rotate.confirm', { domain: domain.domain })}
          action={() =>
            run(async () => {
              await operate('post', '/web-setup/domains/{domainId}/rotate-dkim', {
                account: accountId,
                parameters: { domainId: domain.domainId },
              });
              reload();
              return t('domains.rotated');
            })
          }
        />
      )}
      <Outcome of={outcome} />
    </>
  );
}
