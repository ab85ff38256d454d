import type { MessageCounts } from '../../../http/console/figure-routes.ts';
import { useConsoleData, useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { timesOf } from '../../parts/date-range.tsx';
import { filledFields } from '../../parts/filled-fields.ts';
import { MoreFilters } from '../../parts/filter-bar.tsx';
import { type FilterQuery, ListFilters } from '../../parts/list-filters.tsx';
import { LiveRows } from '../../parts/live-rows.tsx';
import { MessageTable } from '../../parts/message-table.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Empty, Loaded, Page, Skeleton } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { MessageDetail } from './message-detail.tsx';
import { useMessageSearch } from './message-search.ts';
import './messages.css';

type Message = DataOf<'/web-setup/messages'>['messages'][number];

const STATUSES = [
  'scheduled',
  'queued',
  'sending',
  'delivered',
  'deferred',
  'bounced',
  'failed',
  'complained',
  'cancelled',
] as const satisfies Message['status'][];
const FILTERS = [
  'recipient',
  'sender',
  'subject',
  'status',
  'domainId',
  'campaignId',
  'jobId',
  'tag',
  'period',
  'from',
  'to',
  'lastKey',
] as const;

const LISTED_CAMPAIGNS = 200;

/** The search of messages, and over it the chosen message. */
export function MessagesPage({ messageId }: { messageId: string | null }) {
  const { t, time } = useTexts();
  const { location, href, go } = useNavigation();
  const filters = Object.fromEntries(FILTERS.map((name) => [name, location.query[name]]));
  const { lastKey: _lastKey, ...search } = filters;
  const isSearch = Object.values(search).some((value) => value !== undefined);
  const { period: _period, ...others } = filters;
  const list = useMessageSearch({ ...others, ...timesOf(filters) });
  return (
    <Page
      title={t('page.messages')}
      question={t('messages.question')}
      curl={messageId === null ? list.path : addressOf('/web-setup/messages/{id}', { id: messageId })}
    >
      <div class={messageId === null ? 'messages' : 'messages covered'}>
        <div class="card">
          <Filters
            search={search}
            onSearch={(found) =>
              go(
                found['recipient']?.startsWith('msg_')
                  ? href(`messages/${encodeURIComponent(found['recipient'])}`)
                  : href('messages', found),
              )
            }
          />
          <Loaded data={list} isList>
            {({ messages, nextKey, examinedSince, isSearching }, isStale) => (
              <>
                {messages.length > 0 ? (
                  <LiveRows
                    of={list.path}
                    isStale={isStale}
                    rows={messages}
                    keyOf={({ messageId: id }) => id}
                  >
                    {(rows) => <MessageTable messages={rows} label={t('messages.list')} filters={filters} />}
                  </LiveRows>
                ) : isSearching ? (
                  <Skeleton />
                ) : nextKey !== undefined ? (
                  <Empty title={t('messages.partial')} />
                ) : isSearch || filters['lastKey'] !== undefined ? (
                  <Empty title={t('messages.noMatch')} icon="search">
                    <p>
                      {t(
                        isWholeAddress(search['recipient'])
                          ? 'messages.noMatch.address'
                          : 'messages.noMatch.hint',
                      )}
                    </p>
                  </Empty>
                ) : (
                  <Empty title={t('messages.empty')} icon="send">
                    <p>{t('messages.empty.hint')}</p>
                  </Empty>
                )}
                {examinedSince !== undefined && (
                  <p class="small" role="status">
                    {t(isSearching ? 'messages.searching' : 'messages.searched', {
                      since: time(examinedSince),
                    })}
                  </p>
                )}
                <Pager
                  path="messages"
                  filters={search}
                  nextKey={isSearching ? undefined : nextKey}
                  {...(examinedSince === undefined ? {} : { nextLabel: t('messages.searchOlder') })}
                />
              </>
            )}
          </Loaded>
        </div>
        {messageId !== null && (
          <MessageDetail key={messageId} messageId={messageId} list={href('messages', filters)} />
        )}
      </div>
    </Page>
  );
}

/** The API finds the messages to exactly this address. */
function isWholeAddress(recipient: string | undefined): boolean {
  return recipient !== undefined && /[^@]@[^@]+\.[^@.]+$/.test(recipient);
}

interface FiltersProps {
  /** Without the position in the list. */
  search: FilterQuery;
  onSearch: (search: FilterQuery) => void;
}

function Filters({ search, onSearch }: FiltersProps) {
  const { t, named } = useTexts();
  const domains = useOperation('/web-setup/domains');
  const campaigns = useOperation('/web-setup/campaigns', { limit: LISTED_CAMPAIGNS });
  const listedDomains = (domains.value?.domains ?? []).map(({ domainId, domain }) => ({
    id: domainId,
    name: domain,
  }));
  const listedCampaigns = (campaigns.value?.campaigns ?? []).map(({ campaignId, name }) => ({
    id: campaignId,
    name,
  }));
  const nameOf = (id: string) =>
    [...listedDomains, ...listedCampaigns].find((each) => each.id === id)?.name || id;
  return (
    <ListFilters
      path="messages"
      query={search}
      onChange={onSearch}
      hasPeriod
      search={{
        name: 'recipient',
        label: t('messages.recipient'),
        placeholder: t('messages.recipient.hint'),
        minLength: 2,
        isExact: true,
        shown: (text) =>
          isWholeAddress(text)
            ? t('messages.recipient.exact', { address: text })
            : t('messages.recipient.part', { text }),
      }}
      filters={[
        {
          name: 'status',
          label: t('messages.status'),
          options: STATUSES.map((value) => ({ value, name: named('status', value) })),
          isSeveral: true,
          useCounts: () => useStatusCounts(search),
        },
        { name: 'sender', label: t('messages.sender') },
        { name: 'subject', label: t('messages.subject') },
        { name: 'domainId', label: t('messages.domain'), shown: nameOf },
        { name: 'campaignId', label: t('messages.campaign'), shown: nameOf },
        { name: 'jobId', label: t('messages.job') },
        { name: 'tag', label: t('messages.tag') },
      ]}
    >
      <MoreFilters
        onApply={(form) => {
          const { recipient, status, period, from, to } = search;
          onSearch({ recipient, status, period, from, to, ...filledFields(form) });
        }}
      >
        {(['sender', 'subject'] as const).map((name) => (
          <label class="field" key={name}>
            {t(`messages.${name}`)}
            <input
              class="input"
              name={name}
              minLength={2}
              maxLength={200}
              defaultValue={search[name] ?? ''}
            />
          </label>
        ))}
        <label class="field">
          {t('messages.domain')}
          <Choice name="domainId" listed={listedDomains} chosen={search['domainId']} />
        </label>
        <label class="field">
          {t('messages.campaign')}
          <Choice name="campaignId" listed={listedCampaigns} chosen={search['campaignId']} />
        </label>
        <label class="field">
          {t('messages.job')}
          <input class="input" name="jobId" maxLength={100} defaultValue={search['jobId'] ?? ''} />
        </label>
        <label class="field">
          {t('messages.tag')}
          <input class="input" name="tag" maxLength={50} defaultValue={search['tag'] ?? ''} />
        </label>
      </MoreFilters>
    </ListFilters>
  );
}

/** How many messages have each status, by the other filters; null: not known yet. */
function useStatusCounts(search: FilterQuery): ReadonlyMap<string, string> | null {
  const { number } = useTexts();
  const { accountId } = useMember();
  const { status: _status, period: _period, ...others } = search;
  const path = addressOf('/console/message-counts', { ...others, ...timesOf(search) });
  const { value } = useConsoleData<MessageCounts>(path, accountId);
  return (
    value &&
    new Map(
      value.counts.map(({ status, count, isLeast }) => [status, `${number(count)}${isLeast ? '+' : ''}`]),
    )
  );
}

interface ChoiceProps {
  /** Name of the field. */
  name: string;
  listed: readonly { id: string; name: string }[];
  chosen: string | undefined;
}

/** A filter by one of the listed resources. One that was deleted, or is behind the end of the list, remains the filter. */
function Choice({ name: field, listed, chosen }: ChoiceProps) {
  const { t } = useTexts();
  const isListed = chosen === undefined || listed.some(({ id }) => id === chosen);
  return (
    <select class="select" name={field}>
      <option value="">{t('messages.any')}</option>
      {(isListed ? listed : [{ id: chosen, name: '' }, ...listed]).map(({ id, name }) => (
        <option value={id} key={id} selected={id === chosen}>
          {name || id}
        </option>
      ))}
    </select>
  );
}
