import type * as z from 'zod';
import type { campaignSchema } from '../../../http/api/campaign-schemas.ts';
import type { domainSchema } from '../../../http/api/domains/domain-schemas.ts';
import type { messageSchema } from '../../../http/api/sending/messages.ts';
import { useData } from '../../data.ts';
import { filledFields } from '../../parts/filled-fields.ts';
import {
  AppliedFilters,
  FilterBar,
  FilterSelect,
  MoreFilters,
  SearchField,
} from '../../parts/filter-bar.tsx';
import { localTime } from '../../parts/local-time.ts';
import { MessageTable } from '../../parts/message-table.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Empty, Loaded, Page, Skeleton } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { MessageDetail } from './message-detail.tsx';
import { useMessageSearch } from './message-search.ts';
import './messages.css';

type Message = z.output<typeof messageSchema>;

const STATUSES = [
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
  'from',
  'to',
  'lastKey',
] as const;

type Campaign = Pick<z.output<typeof campaignSchema>, 'campaignId' | 'name'>;
const LISTED_CAMPAIGNS = 200;

/** The filters of a search, without the position in the list. */
type Search = Record<string, string | undefined>;

/** Periods that are offered; others are chosen among the less frequent filters. */
const PERIODS = { '24h': 24, '7d': 7 * 24, '30d': 30 * 24 } as const;
const PERIOD_NAMES = ['24h', '7d', '30d'] as const;
const HOUR_MS = 3_600_000;

/** The search of messages, and over it the chosen message. */
export function MessagesPage({ messageId }: { messageId: string | null }) {
  const { t, time } = useTexts();
  const { location, href, go } = useNavigation();
  const filters = Object.fromEntries(FILTERS.map((name) => [name, location.query[name]]));
  const { lastKey: _, ...search } = filters;
  const isSearch = Object.values(search).some((value) => value !== undefined);
  const list = useMessageSearch(filters);
  return (
    <Page
      title={t('page.messages')}
      question={t('messages.question')}
      curl={messageId === null ? list.path : `/web-setup/messages/${encodeURIComponent(messageId)}`}
    >
      <div class={messageId === null ? 'messages' : 'messages covered'}>
        <div class="card">
          <Filters
            search={search}
            onSearch={({ recipient, ...others }) =>
              go(
                recipient?.startsWith('msg_')
                  ? href(`messages/${encodeURIComponent(recipient)}`)
                  : href('messages', { recipient, ...others }),
              )
            }
          />
          <Loaded data={list} isList>
            {({ messages, nextKey, examinedSince, isSearching }) => (
              <>
                {messages.length > 0 ? (
                  <MessageTable messages={messages} label={t('messages.list')} filters={filters} />
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
  search: Search;
  onSearch: (search: Search) => void;
}

function Filters({ search, onSearch }: FiltersProps) {
  const { t, named } = useTexts();
  const domains = useData<{ domains: z.output<typeof domainSchema>[] }>('/web-setup/domains');
  const campaigns = useData<{ campaigns: Campaign[] }>(`/web-setup/campaigns?limit=${LISTED_CAMPAIGNS}`);
  const listedDomains = (domains.value?.domains ?? []).map(({ domainId, domain }) => ({
    id: domainId,
    name: domain,
  }));
  const listedCampaigns = (campaigns.value?.campaigns ?? []).map(({ campaignId, name }) => ({
    id: campaignId,
    name,
  }));
  const change = (changed: Search) => onSearch({ ...search, ...changed });
  const timeField = (name: 'from' | 'to') => (
    <label class="field">
      {t(`messages.${name}`)}
      <input
        class="input"
        name={name}
        type="datetime-local"
        defaultValue={localTime(Date.parse(search[name] ?? ''))}
      />
    </label>
  );
  return (
    <FilterBar>
      <SearchField
        label={t('messages.recipient')}
        placeholder={t('messages.recipient.hint')}
        minLength={2}
        value={search['recipient'] ?? ''}
        isExact
        onSearch={(recipient) => change({ recipient })}
      />
      <FilterSelect
        label={t('messages.status')}
        options={STATUSES.map((value) => ({ value, name: named('status', value) }))}
        chosen={search['status']}
        onChange={(status) => change({ status })}
      />
      <FilterSelect
        label={t('overview.volume.period')}
        options={PERIOD_NAMES.map((value) => ({ value, name: t(`overview.period.${value}`) }))}
        chosen={undefined}
        onChange={(period) =>
          change({ from: beginOf(PERIOD_NAMES.find((name) => name === period)), to: undefined })
        }
      />
      <MoreFilters
        onApply={(form) => {
          const found: Search = filledFields(form);
          for (const name of ['from', 'to'] as const) {
            const local = found[name];
            if (local !== undefined) found[name] = new Date(local).toISOString();
          }
          onSearch({ recipient: search['recipient'], status: search['status'], ...found });
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
        {timeField('from')}
        {timeField('to')}
      </MoreFilters>
      <Applied search={search} listed={[...listedDomains, ...listedCampaigns]} onSearch={onSearch} />
    </FilterBar>
  );
}

/** The beginning of a period that ends now, in whole hours: its address remains the same for a while. */
function beginOf(period: keyof typeof PERIODS | undefined): string | undefined {
  if (period === undefined) return undefined;
  return new Date((Math.floor(Date.now() / HOUR_MS) - PERIODS[period]) * HOUR_MS).toISOString();
}

interface AppliedProps extends FiltersProps {
  /** Names of what filters name by an id. */
  listed: readonly { id: string; name: string }[];
}

/** The filters that apply, but for the search field, which shows its own. */
function Applied({ search, listed, onSearch }: AppliedProps) {
  const { t, named, time } = useTexts();
  const nameOf = (id: string) => listed.find((each) => each.id === id)?.name || id;
  const labels = [
    { filter: 'status', label: t('messages.status'), shown: (value: string) => named('status', value) },
    { filter: 'sender', label: t('messages.sender'), shown: String },
    { filter: 'subject', label: t('messages.subject'), shown: String },
    { filter: 'domainId', label: t('messages.domain'), shown: nameOf },
    { filter: 'campaignId', label: t('messages.campaign'), shown: nameOf },
    { filter: 'jobId', label: t('messages.job'), shown: String },
    { filter: 'from', label: t('messages.from'), shown: (value: string) => time(value) },
    { filter: 'to', label: t('messages.to'), shown: (value: string) => time(value) },
  ];
  const applied = labels.flatMap(({ filter, label, shown }) => {
    const value = search[filter];
    if (value === undefined) return [];
    return [
      { name: `${label}: ${shown(value)}`, onRemove: () => onSearch({ ...search, [filter]: undefined }) },
    ];
  });
  const isAny = applied.length > 0 || search['recipient'] !== undefined;
  return isAny ? <AppliedFilters filters={applied} onReset={() => onSearch({})} /> : null;
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
