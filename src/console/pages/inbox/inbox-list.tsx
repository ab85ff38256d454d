import type * as z from 'zod';
import type { inboxEntrySchema } from '../../../http/api/inbox.ts';
import { withQuery } from '../../api.ts';
import { useData, useRefresh } from '../../data.ts';
import { filledFields } from '../../parts/filled-fields.ts';
import { OperatorsOnly } from '../../parts/operators-only.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Chip, Empty, Loaded, Page, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';

export type ListedMail = z.output<typeof inboxEntrySchema>;

const BOXES = [
  'postmaster',
  'abuse',
  'bounce',
  'feedback',
  'unsubscribe',
  'dmarc',
  'tlsrpt',
] as const satisfies ListedMail['box'][];

/** Mail to postmaster@ and abuse@, and mail that could not be processed. */
export function InboxPage() {
  const { t } = useTexts();
  return (
    <OperatorsOnly title={t('page.inbox')}>
      <Inbox />
    </OperatorsOnly>
  );
}

function Inbox() {
  const { t } = useTexts();
  const { location } = useNavigation();
  const filters = { box: location.query['box'], unread: location.query['unread'] };
  const path = withQuery('/web-setup/installation/inbox', { ...filters, lastKey: location.query['lastKey'] });
  const list = useData<{ mails: ListedMail[]; nextKey?: string }>(path);
  // A received mail is no event of an account.
  useRefresh(list.reload);
  return (
    <Page title={t('page.inbox')} question={t('inbox.question')} curl={path}>
      <Filter key={JSON.stringify(filters)} values={filters} />
      <Loaded data={list}>
        {({ mails, nextKey }) => (
          <>
            {mails.length > 0 ? (
              <Mails mails={mails} />
            ) : Object.values(filters).some((value) => value !== undefined) ? (
              <Empty title={t('inbox.noMatch')}>
                <p>{t('messages.noMatch.hint')}</p>
              </Empty>
            ) : (
              <Empty title={t('inbox.empty')}>
                <p>{t('inbox.empty.hint')}</p>
              </Empty>
            )}
            <Pager path="inbox" filters={filters} nextKey={nextKey} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Mails({ mails }: { mails: ListedMail[] }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  return (
    <Table
      label={t('page.inbox')}
      isList
      heads={[
        t('messages.subject'),
        t('messages.sender'),
        t('inbox.box'),
        { text: t('inbox.received'), end: true },
      ]}
    >
      {mails.map((each) => (
        <tr key={each.number}>
          <th scope="row">
            <a href={href(`inbox/${each.number}`)}>{each.subject || t('inbox.noSubject')}</a>{' '}
            {each.readAt === null && <Chip kind="info">{t('inbox.unread')}</Chip>}
          </th>
          <td class="second">
            {each.from || each.sender}
            <p class="small">{each.remoteAddress}</p>
          </td>
          <td>
            {t(`inbox.box.${each.box}`)}
            <p class="small">{each.recipient}</p>
          </td>
          <td class="when">
            <Time at={each.receivedAt} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Filter({ values }: { values: Readonly<Record<string, string | undefined>> }) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        go(href('inbox', filledFields(event.currentTarget)));
      }}
    >
      <label class="field">
        {t('inbox.box')}
        <select class="select" name="box">
          <option value="">{t('messages.any')}</option>
          {BOXES.map((box) => (
            <option value={box} key={box} selected={values['box'] === box}>
              {t(`inbox.box.${box}`)}
            </option>
          ))}
        </select>
      </label>
      <label class="check">
        <input
          class="tick"
          type="checkbox"
          name="unread"
          value="true"
          defaultChecked={values['unread'] === 'true'}
        />
        {t('inbox.onlyUnread')}
      </label>
      <div class="actions">
        <button type="submit" class="button primary">
          {t('messages.search')}
        </button>
        <a class="button" href={href('inbox')}>
          {t('messages.reset')}
        </a>
      </div>
    </form>
  );
}
