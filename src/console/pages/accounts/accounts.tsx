import { useMemo, useState } from 'preact/hooks';
import { operate } from '../../api.ts';
import { useInstallation, useRefresh } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { CreationDrawer } from '../../parts/drawer.tsx';
import { fieldText, filledTexts } from '../../parts/field-text.ts';
import { ListFilters } from '../../parts/list-filters.tsx';
import { OperatorsOnly } from '../../parts/operators-only.tsx';
import { Pager } from '../../parts/pager.tsx';
import { SecretDialog } from '../../parts/secret-dialog.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { MAX_BOUNCED, type Totals, totals } from '../../parts/totals.ts';
import { Chip, Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';

const PATH = '/web-setup/accounts';

type ListedAccount = DataOf<typeof PATH>['accounts'][number];
const SCOPES = ['setup', 'transactional', 'marketing'] as const;

/** Its keys are shown once. */
type NewAccount = DataOf<typeof PATH, 'post'>;

/** The accounts of the installation, for operators. */
export function AccountsPage() {
  const { t } = useTexts();
  return (
    <OperatorsOnly title={t('system.accounts')}>
      <Accounts />
    </OperatorsOnly>
  );
}

function Accounts() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { search, lastKey } = location.query;
  const list = useInstallation(PATH, { search, lastKey });
  useRefresh(list.reload);
  const volumes = useVolumes();
  const [created, setCreated] = useState<NewAccount | null>(null);
  return (
    <Page
      title={t('system.accounts')}
      question={t('accounts.question')}
      curl={addressOf(PATH, { search, lastKey })}
      actions={
        <CreationDrawer title={t('accounts.create')}>
          {(close) => (
            <Creation
              onCreated={(account) => {
                close();
                setCreated(account);
                list.reload();
              }}
            />
          )}
        </CreationDrawer>
      }
    >
      {created !== null && (
        <NewKeys
          of={created}
          onStored={() => {
            setCreated(null);
            toast(t('accounts.created', { id: created.account.accountId }));
          }}
        />
      )}
      <div class="card">
        <ListFilters
          path="system/accounts"
          query={{ search }}
          isInstallation
          search={{ name: 'search', label: t('accounts.search') }}
          filters={[]}
        />
        <Loaded data={list}>
          {({ accounts, nextKey }) => (
            <>
              {accounts.length > 0 ? (
                <Table
                  label={t('system.accounts')}
                  isList
                  heads={[
                    t('people.name'),
                    'ID',
                    t('messages.status'),
                    { text: t('accounts.volume'), end: true },
                    { text: t('overview.outcome.delivered'), end: true },
                    { text: t('overview.outcome.bounced'), end: true },
                    { text: t('messages.created'), end: true },
                  ]}
                >
                  {accounts.map(({ accountId, name, status, createdAt }) => (
                    <tr key={accountId}>
                      <th scope="row">
                        <a href={href(`system/accounts/${encodeURIComponent(accountId)}`)}>
                          {name || accountId}
                        </a>
                      </th>
                      <td class="value second">{accountId}</td>
                      <td class="aside">
                        <AccountStatus status={status} />
                      </td>
                      <Volume of={volumes?.get(accountId)} />
                      <td class="when">
                        <Time at={createdAt} />
                      </td>
                    </tr>
                  ))}
                </Table>
              ) : nextKey !== undefined ? (
                <Empty title={t('messages.partial')} />
              ) : search === undefined ? (
                <Empty title={t('system.accounts.empty')}>
                  <p>{t('accounts.empty.hint')}</p>
                </Empty>
              ) : (
                <Empty title={t('accounts.none')}>
                  <p>{t('messages.noMatch.hint')}</p>
                </Empty>
              )}
              <Pager
                path="system/accounts"
                filters={{ search }}
                nextKey={nextKey}
                firstLabel={t('accounts.first')}
                nextLabel={t('accounts.more')}
              />
            </>
          )}
        </Loaded>
      </div>
    </Page>
  );
}

/** The outcomes of the last 30 days of the accounts that send most, by their ids; null: not known yet. */
export function useVolumes(): ReadonlyMap<string, Totals> | null {
  const { value } = useInstallation('/web-setup/installation/statistics', { interval: 'day', by: 'account' });
  return useMemo(
    () => value && new Map(value.series.map(({ name = '', points }) => [name, totals(points)])),
    [value],
  );
}

/** The cells of the volume; empty for accounts that are not among those that send most. */
function Volume({ of: volume }: { of: Totals | undefined }) {
  const { number, percent } = useTexts();
  if (volume === undefined)
    return (
      <>
        <td />
        <td />
        <td />
      </>
    );
  const { accepted, delivered, bounced } = volume;
  const share = percent(bounced, accepted);
  const isHigh = accepted > 0 && bounced > MAX_BOUNCED * accepted;
  return (
    <>
      <td>{number(accepted)}</td>
      <td>{percent(delivered, accepted)}</td>
      <td>{isHigh ? <Chip kind="bad">{share}</Chip> : share}</td>
    </>
  );
}

/** Whether an account is active. */
export function AccountStatus({ status }: { status: ListedAccount['status'] }) {
  const { t } = useTexts();
  return <Chip kind={status === 'active' ? 'ok' : 'bad'}>{t(`accounts.status.${status}`)}</Chip>;
}

function Creation({ onCreated }: { onCreated: (account: NewAccount) => void }) {
  const { t } = useTexts();
  const { outcome, run } = useAction();
  const create = (form: HTMLFormElement) =>
    run(async () => {
      const fields = new FormData(form);
      const body = { name: fieldText(fields, 'name'), ...filledTexts(fields, 'companyName', 'accountId') };
      onCreated(await operate('post', PATH, { account: null, body }));
      return '';
    });
  return (
    <>
      <form
        aria-label={t('accounts.create')}
        onSubmit={(event) => {
          event.preventDefault();
          void create(event.currentTarget);
        }}
      >
        <label class="field">
          {t('people.name')}
          <input class="input" name="name" required maxLength={200} autocomplete="off" />
        </label>
        <label class="field">
          {t('accounts.company')}
          <input class="input" name="companyName" maxLength={200} autocomplete="off" />
        </label>
        <label class="field">
          {t('accounts.id')}
          <input
            class="input"
            name="accountId"
            maxLength={64}
            pattern="[A-Za-z0-9][A-Za-z0-9_\-]*"
            autocomplete="off"
            autocapitalize="none"
            aria-describedby="account-id-hint"
          />
          <span id="account-id-hint" class="small">
            {t('accounts.id.hint')}
          </span>
        </label>
        <div class="actions">
          <Button
            type="submit"
            kind="primary"
            label={t('accounts.createNow')}
            isBusy={outcome?.running === true}
          />
        </div>
      </form>
      <Outcome of={outcome} />
    </>
  );
}

function NewKeys({ of: { account, keys }, onStored }: { of: NewAccount; onStored: () => void }) {
  const { t } = useTexts();
  return (
    <SecretDialog
      title={t('accounts.keys.once', { name: account.name })}
      secrets={SCOPES.map((scope) => {
        const label = t(`keys.scope.${scope}`);
        return { label, value: keys[scope], copyLabel: t('accounts.keys.copy', { scope: label }) };
      })}
      onStored={onStored}
    />
  );
}
