import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { CreationDrawer, Drawer } from '../../parts/drawer.tsx';
import { fieldChoice, fieldText } from '../../parts/field-text.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { ListFilters } from '../../parts/list-filters.tsx';
import { LiveRows, useChanges } from '../../parts/live-rows.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { SuppressionImport } from './import-form.tsx';

export type ListedSuppression = DataOf<'/web-setup/suppressions'>['suppressions'][number];

const FILTERS = ['email', 'reason', 'stream'] as const;
const REASONS = [
  'hard_bounce',
  'soft_bounces',
  'complaint',
  'unsubscribe',
  'manual',
] as const satisfies ListedSuppression['reason'][];
const STREAMS = ['all', 'tx', 'mk'] as const satisfies ListedSuppression['stream'][];

const keyOf = ({ contactIdentifier, reason, stream }: ListedSuppression) =>
  `${contactIdentifier} ${reason} ${stream}`;

/** The suppressions of the account. */
export function SuppressionsPage() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { may } = useMember();
  const filters = Object.fromEntries(FILTERS.map((name) => [name, location.query[name]]));
  const isSearch = Object.values(filters).some((value) => value !== undefined);
  const parameters = { ...filters, lastKey: location.query['lastKey'] };
  const list = useOperation('/web-setup/suppressions', parameters);
  const { changes, reload } = useChanges(list.reload);
  return (
    <Page
      title={t('page.suppressions')}
      question={t('suppressions.question')}
      curl={addressOf('/web-setup/suppressions', parameters)}
      actions={
        <>
          {may('importSuppressions') && (
            <Drawer
              title={t('suppressions.import')}
              buttonClass="button"
              button={
                <>
                  <Icon name="upload" />
                  {t('contacts.import.now')}
                </>
              }
              isKept
              isOpenFirst={location.query['import'] !== undefined}
            >
              {() => <SuppressionImport onImported={reload} />}
            </Drawer>
          )}
          {may('createSuppression') && (
            <CreationDrawer title={t('suppressions.add')}>
              {(close) => (
                <Addition
                  onAdded={(email) => {
                    close();
                    reload();
                    toast(t('suppressions.added', { email }));
                  }}
                />
              )}
            </CreationDrawer>
          )}
        </>
      }
    >
      <div class="card">
        <ListFilters
          path="suppressions"
          query={filters}
          search={{
            name: 'email',
            label: t('suppressions.search'),
            isExact: true,
            shown: (address) => t('messages.recipient.exact', { address }),
          }}
          filters={[
            {
              name: 'reason',
              label: t('suppressions.reason'),
              options: REASONS.map((value) => ({ value, name: t(`suppressions.reason.${value}`) })),
            },
            {
              name: 'stream',
              label: t('suppressions.stream'),
              options: STREAMS.map((value) => ({ value, name: t(`suppressions.stream.${value}`) })),
            },
          ]}
        />
        <Loaded data={list} isList>
          {({ suppressions, nextKey }, isStale) => (
            <>
              {suppressions.length > 0 ? (
                <LiveRows
                  of={addressOf('/web-setup/suppressions', parameters)}
                  isStale={isStale}
                  rows={suppressions}
                  keyOf={keyOf}
                  changes={changes}
                >
                  {(rows) => (
                    <Table
                      label={t('page.suppressions')}
                      isList
                      heads={[
                        t('suppressions.email'),
                        t('suppressions.reason'),
                        t('suppressions.stream'),
                        { text: t('suppressions.since'), end: true },
                      ]}
                    >
                      {rows.map((each) => (
                        <tr key={keyOf(each)}>
                          <th scope="row">
                            <a href={href(`suppressions/${encodeURIComponent(each.contactIdentifier)}`)}>
                              {each.email ?? each.contactIdentifier}
                            </a>
                          </th>
                          <td class="second">{t(`suppressions.reason.${each.reason}`)}</td>
                          <td class="aside">{t(`suppressions.stream.${each.stream}`)}</td>
                          <td class="when">
                            <Time at={each.createdAt} />
                          </td>
                        </tr>
                      ))}
                    </Table>
                  )}
                </LiveRows>
              ) : nextKey !== undefined ? (
                <Empty title={t('messages.partial')} />
              ) : isSearch ? (
                <Empty title={t('suppressions.noMatch')} icon="search">
                  <p>{t('messages.noMatch.hint')}</p>
                </Empty>
              ) : (
                <Empty title={t('suppressions.empty')} icon="ban">
                  <p>{t('suppressions.empty.hint')}</p>
                </Empty>
              )}
              <Pager path="suppressions" filters={filters} nextKey={nextKey} />
            </>
          )}
        </Loaded>
      </div>
    </Page>
  );
}

function StreamField() {
  const { t } = useTexts();
  return (
    <label class="field">
      {t('suppressions.stream')}
      <select class="select" name="stream">
        {STREAMS.map((stream) => (
          <option value={stream} key={stream}>
            {t(`suppressions.stream.${stream}`)}
          </option>
        ))}
      </select>
    </label>
  );
}

function Addition({ onAdded }: { onAdded: (email: string) => void }) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const add = (form: HTMLFormElement) =>
    run(async () => {
      const fields = new FormData(form);
      const email = fieldText(fields, 'email');
      const stream = fieldChoice(fields, 'stream', STREAMS) ?? 'all';
      await operate('post', '/web-setup/suppressions', { account: accountId, body: { email, stream } });
      onAdded(email);
      return '';
    });
  return (
    <>
      <form
        aria-label={t('suppressions.add')}
        onSubmit={(event) => {
          event.preventDefault();
          void add(event.currentTarget);
        }}
      >
        <label class="field">
          {t('signIn.email')}
          <input
            class="input"
            name="email"
            required
            maxLength={320}
            autocomplete="off"
            autocapitalize="none"
          />
        </label>
        <StreamField />
        <div class="actions">
          <Button
            type="submit"
            kind="primary"
            label={t('suppressions.addNow')}
            isBusy={outcome?.running === true}
          />
        </div>
      </form>
      <Outcome of={outcome} />
    </>
  );
}
