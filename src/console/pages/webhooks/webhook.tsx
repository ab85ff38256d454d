import { useState } from 'preact/hooks';
import type * as z from 'zod';
import type {
  testResult,
  webhookDetail,
  webhook as webhookSchema,
} from '../../../http/api/webhook-schemas.ts';
import type { PresentedHealth } from '../../../http/console/webhook-routes.ts';
import { callApi } from '../../api.ts';
import { useData } from '../../data.ts';
import { OpenDrawer } from '../../parts/drawer.tsx';
import { fieldText } from '../../parts/field-text.ts';
import { localTime } from '../../parts/local-time.ts';
import { TaskProgress, useLongTask } from '../../parts/long-task.tsx';
import { toast } from '../../parts/toast.tsx';
import { Copy, Loaded, Notice, Outcome, Page, RowActions, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { Deliveries } from './deliveries.tsx';
import { LastCall, SuccessRate, useHealth, Waiting } from './health.tsx';
import { NewSecret } from './new-secret.tsx';
import { WebhookStatus } from './webhook-status.tsx';
import './webhooks.css';

type Webhook = z.output<typeof webhookSchema>;
type Detail = z.output<typeof webhookDetail>;
type TestResult = z.output<typeof testResult>;

const DAY_MS = 86_400_000;

/** A webhook: how its endpoint responds, and its deliveries; test, replay, rotation. */
export function WebhookPage({ webhookId }: { webhookId: string }) {
  const { t } = useTexts();
  const { may } = useMember();
  const path = `/web-setup/webhooks/${encodeURIComponent(webhookId)}`;
  // A single webhook has its secret: it is read only for those who may see it.
  const isSecretVisible = may('getWebhook');
  const detail = useData<Detail>(isSecretVisible ? path : null);
  const list = useData<{ webhooks: Webhook[] }>(
    isSecretVisible ? null : '/web-setup/webhooks?includeInactive=true',
  );
  const health = useHealth(webhookId);
  const webhook = detail.value ?? list.value?.webhooks.find((each) => each.webhookId === webhookId) ?? null;
  const responding = health.value?.webhooks[0];
  const changed = () => {
    detail.reload();
    health.reload();
  };
  return (
    <Page
      title={webhook?.name || t('page.webhooks')}
      chip={webhook !== null && <WebhookStatus of={webhook} />}
      curl={`${path}/deliveries`}
      actions={detail.value !== null && <Actions webhook={detail.value} path={path} onChange={changed} />}
    >
      {responding !== undefined && <Waiting of={responding} failingSince={webhook?.failingSince} />}
      {isSecretVisible ? (
        <Loaded data={detail}>{(value) => <Facts webhook={value} health={responding} />}</Loaded>
      ) : (
        <Loaded data={list}>
          {() => webhook !== null && <Facts webhook={webhook} health={responding} />}
        </Loaded>
      )}
      <Replay path={path} onEnd={changed} />
      <Deliveries path={path} webhookId={webhookId} />
    </Page>
  );
}

interface FactsProps {
  webhook: Webhook & Partial<Pick<Detail, 'secret' | 'offReason'>>;
  health: PresentedHealth | undefined;
}

function Facts({ webhook, health }: FactsProps) {
  const { t, named, number } = useTexts();
  const { url, events, secret, offReason } = webhook;
  return (
    <>
      {offReason !== undefined && <Notice kind="bad" title={t(`webhooks.off.${offReason}`)} />}
      <div class="card">
        <div class="card-body">
          <dl class="facts">
            <div>
              <dt>{t('webhooks.url')}</dt>
              <dd>{url}</dd>
            </div>
            <div>
              <dt>{t('webhooks.events')}</dt>
              <dd>
                {events.includes('*')
                  ? t('webhooks.events.all')
                  : events.map((event) => named('event', event)).join(', ')}
              </dd>
            </div>
            {health !== undefined && (
              <>
                <div>
                  <dt>{t('webhooks.last')}</dt>
                  <dd>
                    <LastCall of={health} />
                  </dd>
                </div>
                <div>
                  <dt>{t('webhooks.rate')}</dt>
                  <dd>
                    <SuccessRate of={health} />
                  </dd>
                </div>
                <div>
                  <dt>{t('webhooks.waiting')}</dt>
                  <dd>{number(health.waiting)}</dd>
                </div>
              </>
            )}
          </dl>
          {secret !== undefined && (
            <details>
              <summary>{t('webhooks.secret')}</summary>
              <pre tabIndex={0}>{secret}</pre>
              <Copy text={secret} label={t('webhooks.secret.copy')} />
            </details>
          )}
        </div>
      </div>
    </>
  );
}

interface ActionsProps {
  webhook: Detail;
  path: string;
  onChange: () => void;
}

/** What can be done with a webhook; the result of a test is in a drawer. */
function Actions({ webhook, path, onChange }: ActionsProps) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const [tested, setTested] = useState<TestResult | null>(null);
  const [rotated, setRotated] = useState<string | null>(null);
  const call = <T,>(method: 'POST' | 'PATCH' | 'DELETE', verb: string, body?: unknown) =>
    callApi<T>(path + verb, { method, account: accountId, ...(body === undefined ? {} : { body }) });
  const switched = () =>
    run(async () => {
      await call('PATCH', '', { isActive: !webhook.isActive });
      onChange();
      toast(t(webhook.isActive ? 'webhooks.disabled' : 'webhooks.enabled'));
      return '';
    });
  return (
    <>
      {!webhook.isActive && (
        <button class="button" type="button" onClick={() => void switched()}>
          {t('webhooks.enable')}
        </button>
      )}
      <button
        type="button"
        class="button primary"
        disabled={outcome?.running}
        onClick={() =>
          void run(async () => {
            setTested(await call<TestResult>('POST', '/test', {}));
            return '';
          })
        }
      >
        {t('webhooks.test')}
      </button>
      <RowActions
        label={webhook.name}
        actions={[
          ...(webhook.isActive
            ? [{ label: t('webhooks.disable'), question: t('webhooks.disable.confirm'), action: switched }]
            : []),
          {
            label: t('webhooks.rotate'),
            question: t('webhooks.rotate.confirm'),
            action: () =>
              run(async () => {
                const { secret } = await call<{ secret: string }>('POST', '/rotate-secret');
                setRotated(secret);
                onChange();
                return '';
              }),
          },
          {
            isDanger: true,
            label: t('webhooks.delete'),
            question: t('webhooks.delete.confirm', { name: webhook.name }),
            action: () =>
              run(async () => {
                await call('DELETE', '');
                go(href('webhooks'));
                toast(t('app.deleted'));
                return '';
              }),
          },
        ]}
      />
      <Outcome of={outcome} />
      {rotated !== null && (
        <NewSecret
          secret={rotated}
          onStored={() => {
            setRotated(null);
            toast(t('webhooks.rotated'));
          }}
        />
      )}
      {tested !== null && (
        <OpenDrawer title={t('webhooks.result')} onClose={() => setTested(null)}>
          <Tested result={tested} />
        </OpenDrawer>
      )}
    </>
  );
}

function Tested({ result }: { result: TestResult }) {
  const { t } = useTexts();
  const { delivered, responseCode, responseBody, error, durationMs, payload } = result;
  return (
    <>
      <Notice
        kind={delivered ? 'ok' : 'bad'}
        title={t(delivered ? 'webhooks.result.good' : 'webhooks.result.bad')}
      >
        <p>
          {[responseCode, error].filter((part) => part !== undefined).join(' ')} ({durationMs} ms)
        </p>
      </Notice>
      <h3>{t('webhooks.response')}</h3>
      <pre tabIndex={0}>{responseBody ?? ''}</pre>
      <h3>{t('webhooks.payload')}</h3>
      <pre tabIndex={0}>{JSON.stringify(payload, null, 2)}</pre>
    </>
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
