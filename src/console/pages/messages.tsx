import type * as z from 'zod';
import type { domainSchema } from '../../http/api/domains/domain-schemas.ts';
import type { messageSchema } from '../../http/api/sending/messages.ts';
import { withQuery } from '../api.ts';
import { useData } from '../data.ts';
import { Empty, Loaded, Page } from '../parts.tsx';
import { useNavigation } from '../routing.ts';
import { useTexts } from '../texts.ts';
import { MessageDetail } from './message-detail.tsx';
import { MessageTable } from './message-table.tsx';

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
const FILTERS = ['recipient', 'status', 'domainId', 'campaignId', 'from', 'to', 'lastKey'] as const;

/** Where is this message: the search, and next to it the message that was chosen. */
export function MessagesPage({ messageId }: { messageId: string | null }) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const filters = Object.fromEntries(FILTERS.map((name) => [name, location.query[name]]));
  const { lastKey: _, ...search } = filters;
  const isSearch = Object.values(search).some((value) => value !== undefined);
  const path = withQuery('/web-setup/messages', { ...filters, limit: '50' });
  const list = useData<MessageList>(path);
  const older = (nextKey: string) => (
    <a class="button" href={href('messages', { ...filters, lastKey: nextKey })}>
      {t('app.older')}
    </a>
  );
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
                <p class="actions">
                  {filters['lastKey'] !== undefined && (
                    <a class="button" href={href('messages', search)}>
                      {t('app.first')}
                    </a>
                  )}
                  {nextKey !== undefined && older(nextKey)}
                </p>
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
  const timeField = (name: 'from' | 'to') => (
    <label>
      {t(`messages.${name}`)}
      <input name={name} type="datetime-local" defaultValue={localTime(values[name])} />
    </label>
  );
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const found: Record<string, string> = {};
        for (const [name, value] of new FormData(event.currentTarget))
          if (typeof value === 'string' && value.trim() !== '')
            found[name] = name === 'from' || name === 'to' ? new Date(value).toISOString() : value.trim();
        onSearch(found);
      }}
    >
      <label>
        {t('messages.recipient')}
        <input name="recipient" type="search" maxLength={320} defaultValue={values['recipient'] ?? ''} />
      </label>
      <label>
        {t('messages.status')}
        <select name="status">
          <option value="">{t('messages.any')}</option>
          {STATUSES.map((status) => (
            <option value={status} key={status} selected={values['status'] === status}>
              {t(`status.${status}`)}
            </option>
          ))}
        </select>
      </label>
      <label>
        {t('messages.domain')}
        <select name="domainId">
          <option value="">{t('messages.any')}</option>
          {(domains.value?.domains ?? []).map(({ domainId, domain }) => (
            <option value={domainId} key={domainId} selected={values['domainId'] === domainId}>
              {domain}
            </option>
          ))}
        </select>
      </label>
      <label>
        {t('messages.campaign')}
        <input name="campaignId" maxLength={100} defaultValue={values['campaignId'] ?? ''} />
      </label>
      {timeField('from')}
      {timeField('to')}
      <div class="actions">
        <button type="submit" class="primary">
          {t('messages.search')}
        </button>
        <a class="button" href={href('messages')}>
          {t('messages.reset')}
        </a>
      </div>
    </form>
  );
}

/** The value of a field for a time in the time zone of the browser. */
function localTime(iso: string | undefined): string {
  const time = iso === undefined ? Number.NaN : Date.parse(iso);
  if (Number.isNaN(time)) return '';
  return new Date(time - new Date(time).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
