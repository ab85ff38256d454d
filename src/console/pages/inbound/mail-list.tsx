import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { ListFilters } from '../../parts/list-filters.tsx';
import { LiveRows } from '../../parts/live-rows.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { Chip, Empty, Loaded, Page, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { AuthenticationChips } from './authentication.tsx';
import { InboundTabs, useRoutes } from './tabs.tsx';

const PATH = '/web-setup/inbound';

type ListedMail = DataOf<typeof PATH>['mails'][number];

/** Mail that the account received. */
export function InboundPage() {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { from, routeId, inReplyToMessageId, lastKey } = location.query;
  const filters = { from, routeId, inReplyToMessageId };
  const parameters = { ...filters, lastKey };
  const path = addressOf(PATH, parameters);
  const list = useOperation(PATH, parameters);
  const { routes, nameOf } = useRoutes();
  return (
    <Page title={t('page.inbound')} question={t('inbound.question')} curl={path}>
      <InboundTabs current="mail" />
      <div class="card">
        <ListFilters
          path="inbound"
          query={filters}
          search={{
            name: 'from',
            label: t('inbound.from'),
            placeholder: t('inbound.from.hint'),
            isExact: true,
            shown: (address) => t('inbound.from.exact', { address }),
          }}
          filters={[
            {
              name: 'routeId',
              label: t('inbound.route'),
              options: routes.map((each) => ({ value: each.routeId, name: each.name })),
              shown: nameOf,
            },
            { name: 'inReplyToMessageId', label: t('inbound.answers') },
          ]}
        />
        <Loaded data={list} isList>
          {({ mails, nextKey }, isStale) => (
            <>
              {mails.length > 0 ? (
                <LiveRows of={path} rows={mails} isStale={isStale} keyOf={({ inboundId }) => inboundId}>
                  {(rows) => <Mails mails={rows} />}
                </LiveRows>
              ) : Object.values(parameters).some((value) => value !== undefined) ? (
                <Empty title={t('inbound.noMatch')}>
                  <p>{t('messages.noMatch.hint')}</p>
                </Empty>
              ) : (
                <Empty title={t('inbound.empty')} icon="mail">
                  <p>{t('inbound.empty.hint')}</p>
                  <a class="button" href={href('inbound/routes')}>
                    {t('inbound.empty.routes')}
                  </a>
                </Empty>
              )}
              <Pager path="inbound" filters={filters} nextKey={nextKey} />
            </>
          )}
        </Loaded>
      </div>
    </Page>
  );
}

function Mails({ mails }: { mails: readonly ListedMail[] }) {
  const { t, number } = useTexts();
  const { href } = useNavigation();
  return (
    <Table
      label={t('inbound.list')}
      isList
      heads={[
        t('messages.subject'),
        t('messages.sender'),
        t('inbound.authentication'),
        { text: t('messages.content.attachments'), end: true },
        { text: t('inbox.received'), end: true },
      ]}
    >
      {mails.map((mail) => (
        <tr key={mail.inboundId}>
          <th scope="row">
            <a href={href(`inbound/${encodeURIComponent(mail.inboundId)}`)}>
              {mail.subject || t('inbox.noSubject')}
            </a>
            <Kind of={mail} />
          </th>
          <td class="second">
            {mail.from || mail.sender}
            <span class="small">{t('inbound.to', { address: mail.to.join(', ') })}</span>
          </td>
          <td class="aside">
            {mail.status === 'received' ? (
              <Chip kind="info">{t('inbound.waiting')}</Chip>
            ) : (
              mail.authentication !== null && <AuthenticationChips of={mail.authentication} />
            )}
          </td>
          <td>{mail.attachmentCount > 0 && number(mail.attachmentCount)}</td>
          <td class="when">
            <Time at={mail.receivedAt} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** What kind of mail it is, if it is not simply one of a person. */
function Kind({ of: { automatic, loop, inReplyToMessageId, parseError } }: { of: ListedMail }) {
  const { t } = useTexts();
  const kinds = [
    ...(inReplyToMessageId === null ? [] : [t('inbound.answer')]),
    ...(automatic === null ? [] : [t(`inbound.automatic.${automatic}`)]),
    ...(loop ? [t('inbound.loop')] : []),
    ...(parseError === null ? [] : [t('inbound.unread')]),
  ];
  return kinds.length === 0 ? null : <span class="small">{kinds.join(' · ')}</span>;
}
