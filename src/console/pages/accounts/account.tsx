import { operate } from '../../api.ts';
import { useInstallation, useRefresh } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { BouncedFigure, Figure, FigureRow } from '../../parts/figures.tsx';
import { OperatorsOnly } from '../../parts/operators-only.tsx';
import { toast } from '../../parts/toast.tsx';
import { Card, Loaded, Outcome, Page, RowActions, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { AccountStatus, useVolumes } from './accounts.tsx';
import { LimitForm } from './limits.tsx';

const PATH = '/web-setup/accounts/{accountId}';

type Detail = DataOf<typeof PATH>;

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
  const data = useInstallation(PATH, { accountId });
  useRefresh(data.reload);
  return (
    <Page
      title={data.value?.name || t('system.accounts')}
      chip={data.value !== null && <AccountStatus status={data.value.status} />}
      actions={data.value !== null && <Actions account={data.value} onChange={data.reload} />}
      curl={addressOf(PATH, { accountId })}
    >
      <Loaded data={data}>{(account) => <Details account={account} onChange={data.reload} />}</Loaded>
    </Page>
  );
}

interface DetailsProps {
  account: Detail;
  onChange: () => void;
}

function Actions({ account, onChange }: DetailsProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { outcome, run } = useAction();
  const { accountId, name, status } = account;
  const isActive = status === 'active';
  const change = () =>
    run(async () => {
      await operate('put', '/web-setup/accounts/{accountId}/status', {
        account: null,
        parameters: { accountId },
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
        <RowActions
          label={name || accountId}
          actions={[
            {
              isDanger: true,
              label: t('accounts.disable'),
              question: t('accounts.disable.confirm', { name }),
              action: change,
            },
          ]}
        />
      ) : (
        <button class="button" type="button" onClick={() => void change()} disabled={outcome?.running}>
          {t('accounts.enable')}
        </button>
      )}
      {outcome?.failed && <Outcome of={outcome} />}
    </>
  );
}

function Details({ account, onChange }: DetailsProps) {
  const { t, time, number, percent } = useTexts();
  const { accountId, companyName, createdAt, limits } = account;
  const volume = useVolumes()?.get(accountId);
  return (
    <>
      {volume !== undefined && (
        <FigureRow>
          <Figure
            color="--c-accepted"
            label={t('accounts.volume')}
            value={number(volume.accepted)}
            note={t('overview.outcome.accepted')}
          />
          <Figure
            color="--c-delivered"
            label={t('overview.outcome.delivered')}
            value={percent(volume.delivered, volume.accepted)}
            note={t('overview.figure.messages', { count: volume.delivered })}
          />
          <BouncedFigure bounced={volume.bounced} of={volume.accepted} />
        </FigureRow>
      )}
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
            await operate('patch', PATH, {
              account: null,
              parameters: { accountId },
              body: { limits: changes },
            });
            onChange();
          }}
        />
      </Card>
    </>
  );
}
