import { operate } from '../../api.ts';
import { useInstallation, useRefresh } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { useReasons } from '../../parts/failure-reason.ts';
import { Empty, Loaded, Outcome, Status, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';
import { ControlNotice } from './control-notice.tsx';
import { QueueFacts } from './facts.tsx';
import { Pausing } from './pausing.tsx';
import { Purge } from './purge.tsx';
import { RetryButton, RetryProgress, useRetries } from './retry.tsx';

type Destination = DataOf<'/web-setup/queue/destinations/{destination}'>;
type Message = DataOf<'/web-setup/queue/messages/{messageId}'>;

/** Why the mail to a destination waits, and what can be done. */
export function DestinationExplanation({ destination }: { destination: string }) {
  const { t } = useTexts();
  const data = useInstallation('/web-setup/queue/destinations/{destination}', { destination });
  useRefresh(data.reload);
  const retries = useRetries(data.reload);
  return (
    <>
      <Loaded data={data}>
        {({ reasons, replies, control, routes, unknown, ...numbers }) => (
          <>
            <QueueFacts of={numbers} />
            {numbers.deferred > 0 && (
              <p class="actions">
                <RetryButton retries={retries} target={destination} filter={{ destination }} />
              </p>
            )}
            <Reasons reasons={reasons} />
            <ControlNotice control={control} scope="destination" onChange={data.reload} />
            <Replies replies={replies} />
            <Routes routes={routes} />
            <Unknown texts={unknown} />
          </>
        )}
      </Loaded>
      <RetryProgress retries={retries} />
      <h2>{t('queue.pause')}</h2>
      <Pausing destination={destination} onChange={data.reload} />
      <h2>{t('queue.purge')}</h2>
      <Purge destination={destination} onChange={data.reload} />
    </>
  );
}

/** Why a message waits, and an action that retries it now. */
export function MessageExplanation({ messageId }: { messageId: string }) {
  const { t, time, number } = useTexts();
  const { href } = useNavigation();
  const data = useInstallation('/web-setup/queue/messages/{messageId}', { messageId });
  useRefresh(data.reload);
  const { outcome, run } = useAction();
  const retry = (account: string) =>
    run(async () => {
      await operate('post', '/web-setup/messages/{id}/retry', { account, parameters: { id: messageId } });
      data.reload();
      return t('messages.retried');
    });
  return (
    <>
      <Loaded data={data}>
        {(message) => (
          <>
            <p>
              <Status name={message.status} />
            </p>
            <FactList
              facts={[
                [t('messages.recipientColumn'), message.recipient],
                [t('app.account'), message.accountId],
                [t('messages.attempts'), String(message.attempts)],
                [t('messages.next'), time(message.nextAttemptAt)],
                [t('queue.expires'), time(message.expiresAt)],
                [t('queue.ahead'), number(message.ahead)],
              ]}
            />
            <p class="actions">
              {(message.status === 'queued' || message.status === 'deferred') && (
                <button class="button" type="button" onClick={() => void retry(message.accountId)}>
                  {t('messages.retry')}
                </button>
              )}
              <a
                class="button"
                href={href(`messages/${encodeURIComponent(messageId)}`, { account: message.accountId })}
              >
                {t('queue.openMessage')}
              </a>
              <a class="button" href={href(`queue/destinations/${encodeURIComponent(message.destination)}`)}>
                {message.destination}
              </a>
            </p>
            <Reasons reasons={message.reasons} />
            <Replies replies={message.lastAttempts} />
            <Routes routes={message.route === null ? [] : [message.route]} />
            <Unknown texts={message.unknown} />
          </>
        )}
      </Loaded>
      <Outcome of={outcome} />
    </>
  );
}

function Reasons({ reasons }: { reasons: Message['reasons'] }) {
  const { t, language, named, localTimes } = useTexts();
  if (reasons.length === 0) return <Empty title={t('queue.noReason')} />;
  return (
    <>
      <h2>{t('queue.why')}</h2>
      <ul>
        {reasons.map(({ code, text, remedy, messages }) => (
          <li key={`${code} ${text}`}>
            {language === 'en' ? localTimes(text) : named('queue.why', code)}
            {messages !== undefined && ` (${t('queue.count', { count: messages })})`}
            {language !== 'en' && (
              <p class="small" lang="en">
                {localTimes(text)}
              </p>
            )}
            {remedy !== null && (
              <p class="small" lang="en">
                {remedy}
              </p>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function Replies({ replies }: { replies: Message['lastAttempts'] }) {
  const { t, time, language } = useTexts();
  const { cause, remedy: advice } = useReasons();
  if (replies.length === 0) return null;
  return (
    <>
      <h2>{t('queue.replies')}</h2>
      <Table
        label={t('queue.replies')}
        heads={[t('audit.time'), t('queue.host'), t('queue.reply'), t('domains.hint')]}
      >
        {replies.map(({ at, host, address, reply, classification, remedy, messages }, index) => (
          <tr key={`${at} ${index}`}>
            <td>
              {time(at)}
              {messages !== undefined && <p class="small">{t('queue.count', { count: messages })}</p>}
            </td>
            <td>
              {host ?? ''}
              <p class="small">{address ?? ''}</p>
            </td>
            <td class="value">
              {reply === null ? t('queue.noReply') : `${reply.code} ${reply.enhanced ?? ''} ${reply.text}`}
            </td>
            <td>
              {language === 'en' || classification === null || remedy === null
                ? remedy
                : [cause(classification), advice(classification)].join('. ')}
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
}

function Routes({ routes }: { routes: Destination['routes'] }) {
  const { t } = useTexts();
  if (routes.length === 0) return null;
  return (
    <>
      <h2>{t('queue.routes')}</h2>
      <ul>
        {routes.map(({ pool, hosts, failure }, index) => (
          <li key={`${pool} ${index}`}>
            {pool}: {hosts.map((host) => `${host.name} (${host.addresses.join(', ')})`).join('; ')}
            {failure !== null && <p class="small">{failure}</p>}
          </li>
        ))}
      </ul>
    </>
  );
}

function Unknown({ texts }: { texts: string[] }) {
  const { t } = useTexts();
  if (texts.length === 0) return null;
  return (
    <div class="notice">
      <strong>{t('queue.unknown')}</strong>
      <ul>
        {texts.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </div>
  );
}
