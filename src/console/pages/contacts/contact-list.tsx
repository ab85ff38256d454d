import { useState } from 'preact/hooks';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { ListFilters } from '../../parts/list-filters.tsx';
import { LiveRows, useChanges } from '../../parts/live-rows.tsx';
import { type LongTask, TaskProgress } from '../../parts/long-task.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Chip, Empty, kindOfStatus, Loaded, Notice, Page, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { Addition } from './addition.tsx';
import { BulkActions } from './bulk-actions.tsx';
import { type BulkWork, useBulkTask } from './bulk-task.ts';
import { Export } from './export.tsx';
import { useSearchChoice } from './search-choice.tsx';

const PATH = '/web-setup/contacts';
/** Segments to choose from, the newest ones. */
const MAX_SEGMENTS = 200;

export type ListedContact = DataOf<typeof PATH>['contacts'][number];

/** Requests for erasure that the page names, newest contacts first. */
const MAX_REQUESTS = 10;
const STATUSES = [
  'active',
  'unsubscribed',
  'bounced',
  'complained',
  'suppressed',
] as const satisfies ListedContact['globalStatus'][];

/** The contacts of the account: search, add, import, export, and actions on several. */
export function ContactListPage() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { may } = useMember();
  const { search, status, segmentId } = location.query;
  // The API searches all contacts, or lists those of a segment.
  const filters = segmentId === undefined ? { search, status } : { segmentId, status };
  const parameters = { ...filters, lastKey: location.query['lastKey'] };
  const path = addressOf(PATH, parameters);
  const list = useOperation(PATH, parameters);
  const { changes, reload } = useChanges(list.reload);
  const task = useBulkTask(reload);
  return (
    <Page
      title={t('page.contacts')}
      question={t('contacts.question')}
      curl={path}
      actions={
        <>
          {may('examineContacts') && (
            <a class="button" href={href('contacts/hygiene')}>
              <Icon name="circle-check" />
              <span class="wide-text">{t('contacts.hygiene.check')}</span>
            </a>
          )}
          {may('importContacts') && (
            <a class="button" href={href('contacts/import')}>
              <Icon name="upload" />
              {t('contacts.import')}
            </a>
          )}
          {may('createContact') && <Addition onAdded={reload} />}
        </>
      }
    >
      <TaskProgress task={task} />
      <ErasureRequests />
      <div class="card">
        <Filters search={filters} />
        <Loaded data={list} isList>
          {({ contacts, nextKey }, isStale) => (
            <>
              {contacts.length > 0 ? (
                <LiveRows
                  of={path}
                  isStale={isStale}
                  rows={contacts}
                  keyOf={({ contactIdentifier }) => contactIdentifier}
                  changes={changes}
                >
                  {(rows) => (
                    <Contacts
                      key={path}
                      contacts={rows}
                      filters={filters}
                      isPart={nextKey !== undefined || location.query['lastKey'] !== undefined}
                      task={task}
                    />
                  )}
                </LiveRows>
              ) : (
                <NoContacts
                  isSearch={Object.values(filters).some((value) => value !== undefined)}
                  isPart={nextKey !== undefined}
                />
              )}
              <Pager path="contacts" filters={filters} nextKey={nextKey} />
            </>
          )}
        </Loaded>
      </div>
    </Page>
  );
}

/** People who asked on the preference page to be erased: somebody has to complete their requests. */
function ErasureRequests() {
  const { t } = useTexts();
  const { href } = useNavigation();
  const requests = useOperation(PATH, { erasureRequested: 'true', limit: MAX_REQUESTS });
  const contacts = requests.value?.contacts ?? [];
  if (contacts.length === 0) return null;
  return (
    <Notice kind="warn" title={t('contacts.erasureRequests')}>
      <ul>
        {contacts.map((each) => (
          <li key={each.contactIdentifier}>
            <a href={href(`contacts/${encodeURIComponent(each.contactIdentifier)}`)}>{nameOf(each)}</a>{' '}
            <Time at={each.erasureRequestedAt ?? each.updatedAt} />
          </li>
        ))}
      </ul>
    </Notice>
  );
}

/** How a contact is named to a person. */
export function nameOf({ email, phone, contactIdentifier }: ListedContact): string {
  return email ?? phone ?? contactIdentifier;
}

interface ContactsProps {
  contacts: readonly ListedContact[];
  filters: Readonly<Record<string, string | undefined>>;
  /** Whether the search has other pages. */
  isPart: boolean;
  task: LongTask<BulkWork>;
}

/** The table, with a choice of several contacts for those who may change them. */
function Contacts({ contacts, filters, isPart, task }: ContactsProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { may } = useMember();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const mayChoose = may('updateContact');
  const chosenHere = contacts.filter(({ contactIdentifier }) => chosen.has(contactIdentifier));
  const search = useSearchChoice({ filters, isOffered: isPart && chosenHere.length === contacts.length });
  const choose = (identifier: string, isChosen: boolean) => {
    search.clear();
    setChosen((last) => {
      const next = new Set(last);
      if (isChosen) next.add(identifier);
      else next.delete(identifier);
      return next;
    });
  };
  const chooseAll = (all: boolean) => {
    search.clear();
    setChosen(new Set(all ? contacts.map(({ contactIdentifier }) => contactIdentifier) : []));
  };
  return (
    <>
      {mayChoose && (
        <BulkActions
          chosen={chosenHere}
          search={search}
          isAll={chosenHere.length === contacts.length}
          onAll={chooseAll}
          task={task}
        />
      )}
      <Table
        label={t('page.contacts')}
        isList
        heads={[
          ...(mayChoose
            ? [
                {
                  text: t('contacts.chooseAll'),
                  pick: { isChecked: chosenHere.length === contacts.length, onChange: chooseAll },
                },
              ]
            : []),
          t('groups.contact'),
          t('messages.status'),
          t('groups.consent'),
          { text: t('messages.created'), end: true },
        ]}
      >
        {contacts.map((each) => (
          <tr key={each.contactIdentifier}>
            {mayChoose && (
              <td class="pick">
                <input
                  class="tick"
                  type="checkbox"
                  aria-label={t('contacts.choose', { contact: nameOf(each) })}
                  checked={chosen.has(each.contactIdentifier)}
                  onChange={({ currentTarget }) => choose(each.contactIdentifier, currentTarget.checked)}
                />
              </td>
            )}
            <th scope="row">
              <a href={href(`contacts/${encodeURIComponent(each.contactIdentifier)}`)}>{nameOf(each)}</a>
              {(each.firstName ?? each.lastName ?? '') !== '' && (
                <span class="small">{[each.firstName, each.lastName].filter(Boolean).join(' ')}</span>
              )}
            </th>
            <td class="aside">
              <GlobalStatus of={each} />
            </td>
            <td class="second" title={each.consentDetails}>
              {each.consentMethod === undefined
                ? t('contacts.noConsent')
                : t(`groups.consent.${each.consentMethod}`)}
            </td>
            <td class="when">
              <Time at={each.createdAt} />
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** Whether marketing mail may be sent to the contact. */
export function GlobalStatus({ of: { globalStatus } }: { of: ListedContact }) {
  const { named } = useTexts();
  return (
    <Chip kind={globalStatus === 'active' ? 'ok' : kindOfStatus(globalStatus)}>
      {named('groups.status', globalStatus)}
    </Chip>
  );
}

function NoContacts({ isSearch, isPart }: { isSearch: boolean; isPart: boolean }) {
  const { t } = useTexts();
  if (isPart) return <Empty title={t('contacts.partial')} />;
  return (
    <Empty title={t(isSearch ? 'contacts.noMatch' : 'contacts.empty')} icon={isSearch ? 'search' : 'users'}>
      <p>{t(isSearch ? 'messages.noMatch.hint' : 'contacts.empty.hint')}</p>
    </Empty>
  );
}

/** The filters of the list, in its address; the export of what they find. */
function Filters({ search }: { search: Readonly<Record<string, string | undefined>> }) {
  const { t, named } = useTexts();
  const { has } = useMember();
  const segments = useOperation('/web-setup/segments', { limit: MAX_SEGMENTS, counts: 'false' });
  const options = (segments.value?.segments ?? []).map((each) => ({
    value: each.segmentId,
    name: each.name,
  }));
  return (
    <ListFilters
      path="contacts"
      query={search}
      {...(search['segmentId'] === undefined
        ? { search: { name: 'search', label: t('groups.search') } }
        : {})}
      filters={[
        // Without a segment there is nothing to choose.
        { name: 'segmentId', label: t('segments.segment'), ...(options.length === 0 ? {} : { options }) },
        {
          name: 'status',
          label: t('messages.status'),
          options: STATUSES.map((value) => ({ value, name: named('groups.status', value) })),
        },
      ]}
      end={has('export') && <Export filters={search} />}
    />
  );
}
