import { useState } from 'preact/hooks';
import type { PresentedHealth } from '../../../http/console/webhook-routes.ts';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type BodyOf, type DataOf } from '../../operations.ts';
import { Drawer, OpenDrawer } from '../../parts/drawer.tsx';
import { fieldChoice, fieldText } from '../../parts/field-text.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { localTime } from '../../parts/local-time.ts';
import { TaskProgress, useLongTask } from '../../parts/long-task.tsx';
import { toast } from '../../parts/toast.tsx';
import { Copy, Loaded, Notice, Outcome, Page, RowActions, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { DELIVERIES, Deliveries } from './deliveries.tsx';
import { LastCall, SuccessRate, useHealth, Waiting } from './health.tsx';
import { NewSecret } from './new-secret.tsx';
import { formatName, WebhookForm } from './webhook-form.tsx';
import { WebhookStatus } from './webhook-status.tsx';
import './webhooks.css';

const PATH = '/web-setup/webhooks/{webhookId}';
const REPLAY = `${PATH}/replay` as const;

type Webhook = DataOf<'/web-setup/webhooks'>['webhooks'][number];
type Detail = DataOf<typeof PATH>;
type TestResult = DataOf<'/web-setup/webhooks/{webhookId}/test', 'post'>;

const DAY_MS = 86_400_000;

/** A webhook: how its endpoint responds, and its deliveries; test, replay, rotation. */
export function WebhookPage({ webhookId }: { webhookId: string }) {
  const { t } = useTexts();
  const { may } = useMember();
  // A single webhook has its secret: it is read only for those who may see it.
  const isSecretVisible = may('getWebhook');
  const detail = useOperation(isSecretVisible ? PATH : null, { webhookId });
  const list = useOperation(isSecretVisible ? null : '/web-setup/webhooks', { includeInactive: 'true' });
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
      curl={addressOf(DELIVERIES, { webhookId })}
      actions={detail.value !== null && <Actions webhook={detail.value} onChange={changed} />}
    >
      {responding !== undefined && <Waiting of={responding} failingSince={webhook?.failingSince} />}
      {isSecretVisible ? (
        <Loaded data={detail}>{(value) => <Facts webhook={value} health={responding} />}</Loaded>
      ) : (
        <Loaded data={list}>
          {() => webhook !== null && <Facts webhook={webhook} health={responding} />}
        </Loaded>
      )}
      <Replay webhookId={webhookId} onEnd={changed} />
      <Deliveries webhookId={webhookId} />
    </Page>
  );
}

interface FactsProps {
  webhook: Webhook & Partial<Pick<Detail, 'secret' | 'verificationKey' | 'offReason'>>;
  health: PresentedHealth | undefined;
}

function Facts({ webhook, health }: FactsProps) {
  const { t, named, number } = useTexts();
  const { url, format, events, filter, headerNames = [], secret, verificationKey, offReason } = webhook;
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
            {format !== undefined && (
              <div>
                <dt>{t('webhooks.format')}</dt>
                <dd>{formatName(format)}</dd>
              </div>
            )}
            {filter && (
              <div>
                <dt>{t('webhooks.filter')}</dt>
                <dd>
                  {[
                    (filter.streams ?? []).map((stream) => t(`webhooks.filter.${stream}`)),
                    filter.domains ?? [],
                    filter.tags ?? [],
                  ]
                    .filter((values) => values.length > 0)
                    .map((values) => values.join(', '))
                    .join(' · ')}
                </dd>
              </div>
            )}
            {headerNames.length > 0 && (
              <div>
                <dt>{t('webhooks.headers')}</dt>
                <dd>{headerNames.join(', ')}</dd>
              </div>
            )}
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
          {verificationKey !== undefined && (
            <details>
              <summary>{t('webhooks.verificationKey')}</summary>
              <pre tabIndex={0}>{verificationKey}</pre>
              <Copy text={verificationKey} label={t('webhooks.verificationKey.copy')} />
            </details>
          )}
        </div>
      </div>
    </>
  );
}

interface ActionsProps {
  webhook: Detail;
  onChange: () => void;
}

/** What can be done with a webhook; the result of a test is in a drawer. */
function Actions({ webhook, onChange }: ActionsProps) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const [tested, setTested] = useState<TestResult | null>(null);
  const [rotated, setRotated] = useState<string | null>(null);
  const request = { account: accountId, parameters: { webhookId: webhook.webhookId } };
  const switched = () =>
    run(async () => {
      await operate('patch', PATH, { ...request, body: { isActive: !webhook.isActive } });
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
      <Drawer title={t('webhooks.edit')} buttonClass="button" button={t('webhooks.edit.short')}>
        {(close) => (
          <WebhookForm
            webhook={webhook}
            onSaved={() => {
              close();
              onChange();
              toast(t('webhooks.saved'));
            }}
          />
        )}
      </Drawer>
      <button
        type="button"
        class="button primary"
        disabled={outcome?.running}
        onClick={() =>
          void run(async () => {
            setTested(await operate('post', `${PATH}/test`, { ...request, body: {} }));
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
                const { secret } = await operate('post', `${PATH}/rotate-secret`, request);
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
                await operate('delete', PATH, request);
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

const WHICH = ['undelivered', 'all'] as const satisfies BodyOf<typeof REPLAY, 'post'>['which'][];

interface ReplayWork {
  from: string;
  to: string;
  which: (typeof WHICH)[number];
  /** `from` of the first request. */
  since: string;
}

/** Sends the events of a period again; continues until all are sent. */
function Replay({ webhookId, onEnd }: { webhookId: string; onEnd: () => void }) {
  const { t } = useTexts();
  const { accountId, may } = useMember();
  const task = useLongTask<ReplayWork>(
    `replay ${webhookId}`,
    async ({ from, to, which, since }) => {
      const { replayed, nextFrom } = await operate('post', REPLAY, {
        account: accountId,
        parameters: { webhookId },
        body: { from, to, which },
      });
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
    const which = fieldChoice(form, 'which', WHICH) ?? 'undelivered';
    const work = { from: since, to, which, since };
    task.start({ title: t('webhooks.replay'), work, total: null });
  };
  return (
    <details class="card folded" open={task.state !== null || undefined}>
      <summary class="card-head">
        {t('webhooks.replay')}
        <Icon name="chevron-down" />
      </summary>
      <div class="card-body">
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
              {WHICH.map((name) => (
                <option value={name} key={name}>
                  {t(`webhooks.which.${name}`)}
                </option>
              ))}
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
      </div>
    </details>
  );
}

/** The share of the period that was sent, 0 to 1. */
function shareOf({ from, to, since }: ReplayWork): number {
  const length = Date.parse(to) - Date.parse(since);
  return length <= 0 ? 1 : (Date.parse(from) - Date.parse(since)) / length;
}
