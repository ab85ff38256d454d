import { useState } from 'preact/hooks';
import type * as z from 'zod';
import type { testResult, webhookDetail } from '../../../http/api/webhook-schemas.ts';
import { callApi } from '../../api.ts';
import { useData } from '../../data.ts';
import { fieldText } from '../../parts/field-text.ts';
import { localTime } from '../../parts/local-time.ts';
import { TaskProgress, useLongTask } from '../../parts/long-task.tsx';
import { Confirmed, Copy, Loaded, Outcome, Page, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { Deliveries } from './deliveries.tsx';
import { NewSecret } from './new-secret.tsx';
import { WebhookStatus } from './webhook-status.tsx';

type Detail = z.output<typeof webhookDetail>;
type TestResult = z.output<typeof testResult>;

const DAY_MS = 86_400_000;

/** A webhook: its deliveries with the responses; test, replay, rotation. */
export function WebhookPage({ webhookId }: { webhookId: string }) {
  const { t } = useTexts();
  const { may } = useMember();
  const path = `/web-setup/webhooks/${encodeURIComponent(webhookId)}`;
  // A single webhook has its secret: it is read only for those who may see it.
  const data = useData<Detail>(may('getWebhook') ? path : null);
  return (
    <Page
      title={data.value?.name || t('page.webhooks')}
      chip={data.value !== null && <WebhookStatus of={data.value} />}
      question={t('webhooks.question')}
      curl={`${path}/deliveries`}
    >
      {may('getWebhook') && (
        <Loaded data={data}>
          {(webhook) => <Details webhook={webhook} path={path} onChange={data.reload} />}
        </Loaded>
      )}
      <h2>{t('webhooks.deliveries')}</h2>
      <Deliveries path={path} webhookId={webhookId} />
    </Page>
  );
}

function Details({ webhook, path, onChange }: { webhook: Detail; path: string; onChange: () => void }) {
  const { t, time, named } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const [tested, setTested] = useState<TestResult | null>(null);
  const [rotated, setRotated] = useState<string | null>(null);
  const call = <T,>(method: 'POST' | 'PATCH' | 'DELETE', verb: string, body?: unknown) =>
    callApi<T>(path + verb, { method, account: accountId, ...(body === undefined ? {} : { body }) });
  return (
    <>
      {webhook.offReason !== undefined && <p class="notice bad">{t(`webhooks.off.${webhook.offReason}`)}</p>}
      <dl class="facts">
        <div>
          <dt>{t('webhooks.url')}</dt>
          <dd>{webhook.url}</dd>
        </div>
        <div>
          <dt>{t('webhooks.events')}</dt>
          <dd>{webhook.events.map((event) => named('event', event)).join(', ')}</dd>
        </div>
        {webhook.failingSince !== undefined && (
          <div>
            <dt>{t('webhooks.failingSince')}</dt>
            <dd>{time(webhook.failingSince)}</dd>
          </div>
        )}
      </dl>
      <details>
        <summary>{t('webhooks.secret')}</summary>
        <pre tabIndex={0}>{webhook.secret}</pre>
        <Copy text={webhook.secret} label={t('webhooks.secret.copy')} />
      </details>
      <div class="actions">
        <button
          type="button"
          class="button primary"
          disabled={outcome?.running}
          onClick={() =>
            void run(async () => {
              setTested(await call<TestResult>('POST', '/test', {}));
              return t('webhooks.tested');
            })
          }
        >
          {t('webhooks.test')}
        </button>
        <button
          class="button"
          type="button"
          onClick={() =>
            void run(async () => {
              await call('PATCH', '', { isActive: !webhook.isActive });
              onChange();
              return t(webhook.isActive ? 'webhooks.disabled' : 'webhooks.enabled');
            })
          }
        >
          {t(webhook.isActive ? 'webhooks.disable' : 'webhooks.enable')}
        </button>
        <Confirmed
          label={t('webhooks.rotate')}
          question={t('webhooks.rotate.confirm')}
          action={() =>
            run(async () => {
              const { secret } = await call<{ secret: string }>('POST', '/rotate-secret');
              setRotated(secret);
              onChange();
              return t('webhooks.rotated');
            })
          }
        />
        <Confirmed
          isDanger
          label={t('webhooks.delete')}
          question={t('webhooks.delete.confirm', { name: webhook.name })}
          action={() =>
            run(async () => {
              await call('DELETE', '');
              go(href('webhooks'));
              return t('app.deleted');
            })
          }
        />
      </div>
      <Outcome of={outcome} />
      {rotated !== null && <NewSecret secret={rotated} onStored={() => setRotated(null)} />}
      {tested !== null && <Tested result={tested} />}
      <Replay path={path} onEnd={onChange} />
    </>
  );
}

function Tested({ result }: { result: TestResult }) {
  const { t } = useTexts();
  const { delivered, responseCode, responseBody, error, durationMs, payload } = result;
  return (
    <section class={delivered ? 'notice' : 'notice bad'} aria-label={t('webhooks.result')}>
      <strong>{t(delivered ? 'webhooks.result.good' : 'webhooks.result.bad')}</strong>
      <p>
        {[responseCode, error].filter((part) => part !== undefined).join(' ')} ({durationMs} ms)
      </p>
      <h3>{t('webhooks.response')}</h3>
      <pre tabIndex={0}>{responseBody ?? ''}</pre>
      <h3>{t('webhooks.payload')}</h3>
      <pre tabIndex={0}>{JSON.stringify(payload, null, 2)}</pre>
    </section>
  );
}

interface ReplayWork {
  from: string;
  to: string;
  which: string;
  /** `from` of the first request. */
  since: string;
}

/** Sends the events of a period again; continues until all are sent. */
function Replay({ path, onEnd }: { path: string; onEnd: () => void }) {
  const { t } = useTexts();
  const { accountId, may } = useMember();
  const task = useLongTask<ReplayWork>(
    `replay ${path}`,
    async ({ from, to, which, since }) => {
      const { replayed, nextFrom } = await callApi<{ replayed: number; nextFrom?: string }>(
        `${path}/replay`,
        {
          method: 'POST',
          account: accountId,
          body: { from, to, which },
        },
      );
      return {
        rest: nextFrom === undefined ? null : { from: nextFrom, to, which, since },
        done: replayed,
      };
    },
    onEnd,
  );
  if (!may('replayWebhook')) return null;
  const isBusy = task.state !== null && task.status !== 'finished';
  const replay = (form: FormData) => {
    const since = new Date(fieldText(form, 'from')).toISOString();
    const to = new Date(fieldText(form, 'to')).toISOString();
    const work = { from: since, to, which: fieldText(form, 'which'), since };
    task.start({ title: t('webhooks.replay'), work, total: null });
  };
  return (
    <details open={task.state !== null || undefined}>
      <summary>{t('webhooks.replay')}</summary>
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          replay(new FormData(event.currentTarget));
        }}
      >
        <label class="field">
          {t('messages.from')}
          <input
            class="input"
            name="from"
            type="datetime-local"
            required
            defaultValue={localTime(Date.now() - DAY_MS)}
          />
        </label>
        <label class="field">
          {t('messages.to')}
          <input
            class="input"
            name="to"
            type="datetime-local"
            required
            defaultValue={localTime(Date.now() + 60_000)}
          />
        </label>
        <label class="field">
          {t('webhooks.which')}
          <select class="select" name="which">
            <option value="undelivered">{t('webhooks.which.undelivered')}</option>
            <option value="all">{t('webhooks.which.all')}</option>
          </select>
        </label>
        <div class="actions">
          <button class="button" type="submit" disabled={isBusy}>
            {t('webhooks.replayNow')}
          </button>
        </div>
      </form>
      <TaskProgress
        task={task}
        share={task.state === null ? 0 : shareOf(task.state.work)}
        result={t('webhooks.replayed', { count: task.state?.done ?? 0 })}
      />
    </details>
  );
}

/** The share of the period that was sent, 0 to 1. */
function shareOf({ from, to, since }: ReplayWork): number {
  const length = Date.parse(to) - Date.parse(since);
  return length <= 0 ? 1 : (Date.parse(from) - Date.parse(since)) / length;
}
