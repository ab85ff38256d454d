import { useCallback } from 'preact/hooks';
import { useInstallation, useRefresh } from '../../data.ts';
import { Failure, Loaded } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { ControlNotice } from './control-notice.tsx';
import { QueueFacts } from './facts.tsx';
import { Pausing } from './pausing.tsx';
import { Purge } from './purge.tsx';
import { RetryButton, RetryProgress, useRetries } from './retry.tsx';

/** The waiting mail of an account, with actions on it. */
export function AccountQueue({ accountId }: { accountId: string }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const data = useInstallation('/web-setup/queue/accounts', { accountId });
  const controls = useInstallation('/web-setup/queue/controls');
  const reload = useCallback(() => {
    data.reload();
    controls.reload();
  }, [data.reload, controls.reload]);
  useRefresh(reload);
  const retries = useRetries(reload);
  const control = controls.value?.controls.find(
    ({ scope, target }) => scope === 'account' && target === accountId,
  );
  return (
    <>
      <Loaded data={data}>
        {({ accounts: [found] }) => {
          if (found === undefined) return <p>{t('queue.empty')}</p>;
          return (
            <>
              <QueueFacts of={found} />
              <p class="actions">
                {found.deferred > 0 && (
                  <RetryButton retries={retries} target={accountId} filter={{ accountId }} />
                )}
                <a class="button" href={href('messages', { account: accountId, status: 'deferred' })}>
                  {t('queue.deferredMessages')}
                </a>
              </p>
            </>
          );
        }}
      </Loaded>
      {controls.error !== null && <Failure error={controls.error} retry={controls.reload} />}
      <ControlNotice control={control ?? null} scope="account" onChange={reload} />
      <RetryProgress retries={retries} />
      <h2>{t('queue.pause')}</h2>
      <Pausing account={accountId} onChange={reload} />
      <h2>{t('queue.purge')}</h2>
      <Purge account={accountId} onChange={reload} />
    </>
  );
}
