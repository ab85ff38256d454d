import { useCallback } from 'preact/hooks';
import { type Data, useInstallation, useRefresh } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { fieldText } from '../../parts/field-text.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { Time } from '../../parts/time.tsx';
import { Card, Confirmed, Empty, Loaded, Outcome, Page, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { AccountQueue } from './account-queue.tsx';
import type { QueueOrder } from './change-task.ts';
import { useResume } from './control-notice.tsx';
import { DestinationExplanation, MessageExplanation } from './explanation.tsx';
import type { QueueNumbers } from './facts.tsx';
import { Pausing } from './pausing.tsx';
import { Purge } from './purge.tsx';
import './queue.css';
import { type Retries, RetryButton, RetryProgress, useRetries } from './retry.tsx';

type Queue = DataOf<'/web-setup/queue'>;
type QueueAccounts = DataOf<'/web-setup/queue/accounts'>;

/** The queue by destination or account, or the mail of one of them or one message. */
export function QueuePage({ kind, name }: { kind: string | undefined; name: string | undefined }) {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { person } = useMember();
  if (!person.operator)
    return (
      <Page title={t('page.queue')}>
        <Empty title={t('system.operatorsOnly')} />
      </Page>
    );
  const isAccount = name !== undefined && kind === 'accounts';
  const isExplanation = name !== undefined && (kind === 'destinations' || kind === 'messages');
  const isByAccount = location.query['by'] === 'account';
  const list = isAccount || isByAccount ? '/web-setup/queue/accounts' : '/web-setup/queue';
  return (
    <Page
      title={isExplanation || isAccount ? name : t('page.queue')}
      question={t('queue.question')}
      curl={isExplanation ? addressOf(`/web-setup/queue/${kind}/{name}`, { name }) : list}
    >
      {(isExplanation || isAccount) && (
        <p>
          <a href={href('queue')}>{t('queue.back')}</a>
        </p>
      )}
      {!isExplanation && !isAccount && <Overview isByAccount={isByAccount} />}
      {isAccount && <AccountQueue key={name} accountId={name} />}
      {isExplanation && kind === 'destinations' && <DestinationExplanation key={name} destination={name} />}
      {isExplanation && kind === 'messages' && <MessageExplanation key={name} messageId={name} />}
    </Page>
  );
}

function Overview({ isByAccount }: { isByAccount: boolean }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const data = useInstallation('/web-setup/queue');
  const accounts = useInstallation(isByAccount ? '/web-setup/queue/accounts' : null);
  const reload = useCallback(() => {
    data.reload();
    accounts.reload();
  }, [data.reload, accounts.reload]);
  useRefresh(reload);
  const retries = useRetries(reload);
  return (
    <>
      <Loaded data={data}>
        {({ stopped, sessions, controls, destinations }) => (
          <>
            {stopped !== null && <p class="notice bad">{t('system.stopped', { reason: stopped })}</p>}
            <Card
              title={t(isByAccount ? 'queue.accounts' : 'queue.destinations')}
              action={
                <span class="small">
                  {t('queue.sessions', { used: sessions.used, limit: sessions.limit })}
                </span>
              }
            >
              <div class="filters">
                <nav class="segments" aria-label={t('queue.destinations')}>
                  <a class="segment" href={href('queue')} aria-current={isByAccount ? undefined : 'true'}>
                    {t('queue.byDestination')}
                  </a>
                  <a
                    class="segment"
                    href={href('queue', { by: 'account' })}
                    aria-current={isByAccount ? 'true' : undefined}
                  >
                    {t('queue.byAccount')}
                  </a>
                </nav>
                <Explain />
              </div>
              <RetryProgress retries={retries} />
              {destinations.length === 0 ? (
                <Empty title={t('queue.empty')} icon="list-ordered">
                  <p>{t('queue.empty.hint')}</p>
                </Empty>
              ) : isByAccount ? (
                <Accounts data={accounts} retries={retries} />
              ) : (
                <Destinations destinations={destinations} retries={retries} />
              )}
            </Card>
            <Card title={t('queue.controls')}>
              <Controls controls={controls} onChange={reload} />
            </Card>
          </>
        )}
      </Loaded>
      <Card title={t('queue.pause')}>
        <div class="card-body">
          <Pausing onChange={reload} />
        </div>
      </Card>
      <Card title={t('queue.purge')}>
        <div class="card-body">
          <Purge onChange={reload} />
        </div>
      </Card>
    </>
  );
}

/** Opens the explanation of a destination or a message. */
function Explain() {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  return (
    <form
      class="explain"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const name = fieldText(new FormData(event.currentTarget), 'name');
        const kind = name.startsWith('msg_') ? 'messages' : 'destinations';
        if (name !== '') go(href(`queue/${kind}/${encodeURIComponent(name)}`));
      }}
    >
      <input
        class="input"
        name="name"
        type="search"
        aria-label={t('queue.name')}
        placeholder={t('queue.name')}
        required
        maxLength={300}
        autocapitalize="none"
        spellcheck={false}
      />
      <button type="submit" class="button">
        {t('queue.explain')}
      </button>
    </form>
  );
}

function Destinations({ destinations, retries }: Pick<Queue, 'destinations'> & { retries: Retries }) {
  const { t } = useTexts();
  return (
    <Numbered
      label={t('queue.destinations')}
      head={t('system.destination')}
      retries={retries}
      rows={destinations.map(({ destination, ...numbers }) => ({
        name: destination,
        path: `queue/destinations/${encodeURIComponent(destination)}`,
        filter: { destination },
        numbers,
      }))}
    />
  );
}

function Accounts({ data, retries }: { data: Data<QueueAccounts>; retries: Retries }) {
  const { t } = useTexts();
  const { person } = useMember();
  return (
    <Loaded data={data}>
      {({ accounts }) => (
        <Numbered
          label={t('queue.accounts')}
          head={t('app.account')}
          retries={retries}
          rows={accounts.map(({ accountId, ...numbers }) => ({
            name: person.memberships.find((each) => each.accountId === accountId)?.accountName || accountId,
            path: `queue/accounts/${encodeURIComponent(accountId)}`,
            filter: { accountId },
            numbers,
          }))}
        />
      )}
    </Loaded>
  );
}

interface NumberedProps {
  label: string;
  head: string;
  retries: Retries;
  rows: { name: string; path: string; filter: QueueOrder['filter']; numbers: QueueNumbers }[];
}

/** Waiting mail by destination or account, with a retry of the deferred messages. */
function Numbered({ label, head, retries, rows }: NumberedProps) {
  const { t, number } = useTexts();
  const { href } = useNavigation();
  return (
    <Table
      label={label}
      isList
      heads={[
        head,
        { text: t('system.waiting'), end: true },
        { text: t('system.sending'), end: true },
        { text: t('system.deferred'), end: true },
        { text: t('system.held'), end: true },
        { text: t('messages.next'), end: true },
        { text: t('queue.change'), unseen: true },
      ]}
    >
      {rows.map(({ name, path, filter, numbers: { messages, sending, deferred, held, nextAttemptAt } }) => (
        <tr key={path}>
          <th scope="row">
            <a href={href(path)}>{name}</a>
          </th>
          <td class="aside">{number(messages)}</td>
          <td>{number(sending)}</td>
          <td class="second labelled">{number(deferred)}</td>
          <td>{number(held)}</td>
          <td class="when">
            <Time at={nextAttemptAt} />
          </td>
          <td class="menu">
            {deferred > 0 && <RetryButton retries={retries} target={name} filter={filter} />}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Controls({ controls, onChange }: { controls: Queue['controls']; onChange: () => void }) {
  const { t, time } = useTexts();
  const { outcome, resume } = useResume(onChange);
  return (
    <>
      {controls.length === 0 ? (
        <p class="all-well">
          <Icon name="circle-check" />
          {t('queue.controls.empty')}
        </p>
      ) : (
        <Table
          label={t('queue.controls')}
          isList
          heads={[
            t('queue.target'),
            t('queue.action'),
            t('queue.reason'),
            { text: t('queue.until'), end: true },
            { text: t('queue.change'), unseen: true },
          ]}
        >
          {controls.map(({ action, scope, target, reason, until }) => (
            <tr key={`${scope} ${target}`}>
              <th scope="row">
                {target}
                <p class="small">{t(`queue.scope.${scope}`)}</p>
              </th>
              <td>{t(`queue.action.${action}`)}</td>
              <td class="second">{reason}</td>
              <td class="when">{until === null ? t('queue.until.never') : time(until)}</td>
              <td class="aside">
                <Confirmed
                  label={t('queue.resume')}
                  question={t('queue.resume.confirm', { target })}
                  action={() => resume(scope, target)}
                />
              </td>
            </tr>
          ))}
        </Table>
      )}
      <Outcome of={outcome} />
    </>
  );
}
