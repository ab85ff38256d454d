import { operate } from '../../api.ts';
import { useOperation, useRefresh } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { OpenDrawer } from '../../parts/drawer.tsx';
import { FactList } from '../../parts/fact-list.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { LiveRows } from '../../parts/live-rows.tsx';
import { Pager } from '../../parts/pager.tsx';
import { SavedViews } from '../../parts/saved-views.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { Card, Copy, Empty, Loaded, Outcome, Status, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { isFuture } from './health.tsx';

export const DELIVERIES = '/web-setup/webhooks/{webhookId}/deliveries';
const DELIVERY = `${DELIVERIES}/{deliveryId}` as const;

type Delivery = DataOf<typeof DELIVERIES>['deliveries'][number];

const STATUSES = ['pending', 'succeeded', 'failed'] as const satisfies Delivery['status'][];

/** The deliveries of a webhook, newest first; over them the one that the address names. */
export function Deliveries({ webhookId }: { webhookId: string }) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const { status, lastKey, delivery: openId } = location.query;
  const list = useOperation(DELIVERIES, { webhookId, status, lastKey });
  useRefresh(list.reload);
  const page = `webhooks/${encodeURIComponent(webhookId)}`;
  const retry = (deliveryId: string) =>
    run(async () => {
      await operate('post', `${DELIVERY}/retry`, {
        account: accountId,
        parameters: { webhookId, deliveryId },
      });
      list.reload();
      toast(t('webhooks.retried'));
      return '';
    });
  return (
    <Card title={t('webhooks.deliveries')} action={<SavedViews path={page} query={{ status }} />}>
      <FilterBar>
        <nav class="segments" aria-label={t('messages.status')}>
          {[undefined, ...STATUSES].map((name) => (
            <a
              class="segment"
              key={name ?? ''}
              href={href(page, { status: name })}
              aria-current={status === name ? 'true' : undefined}
            >
              <span class="sentence">
                {t(name === undefined ? 'webhooks.status.all' : `webhooks.status.${name}`)}
              </span>
            </a>
          ))}
        </nav>
      </FilterBar>
      <Outcome of={outcome} />
      <Loaded data={list} isList>
        {({ deliveries, nextKey }, isStale) => (
          <>
            {deliveries.length === 0 ? (
              <Empty
                title={t(nextKey === undefined ? 'webhooks.noDeliveries' : 'messages.partial')}
                icon="webhook"
              >
                <p>
                  {t(status === 'failed' ? 'webhooks.noDeliveries.failed' : 'webhooks.noDeliveries.hint')}
                </p>
              </Empty>
            ) : (
              <LiveRows
                of={addressOf(DELIVERIES, { webhookId, status, lastKey })}
                isStale={isStale}
                rows={deliveries}
                keyOf={({ deliveryId }) => deliveryId}
              >
                {(rows) => (
                  <Table
                    label={t('webhooks.deliveries')}
                    isList
                    heads={[
                      t('suppressions.event'),
                      t('messages.status'),
                      t('webhooks.response'),
                      { text: t('messages.attempts'), end: true },
                      { text: t('messages.next'), end: true },
                      { text: t('messages.created'), end: true },
                      ...(may('retryWebhookDelivery')
                        ? [{ text: t('queue.change'), unseen: true } as const]
                        : []),
                    ]}
                  >
                    {rows.map((each) => (
                      <DeliveryRow
                        key={each.deliveryId}
                        of={each}
                        address={href(page, { status, lastKey, delivery: each.deliveryId })}
                        onRetry={may('retryWebhookDelivery') ? retry : null}
                      />
                    ))}
                  </Table>
                )}
              </LiveRows>
            )}
            <Pager path={page} filters={{ status }} nextKey={nextKey} />
          </>
        )}
      </Loaded>
      {openId !== undefined && may('getWebhookDelivery') && (
        <OpenDrawer title={t('webhooks.exchange')} onClose={() => go(href(page, { status, lastKey }))}>
          <Exchange webhookId={webhookId} deliveryId={openId} />
        </OpenDrawer>
      )}
    </Card>
  );
}

interface DeliveryRowProps {
  of: Delivery;
  /** The address that shows payload and response. */
  address: string;
  /** Null: the role does not permit it. */
  onRetry: ((deliveryId: string) => Promise<void>) | null;
}

/** A delivery with its attempts. */
function DeliveryRow({ of: each, address, onRetry }: DeliveryRowProps) {
  const { t, named, time, number } = useTexts();
  const next = [each.nextProbeAt, each.nextAttemptAt].find(isFuture);
  return (
    <tr>
      <th scope="row">
        <a href={address} title={each.eventId}>
          {named('event', each.event ?? each.deliveryId)}
        </a>
      </th>
      <td class="aside">
        <Status name={each.status} prefix="webhooks.status" />
      </td>
      <td class="second">{each.error ?? each.responseCode ?? ''}</td>
      <td>
        <span title={time(each.lastAttemptAt)}>{number(each.attempts)}</span>
      </td>
      <td>
        <Time at={next} />
      </td>
      <td class="when">
        <Time at={each.createdAt} />
      </td>
      {onRetry !== null && (
        <td class="menu">
          <button
            class="button ghost icon-only"
            type="button"
            aria-label={t('webhooks.retry')}
            title={t('webhooks.retry')}
            onClick={() => void onRetry(each.deliveryId)}
          >
            <Icon name="rotate-cw" />
          </button>
        </td>
      )}
    </tr>
  );
}

/** What was sent to the endpoint, and what it responded. */
function Exchange(of: { webhookId: string; deliveryId: string }) {
  const { t, time } = useTexts();
  const data = useOperation(DELIVERY, of);
  return (
    <Loaded data={data}>
      {({ payload, responseCode, responseBody, error, ...delivery }) => {
        const text = payload === null ? '' : JSON.stringify(payload, null, 2);
        return (
          <>
            <p>
              <Status name={delivery.status} prefix="webhooks.status" />
            </p>
            <FactList
              facts={[
                [t('webhooks.response'), error ?? String(responseCode ?? '')],
                [t('messages.attempts'), String(delivery.attempts)],
                [t('webhooks.last'), time(delivery.lastAttemptAt)],
                [t('messages.next'), time([delivery.nextProbeAt, delivery.nextAttemptAt].find(isFuture))],
                ['ID', delivery.eventId ?? ''],
              ]}
            />
            {responseBody !== undefined && responseBody !== '' && <pre tabIndex={0}>{responseBody}</pre>}
            <h3>{t('webhooks.payload')}</h3>
            {payload === null ? (
              <p>{t('webhooks.payload.purged')}</p>
            ) : (
              <>
                <Copy text={text} label={t('webhooks.payload.copy')} />
                <pre tabIndex={0}>{text}</pre>
              </>
            )}
          </>
        );
      }}
    </Loaded>
  );
}
