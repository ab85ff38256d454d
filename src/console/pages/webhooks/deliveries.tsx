import { useState } from 'preact/hooks';
import type * as z from 'zod';
import type { delivery, deliveryDetail } from '../../../http/api/webhook-schemas.ts';
import { callApi, withQuery } from '../../api.ts';
import { useData } from '../../data.ts';
import { Pager } from '../../parts/pager.tsx';
import { Copy, Empty, Loaded, Outcome, Status, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

type Delivery = z.output<typeof delivery>;

const STATUSES = ['pending', 'succeeded', 'failed'] as const satisfies Delivery['status'][];

/** The deliveries of a webhook, newest first. `path`: of the webhook in the API. */
export function Deliveries({ path, webhookId }: { path: string; webhookId: string }) {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const { status, lastKey } = location.query;
  const list = useData<{ deliveries: Delivery[]; nextKey?: string }>(
    withQuery(`${path}/deliveries`, { status, lastKey }),
  );
  const page = `webhooks/${encodeURIComponent(webhookId)}`;
  const retry = (delivery: string) =>
    run(async () => {
      await callApi(`${delivery}/retry`, { method: 'POST', account: accountId });
      list.reload();
      return t('webhooks.retried');
    });
  return (
    <>
      <p class="actions">
        {[undefined, ...STATUSES].map((name) => (
          <a
            class="button"
            key={name ?? ''}
            href={href(page, { status: name })}
            aria-current={status === name ? 'true' : undefined}
          >
            {t(name === undefined ? 'webhooks.status.all' : `webhooks.status.${name}`)}
          </a>
        ))}
      </p>
      <Outcome of={outcome} />
      <Loaded data={list}>
        {({ deliveries, nextKey }) => (
          <>
            {deliveries.length === 0 ? (
              <Empty title={t(nextKey === undefined ? 'webhooks.noDeliveries' : 'messages.partial')}>
                <p>
                  {t(status === 'failed' ? 'webhooks.noDeliveries.failed' : 'webhooks.noDeliveries.hint')}
                </p>
              </Empty>
            ) : (
              <Table
                label={t('webhooks.deliveries')}
                heads={[
                  t('suppressions.event'),
                  t('messages.status'),
                  t('webhooks.response'),
                  t('messages.attempts'),
                  ...(may('retryWebhookDelivery') ? [t('queue.change')] : []),
                ]}
              >
                {deliveries.map((each) => (
                  <DeliveryRows
                    key={each.deliveryId}
                    of={each}
                    path={`${path}/deliveries/${encodeURIComponent(each.deliveryId)}`}
                    onRetry={may('retryWebhookDelivery') ? retry : null}
                  />
                ))}
              </Table>
            )}
            <Pager path={page} filters={{ status }} nextKey={nextKey} />
          </>
        )}
      </Loaded>
    </>
  );
}

interface DeliveryRowsProps {
  of: Delivery;
  /** Path of the delivery in the API. */
  path: string;
  /** Null: the role does not permit it. */
  onRetry: ((path: string) => Promise<void>) | null;
}

/** A delivery, and below it on request the payload and the response. */
function DeliveryRows({ of: each, path, onRetry }: DeliveryRowsProps) {
  const { t, time, named } = useTexts();
  const [isOpen, setOpen] = useState(false);
  const event = named('event', each.event ?? each.deliveryId);
  return (
    <>
      <tr class="continued">
        <th scope="row">
          {event}
          <p class="small">{time(each.createdAt)}</p>
          <p class="small">{each.eventId ?? ''}</p>
        </th>
        <td>
          <Status name={each.status} prefix="webhooks.status" />
        </td>
        <td class="value">
          {each.responseCode ?? ''} {each.error ?? ''}
        </td>
        <td>
          {each.attempts}
          <p class="small">{time(each.lastAttemptAt)}</p>
          {each.nextProbeAt !== undefined && (
            <p class="small">{t('webhooks.nextProbe', { time: time(each.nextProbeAt) })}</p>
          )}
          {each.nextAttemptAt !== undefined && (
            <p class="small">
              {t('messages.next')}: {time(each.nextAttemptAt)}
            </p>
          )}
        </td>
        {onRetry !== null && (
          <td>
            <button class="button" type="button" onClick={() => void onRetry(path)}>
              {t('webhooks.retry')}
            </button>
          </td>
        )}
      </tr>
      <tr>
        <td colSpan={onRetry === null ? 4 : 5}>
          <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
            <summary>{t('webhooks.exchange')}</summary>
            {isOpen && <Exchange path={path} />}
          </details>
        </td>
      </tr>
    </>
  );
}

/** What was sent to the endpoint, and what it responded. */
function Exchange({ path }: { path: string }) {
  const { t } = useTexts();
  const data = useData<z.output<typeof deliveryDetail>>(path);
  return (
    <Loaded data={data}>
      {({ payload, responseCode, responseBody, error }) => {
        const text = payload === null ? '' : JSON.stringify(payload, null, 2);
        return (
          <>
            <h3>{t('webhooks.payload')}</h3>
            {payload === null ? (
              <p>{t('webhooks.payload.purged')}</p>
            ) : (
              <>
                <pre tabIndex={0}>{text}</pre>
                <Copy text={text} label={t('webhooks.payload.copy')} />
              </>
            )}
            <h3>{t('webhooks.response')}</h3>
            <p>{[responseCode, error].filter((part) => part !== undefined).join(' ')}</p>
            {responseBody !== undefined && <pre tabIndex={0}>{responseBody}</pre>}
          </>
        );
      }}
    </Loaded>
  );
}
