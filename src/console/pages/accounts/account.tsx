import type * as z from 'zod';
import type { detailSchema } from '../../../http/api/accounts/accounts.ts';
import { request } from '../../api.ts';
import { useConsoleData, useRefresh } from '../../data.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { OperatorsOnly } from '../../parts/operators-only.tsx';
import { toast } from '../../parts/toast.tsx';
import { Card, Confirmed, Loaded, Outcome, Page, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { AccountStatus } from './accounts.tsx';
import { LimitForm } from './limits.tsx';

type Detail = z.output<typeof detailSchema>;

/** An account of the installation: its limits with their use; disable, enable. */
export function AccountPage({ accountId }: { accountId: string }) {
  const { t } = useTexts();
  return (
    <OperatorsOnly title={t('system.accounts')}>
      <Account accountId={accountId} />
    </OperatorsOnly>
  );
}

function Account({ accountId }: { accountId: string }) {
  const { t } = useTexts();
  const path = `/web-setup/accounts/${encodeURIComponent(accountId)}`;
  const data = useConsoleData<Detail>(`/console/api${path}`);
  useRefresh(data.reload);
  return (
    <Page
      title={data.value?.name || t('system.accounts')}
      chip={data.value !== null && <AccountStatus status={data.value.status} />}
      actions={data.value !== null && <Actions account={data.value} path={path} onChange={data.reload} />}
      curl={path}
    >
      <Loaded data={data}>
        {(account) => <Details account={account} path={path} onChange={data.reload} />}
      </Loaded>
    </Page>
  );
}

interface DetailsProps {
  account: Detail;
  path: string;
  onChange: () => void;
}

function Actions({ account, path, onChange }: DetailsProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { outcome, run } = useAction();
  const { accountId, name, status } = account;
  const isActive = status === 'active';
  const change = () =>
    run(async () => {
      await request(`/console/api${path}/status`, {
        method: 'PUT',
        body: { status: isActive ? 'disabled' : 'active' },
      });
      onChange();
      toast(t(isActive ? 'accounts.disabled' : 'accounts.enabled'));
      return '';
    });
  return (
    <>
      <a class="button" href={href('', { account: accountId })}>
        {t('accounts.open')}
      </a>
      <a class="button" href={href('keys', { account: accountId })}>
        {t('accounts.openKeys')}
      </a>
      {isActive ? (
        <Confirmed
          isDanger
          label={t('accounts.disable')}
          question={t('accounts.disable.confirm', { name })}
          action={change}
        />
      ) : (
        <button class="button" type="button" onClick={() => void change()} disabled={outcome?.running}>
          {t('accounts.enable')}
        </button>
      )}
      <Outcome of={outcome} />
    </>
  );
}

function Details({ account, path, onChange }: DetailsProps) {
  const { t, time } = useTexts();
  const { accountId, companyName, createdAt, limits } = account;
  return (
    <>
      <div class="card">
        <div class="card-body">
          <FactList
            facts={[
              [t('accounts.id'), accountId],
              [t('accounts.company'), companyName ?? '–'],
              [t('messages.created'), time(createdAt)],
            ]}
          />
        </div>
      </div>
      <Card title={t('accounts.limits')}>
        <LimitForm
          limits={limits}
          save={async (changes) => {
            await request(`/console/api${path}`, { method: 'PATCH', body: { limits: changes } });
            onChange();
          }}
        />
      </Card>
    </>
  );
}
