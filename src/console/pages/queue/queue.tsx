import { useEffect } from 'preact/hooks';
import type * as z from 'zod';
import type { queueSchema } from '../../../http/api/queue/queue.ts';
import { request } from '../../api.ts';
import { useConsoleData } from '../../data.ts';
import { fieldText } from '../../parts/field-text.ts';
import { Confirmed, Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { DestinationExplanation, MessageExplanation } from './explanation.tsx';
import { Pausing } from './pausing.tsx';
import { Purge } from './purge.tsx';

type Queue = z.output<typeof queueSchema>;

const REFRESH_MS = 10_000;

/** The queue by destination, or why the mail of a destination or a message waits. */
export function QueuePage({ kind, name }: { kind: string | undefined; name: string | undefined }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { person } = useMember();
  if (!person.operator)
    return (
      <Page title={t('page.queue')}>
        <Empty title={t('system.operatorsOnly')} />
      </Page>
    );
  const isExplanation = name !== undefined && (kind === 'destinations' || kind === 'messages');
  return (
    <Page
      title={isExplanation ? name : t('page.queue')}
      question={t('queue.question')}
      curl={isExplanation ? `/web-setup/queue/${kind}/${encodeURIComponent(name)}` : '/web-setup/queue'}
    >
      {isExplanation && (
        <p>
          <a href={href('queue')}>{t('queue.back')}</a>
        </p>
      )}
      {!isExplanation && <Overview />}
      {isExplanation && kind === 'destinations' && <DestinationExplanation key={name} destination={name} />}
      {isExplanation && kind === 'messages' && <MessageExplanation key={name} messageId={name} />}
    </Page>
  );
}

function Overview() {
  const { t } = useTexts();
  const data = useConsoleData<Queue>('/console/api/web-setup/queue');
  useEffect(() => {
    const timer = window.setInterval(data.reload, REFRESH_MS);
    return () => window.clearInterval(timer);
  }, [data.reload]);
  return (
    <>
      <Explain />
      <Loaded data={data}>
        {({ stopped, sessions, controls, destinations }) => (
          <>
            {stopped !== null && <p class="notice bad">{t('system.stopped', { reason: stopped })}</p>}
            <p>{t('queue.sessions', { used: sessions.used, limit: sessions.limit })}</p>
            <h2>{t('queue.destinations')}</h2>
            {destinations.length === 0 ? (
              <Empty title={t('queue.empty')}>
                <p>{t('queue.empty.hint')}</p>
              </Empty>
            ) : (
              <Destinations destinations={destinations} />
            )}
            <h2>{t('queue.controls')}</h2>
            <Controls controls={controls} onChange={data.reload} />
          </>
        )}
      </Loaded>
      <h2>{t('queue.pause')}</h2>
      <Pausing onChange={data.reload} />
      <h2>{t('queue.purge')}</h2>
      <Purge onChange={data.reload} />
    </>
  );
}

/** Opens the explanation of a destination or a message. */
function Explain() {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const name = fieldText(new FormData(event.currentTarget), 'name');
        const kind = name.startsWith('msg_') ? 'messages' : 'destinations';
        if (name !== '') go(href(`queue/${kind}/${encodeURIComponent(name)}`));
      }}
    >
      <label>
        {t('queue.name')}
        <input name="name" type="search" required maxLength={300} autocapitalize="none" spellcheck={false} />
      </label>
      <div class="actions">
        <button type="submit" class="primary">
          {t('queue.explain')}
        </button>
      </div>
    </form>
  );
}

function Destinations({ destinations }: { destinations: Queue['destinations'] }) {
  const { t, time } = useTexts();
  const { href } = useNavigation();
  return (
    <Table
      label={t('queue.destinations')}
      heads={[
        t('system.destination'),
        t('system.waiting'),
        t('system.sending'),
        t('system.deferred'),
        t('system.held'),
        t('messages.next'),
      ]}
    >
      {destinations.map(({ destination, messages, sending, deferred, held, nextAttemptAt }) => (
        <tr key={destination}>
          <th scope="row">
            <a href={href(`queue/destinations/${encodeURIComponent(destination)}`)}>{destination}</a>
          </th>
          <td>{messages}</td>
          <td>{sending}</td>
          <td>{deferred}</td>
          <td>{held}</td>
          <td>{time(nextAttemptAt)}</td>
        </tr>
      ))}
    </Table>
  );
}

function Controls({ controls, onChange }: { controls: Queue['controls']; onChange: () => void }) {
  const { t, time } = useTexts();
  const { outcome, run } = useAction();
  const resume = (scope: string, target: string) =>
    run(async () => {
      const path = `/console/api/web-setup/queue/controls/${scope}/${encodeURIComponent(target)}`;
      await request(path, { method: 'DELETE' });
      onChange();
      return t('queue.resumed', { target });
    });
  return (
    <>
      {controls.length === 0 ? (
        <Empty title={t('queue.controls.empty')} />
      ) : (
        <Table
          label={t('queue.controls')}
          heads={[
            t('queue.target'),
            t('queue.action'),
            t('queue.reason'),
            t('queue.until'),
            t('queue.change'),
          ]}
        >
          {controls.map(({ action, scope, target, reason, until }) => (
            <tr key={`${scope} ${target}`}>
              <th scope="row">
                {target}
                <p class="small">{t(`queue.scope.${scope}`)}</p>
              </th>
              <td>{t(`queue.action.${action}`)}</td>
              <td>{reason}</td>
              <td>{until === null ? t('queue.until.never') : time(until)}</td>
              <td>
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
