import type * as z from 'zod';
import type { campaignSchema } from '../../../http/api/campaign-schemas.ts';
import type { domainSchema } from '../../../http/api/domains/domain-schemas.ts';
import type { messageSchema } from '../../../http/api/sending/messages.ts';
import { withQuery } from '../../api.ts';
import { useData } from '../../data.ts';
import { filledFields } from '../../parts/filled-fields.ts';
import { localTime } from '../../parts/local-time.ts';
import { MessageTable } from '../../parts/message-table.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Empty, Loaded, Page } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { MessageDetail } from './message-detail.tsx';
import './messages.css';

type Message = z.output<typeof messageSchema>;
interface MessageList {
  messages: Message[];
  nextKey?: string;
}

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

/** Shown on request, or when one of them applies. */
const MORE_FILTERS = ['sender', 'subject', 'domainId', 'campaignId', 'jobId', 'from', 'to'] as const;

/** The search of messages, and next to it the chosen message. */
export function MessagesPage({ messageId }: { messageId: string | null }) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const filters = Object.fromEntries(FILTERS.map((name) => [name, location.query[name]]));
  const { lastKey: _, ...search } = filters;
  const isSearch = Object.values(search).some((value) => value !== undefined);
  const path = withQuery('/web-setup/messages', { ...filters, limit: '50' });
  const list = useData<MessageList>(path);
  return (
    <Page
      title={t('page.messages')}
      question={t('messages.question')}
      curl={messageId === null ? path : `/web-setup/messages/${encodeURIComponent(messageId)}`}
    >
      <div class={messageId === null ? '' : 'split'}>
        <div class="list">
          <Search
            key={JSON.stringify(search)}
            values={search}
            onSearch={({ recipient = '', ...others }) =>
              go(
                recipient.startsWith('msg_')
                  ? href(`messages/${encodeURIComponent(recipient)}`)
                  : href('messages', { recipient, ...others }),
              )
            }
          />
          <Loaded data={list}>
            {({ messages, nextKey }) => (
              <>
                {messages.length > 0 ? (
                  <MessageTable messages={messages} label={t('messages.list')} filters={filters} />
                ) : nextKey !== undefined ? (
                  <Empty title={t('messages.partial')} />
                ) : isSearch || filters['lastKey'] !== undefined ? (
                  <Empty title={t('messages.noMatch')}>
                    <p>{t('messages.noMatch.hint')}</p>
                  </Empty>
                ) : (
                  <Empty title={t('messages.empty')}>
                    <p>{t('messages.empty.hint')}</p>
                  </Empty>
                )}
                <Pager path="messages" filters={search} nextKey={nextKey} />
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

interface SearchProps {
  values: Readonly<Record<string, string | undefined>>;
  onSearch: (values: Record<string, string>) => void;
}

function Search({ values, onSearch }: SearchProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
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
  const timeField = (name: 'from' | 'to') => (
    <label class="field">
      {t(`messages.${name}`)}
      <input
        class="input"
        name={name}
        type="datetime-local"
        defaultValue={localTime(Date.parse(values[name] ?? ''))}
      />
    </label>
  );
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const found = filledFields(event.currentTarget);
        for (const name of ['from', 'to'] as const) {
          const local = found[name];
          if (local !== undefined) found[name] = new Date(local).toISOString();
        }
        onSearch(found);
      }}
    >
      <label class="field">
        {t('messages.recipient')}
        <input
          class="input"
          name="recipient"
          type="search"
          maxLength={320}
          defaultValue={values['recipient'] ?? ''}
        />
      </label>
      <label class="field">
        {t('messages.status')}
        <select class="select" name="status">
          <option value="">{t('messages.any')}</option>
          {STATUSES.map((status) => (
            <option value={status} key={status} selected={values['status'] === status}>
              {t(`status.${status}`)}
            </option>
          ))}
        </select>
      </label>
      <details class="wide" open={MORE_FILTERS.some((name) => values[name] !== undefined)}>
        <summary>{t('messages.moreFilters')}</summary>
        <div class="search">
          {(['sender', 'subject'] as const).map((name) => (
            <label class="field" key={name}>
              {t(`messages.${name}`)}
              <input
                class="input"
                name={name}
                minLength={2}
                maxLength={200}
                defaultValue={values[name] ?? ''}
              />
            </label>
          ))}
          <label class="field">
            {t('messages.domain')}
            <Choice name="domainId" listed={listedDomains} chosen={values['domainId']} />
          </label>
          <label class="field">
            {t('messages.campaign')}
            <Choice name="campaignId" listed={listedCampaigns} chosen={values['campaignId']} />
          </label>
          <label class="field">
            {t('messages.job')}
            <input class="input" name="jobId" maxLength={100} defaultValue={values['jobId'] ?? ''} />
          </label>
          {timeField('from')}
          {timeField('to')}
        </div>
      </details>
      <div class="actions">
        <button type="submit" class="button primary">
          {t('messages.search')}
        </button>
        <a class="button" href={href('messages')}>
          {t('messages.reset')}
        </a>
      </div>
    </form>
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
