import { useState } from 'preact/hooks';
import type * as z from 'zod';
import type { listedSchema } from '../../../http/api/accounts/accounts.ts';
import { request, withQuery } from '../../api.ts';
import { useConsoleData, useRefresh } from '../../data.ts';
import { filledFields } from '../../parts/filled-fields.ts';
import { OperatorsOnly } from '../../parts/operators-only.tsx';
import { Pager } from '../../parts/pager.tsx';
import { SecretDialog } from '../../parts/secret-dialog.tsx';
import { Time } from '../../parts/time.tsx';
import { Chip, Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';

type ListedAccount = z.output<typeof listedSchema>;
const SCOPES = ['setup', 'transactional', 'marketing'] as const;

interface NewAccount {
  account: ListedAccount;
  /** They are shown once. */
  keys: Record<(typeof SCOPES)[number], string>;
}

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
  const { location, href, go } = useNavigation();
  const { search, lastKey } = location.query;
  const path = withQuery('/web-setup/accounts', { search, lastKey });
  const list = useConsoleData<{ accounts: ListedAccount[]; nextKey?: string }>(`/console/api${path}`);
  useRefresh(list.reload);
  return (
    <Page title={t('system.accounts')} question={t('accounts.question')} curl={path}>
      <p>
        <a href={href('system')}>{t('page.system')}</a>
      </p>
      <form
        class="search"
        role="search"
        key={search}
        onSubmit={(event) => {
          event.preventDefault();
          go(href('system/accounts', filledFields(event.currentTarget)));
        }}
      >
        <label class="field">
          {t('accounts.search')}
          <input class="input" name="search" type="search" maxLength={200} defaultValue={search ?? ''} />
        </label>
        <div class="actions">
          <button type="submit" class="button primary">
            {t('messages.search')}
          </button>
          <a class="button" href={href('system/accounts')}>
            {t('messages.reset')}
          </a>
        </div>
      </form>
      <Loaded data={list}>
        {({ accounts, nextKey }) => (
          <>
            {accounts.length > 0 ? (
              <Table
                label={t('system.accounts')}
                heads={[t('people.name'), 'ID', t('messages.status'), t('messages.created')]}
              >
                {accounts.map(({ accountId, name, status, createdAt }) => (
                  <tr key={accountId}>
                    <th scope="row">
                      <a href={href(`system/accounts/${encodeURIComponent(accountId)}`)}>
                        {name || accountId}
                      </a>
                    </th>
                    <td class="value">{accountId}</td>
                    <td>
                      <AccountStatus status={status} />
                    </td>
                    <td>
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
      <Creation onCreated={list.reload} />
    </Page>
  );
}

/** Whether an account is active. */
export function AccountStatus({ status }: { status: ListedAccount['status'] }) {
  const { t } = useTexts();
  return <Chip kind={status === 'active' ? 'ok' : 'bad'}>{t(`accounts.status.${status}`)}</Chip>;
}

function Creation({ onCreated }: { onCreated: () => void }) {
  const { t } = useTexts();
  const { outcome, run } = useAction();
  const [created, setCreated] = useState<NewAccount | null>(null);
  const create = (form: HTMLFormElement) =>
    run(async () => {
      const made = await request<NewAccount>('/console/api/web-setup/accounts', {
        method: 'POST',
        body: filledFields(form),
      });
      setCreated(made);
      form.reset();
      onCreated();
      return t('accounts.created', { id: made.account.accountId });
    });
  return (
    <>
      <h2>{t('accounts.create')}</h2>
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
          <button type="submit" class="button primary" disabled={outcome?.running}>
            {t('accounts.createNow')}
          </button>
        </div>
      </form>
      <Outcome of={outcome} />
      {created !== null && <NewKeys of={created} onStored={() => setCreated(null)} />}
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
