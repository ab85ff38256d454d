import { useEffect, useState } from 'preact/hooks';
import { ApiError, request } from '../api.ts';
import { useAttention } from '../attention.ts';
import { AttentionList, attentionEntries } from '../parts/attention-list.tsx';
import { Icon } from '../parts/icon/icon.tsx';
import { Popover } from '../parts/popover.tsx';
import { useTexts } from '../texts.ts';
import './bell.css';

/** What needs attention since the person last opened it. `accountId`: null without an account. */
export function Bell({ accountId }: { accountId: string | null }) {
  const { t, plural, number } = useTexts();
  const { value } = useAttention();
  const count = [...(value?.items ?? []), ...(value?.installation?.problems ?? [])].filter(
    ({ isNew }) => isNew,
  ).length;
  const news = count === 0 ? '' : plural('app.bell.new', count);
  return (
    <>
      <Popover
        buttonClass="button ghost icon-only bell-button"
        popoverClass="notifications"
        label={count === 0 ? t('app.bell') : `${t('app.bell')}: ${news}`}
        button={
          <>
            <Icon name="bell" />
            {count > 0 && (
              <span class="bell-count" aria-hidden="true">
                {number(count)}
              </span>
            )}
          </>
        }
      >
        {(close) => <Notifications accountId={accountId} close={close} />}
      </Popover>
      <span class="unseen" role="status">
        {news}
      </span>
    </>
  );
}

function Notifications({ accountId, close }: { accountId: string | null; close: () => void }) {
  const texts = useTexts();
  const { t } = texts;
  const { value, reload } = useAttention();
  // What was new remains marked while it is open.
  const [shown] = useState(value);
  useEffect(() => {
    if (shown === null) return;
    const body = {
      ofAccount: shown.items.map(({ key }) => key),
      ofInstallation: (shown.installation?.problems ?? []).map(({ key }) => key),
    };
    void request('/console/attention/seen', {
      method: 'PUT',
      body,
      account: accountId ?? undefined,
    }).then(reload, (error: unknown) => {
      // It remains new, and is counted again.
      if (!(error instanceof ApiError)) throw error;
    });
  }, []);
  const entries = shown === null ? [] : attentionEntries(shown, texts);
  return (
    <>
      <p class="menu-head">{t('overview.attention')}</p>
      {entries.length === 0 ? (
        <p class="all-well">
          <Icon name="circle-check" />
          {t('overview.none.hint')}
        </p>
      ) : (
        <AttentionList label={t('app.bell')} entries={entries} onFollow={close} areNewMarked />
      )}
    </>
  );
}
