import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { ShareBar } from '../../parts/chart/share-bar.tsx';
import { FactList } from '../../parts/fact-list.tsx';
import { fieldText, filledTexts } from '../../parts/field-text.ts';
import { toast } from '../../parts/toast.tsx';
import { Card, Loaded, Notice, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { type TextKey, useTexts } from '../../texts.ts';
import { PublicPagesCard } from './public-pages.tsx';
import './settings.css';

const PATH = '/web-setup/account';

type Account = DataOf<typeof PATH>;

/** Fields of the postal address; those of `OPTIONAL` may be empty. */
const ADDRESS_FIELDS = ['line1', 'line2', 'postalCode', 'city', 'region', 'country'] as const;
type AddressField = (typeof ADDRESS_FIELDS)[number];
const OPTIONAL: ReadonlySet<AddressField> = new Set(['line2', 'region', 'postalCode']);
const AUTOCOMPLETE: Readonly<Record<AddressField, string>> = {
  line1: 'address-line1',
  line2: 'address-line2',
  postalCode: 'postal-code',
  city: 'address-level2',
  region: 'address-level1',
  country: 'country-name',
};

/** The account: its company and address, which the footer of each message has, and its limits with their use. */
export function SettingsPage() {
  const { t } = useTexts();
  const data = useOperation(PATH);
  return (
    <Page title={t('page.settings')} question={t('settings.question')} curl={PATH}>
      <Loaded data={data}>
        {(account) => (
          <>
            {(account.companyName === undefined || account.companyAddress === null) && (
              <Notice kind="warn" title={t('settings.incomplete')}>
                <p>{t('settings.incomplete.hint')}</p>
              </Notice>
            )}
            <AccountForm account={account} onSaved={data.reload} />
            <PublicPagesCard />
            <Limits account={account} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function AccountForm({ account, onSaved }: { account: Account; onSaved: () => void }) {
  const { t, time } = useTexts();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const { name, companyName, companyAddress, abuseEmail, logoUrl, createdAt } = account;
  const save = (fields: FormData) =>
    run(async () => {
      const text = (field: string) => fieldText(fields, field);
      const hasAddress = ADDRESS_FIELDS.some((field) => text(field) !== '');
      await operate('put', PATH, {
        account: accountId,
        body: {
          companyName: null,
          abuseEmail: null,
          logoUrl: null,
          ...filledTexts(fields, 'name', 'companyName', 'abuseEmail', 'logoUrl'),
          companyAddress: hasAddress
            ? {
                line1: text('line1'),
                postalCode: text('postalCode'),
                city: text('city'),
                country: text('country'),
                ...filledTexts(fields, 'line2', 'region'),
              }
            : null,
        },
      });
      onSaved();
      toast(t('settings.saved'));
      return '';
    });
  const isFixed = !may('updateAccount');
  return (
    <Card title={t('settings.company')}>
      <form
        class="card-body settings-form"
        aria-label={t('settings.company')}
        onSubmit={(event) => {
          event.preventDefault();
          void save(new FormData(event.currentTarget));
        }}
      >
        <FactList
          facts={[
            [t('accounts.id'), account.accountId],
            [t('messages.created'), time(createdAt)],
          ]}
        />
        <fieldset class="settings-fields" disabled={isFixed}>
          <label class="field">
            {t('settings.name')}
            <input class="input" name="name" required maxLength={200} defaultValue={name} />
          </label>
          <label class="field">
            {t('accounts.company')}
            <input
              class="input"
              name="companyName"
              maxLength={200}
              autocomplete="organization"
              defaultValue={companyName ?? ''}
            />
          </label>
          {ADDRESS_FIELDS.map((field) => (
            <label class="field" key={field}>
              {t(`settings.address.${field}`)}
              <input
                class="input"
                name={field}
                maxLength={field === 'postalCode' ? 20 : 200}
                autocomplete={AUTOCOMPLETE[field]}
                aria-describedby={OPTIONAL.has(field) ? undefined : 'address-hint'}
                defaultValue={companyAddress?.[field] ?? ''}
              />
            </label>
          ))}
          <p id="address-hint" class="small wide">
            {t('settings.address.hint')}
          </p>
          <label class="field">
            {t('settings.abuse')}
            <input
              class="input"
              name="abuseEmail"
              type="email"
              maxLength={254}
              defaultValue={abuseEmail ?? ''}
            />
          </label>
          <label class="field">
            {t('settings.logo')}
            <input
              class="input"
              name="logoUrl"
              type="url"
              maxLength={2000}
              placeholder="https://"
              defaultValue={logoUrl ?? ''}
            />
          </label>
        </fieldset>
        {!isFixed && (
          <div class="actions">
            <Button type="submit" kind="primary" label={t('me.save')} isBusy={outcome?.running === true} />
          </div>
        )}
        <Outcome of={outcome} />
      </form>
    </Card>
  );
}

/** Limits whose use is counted, and their texts. */
const LIMITS = {
  messagesPerHour: 'accounts.limit.messagesPerHour',
  messagesPerDay: 'accounts.limit.messagesPerDay',
  contacts: 'accounts.limit.contacts',
  domains: 'accounts.limit.domains',
  webhooks: 'accounts.limit.webhooks',
  templates: 'accounts.limit.templates',
  campaigns: 'accounts.limit.campaigns',
  subscriptionGroups: 'accounts.limit.subscriptionGroups',
  suppressions: 'accounts.limit.suppressions',
  storedBytes: 'accounts.limit.storedBytes',
} as const satisfies Partial<Record<keyof Account['usage'], TextKey>>;

/** A share of a limit above which it is shown as nearly used up. */
const NEARLY_FULL = 0.9;

function Limits({ account: { limits, usage } }: { account: Account }) {
  const { t, number, size } = useTexts();
  return (
    <Card title={t('accounts.limits')}>
      <Table
        label={t('accounts.limits')}
        heads={[
          t('accounts.limit'),
          { text: t('settings.used'), end: true },
          { text: t('accounts.limit'), end: true },
          t('settings.share'),
        ]}
      >
        {LIMIT_NAMES.map((name) => {
          const [used, limit] = [usage[name], limits[name]];
          const shown = (value: number) => (name === 'storedBytes' ? size(value) : number(value));
          return (
            <tr key={name}>
              <th scope="row">{t(LIMITS[name])}</th>
              <td>{shown(used)}</td>
              <td>{limit === null ? t('settings.unlimited') : shown(limit)}</td>
              <td class="limit-share">
                {limit !== null && (
                  <ShareBar
                    total={limit}
                    parts={[{ color: used > NEARLY_FULL * limit ? '--bad' : '--accent', value: used }]}
                  />
                )}
              </td>
            </tr>
          );
        })}
      </Table>
    </Card>
  );
}

// Object.keys has no narrower type.
const LIMIT_NAMES = Object.keys(LIMITS) as (keyof typeof LIMITS)[];
