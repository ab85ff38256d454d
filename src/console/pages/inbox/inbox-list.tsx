import { useOperation, useRefresh } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { useHeldActions } from '../../parts/held-action.ts';
import { ListFilters } from '../../parts/list-filters.tsx';
import { LiveRows } from '../../parts/live-rows.tsx';
import { OperatorsOnly } from '../../parts/operators-only.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Chip, Empty, Loaded, Page, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';

const PATH = '/web-setup/installation/inbox';

type ListedMail = DataOf<typeof PATH>['mails'][number];

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
  const parameters = { ...filters, lastKey: location.query['lastKey'] };
  const path = addressOf(PATH, parameters);
  const list = useOperation(PATH, parameters);
  // A received mail is no event of an account.
  useRefresh(list.reload);
  const { isHeld } = useHeldActions(list.value, list.reload);
  return (
    <Page title={t('page.inbox')} question={t('inbox.question')} curl={path}>
      <div class="card">
        <ListFilters
          path="inbox"
          query={filters}
          isInstallation
          filters={[
            {
              name: 'box',
              label: t('inbox.box'),
              options: BOXES.map((value) => ({ value, name: t(`inbox.box.${value}`) })),
            },
            {
              name: 'unread',
              label: t('messages.status'),
              options: [{ value: 'true', name: t('inbox.onlyUnread') }],
            },
          ]}
        />
        <Loaded data={list} isList>
          {({ mails, nextKey }, isStale) => (
            <>
              {mails.length > 0 ? (
                <LiveRows of={path} rows={mails} isStale={isStale} keyOf={({ number }) => number}>
                  {(rows) => <Mails mails={rows} isHeld={isHeld} />}
                </LiveRows>
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
      </div>
    </Page>
  );
}

interface MailsProps {
  mails: readonly ListedMail[];
  isHeld: (key: string) => boolean;
}

function Mails({ mails, isHeld }: MailsProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
  return (
    <Table
      label={t('page.inbox')}
      isList
      heads={[
        t('messages.subject'),
        t('messages.sender'),
        t('messages.status'),
        t('inbox.box'),
        { text: t('inbox.received'), end: true },
      ]}
    >
      {mails.map((each) => (
        <tr key={each.number}>
          <th scope="row">
            <a href={href(`inbox/${each.number}`)}>{each.subject || t('inbox.noSubject')}</a>
          </th>
          <td class="second">
            {each.from || each.sender}
            <span class="small">{each.remoteAddress}</span>
          </td>
          <td class="aside">
            {(each.readAt === null || isHeld(unreadKey(each.number))) && (
              <Chip kind="info">{t('inbox.unread')}</Chip>
            )}
          </td>
          <td>
            {t(`inbox.box.${each.box}`)}
            <span class="small">{each.recipient}</span>
          </td>
          <td class="when">
            <Time at={each.receivedAt} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** The key of marking a mail as unread. */
export const unreadKey = (number: string | number): string => `unread ${number}`;
