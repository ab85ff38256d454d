import { useState } from 'preact/hooks';
import type { PresentedHealth } from '../../../http/console/webhook-routes.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { CreationDrawer } from '../../parts/drawer.tsx';
import { Empty, Loaded, Page, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { LastCall, SuccessRate, useHealth } from './health.tsx';
import { NewSecret } from './new-secret.tsx';
import { WebhookForm } from './webhook-form.tsx';
import { WebhookStatus } from './webhook-status.tsx';
import './webhooks.css';

const PATH = '/web-setup/webhooks';
const ALL = { includeInactive: 'true' };

type Webhook = DataOf<typeof PATH>['webhooks'][number];
type Detail = DataOf<typeof PATH, 'post'>;

/** The webhooks of the account. */
export function WebhooksPage() {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { may } = useMember();
  const health = useHealth();
  const list = useOperation(PATH, ALL);
  const [created, setCreated] = useState<Detail | null>(null);
  return (
    <Page
      title={t('page.webhooks')}
      question={t('webhooks.question')}
      curl={addressOf(PATH, ALL)}
      actions={may('createWebhook') && <Addition onCreated={setCreated} />}
    >
      {created !== null && (
        <NewSecret
          secret={created.secret}
          onStored={() => go(href(`webhooks/${encodeURIComponent(created.webhookId)}`))}
        />
      )}
      <Loaded data={list}>
        {({ webhooks }) =>
          webhooks.length === 0 ? (
            <Empty title={t('webhooks.empty')} icon="webhook">
              <p>{t('webhooks.empty.hint')}</p>
            </Empty>
          ) : (
            <Table
              label={t('page.webhooks')}
              isList
              heads={[
                t('people.name'),
                t('messages.status'),
                t('webhooks.last'),
                { text: t('webhooks.rate'), end: true },
                { text: t('webhooks.waiting'), end: true },
                { text: t('webhooks.events'), end: true },
              ]}
            >
              {webhooks.map((webhook) => (
                <WebhookRow
                  key={webhook.webhookId}
                  of={webhook}
                  health={health.value?.webhooks.find((each) => each.webhookId === webhook.webhookId)}
                />
              ))}
            </Table>
          )
        }
      </Loaded>
    </Page>
  );
}

/** `health`: not known yet, or the webhook was created since. */
function WebhookRow({ of: webhook, health }: { of: Webhook; health: PresentedHealth | undefined }) {
  const { t, named, plural, number } = useTexts();
  const { href } = useNavigation();
  const { webhookId, name, url, events } = webhook;
  return (
    <tr>
      <th scope="row">
        <a href={href(`webhooks/${encodeURIComponent(webhookId)}`)}>{name || webhookId}</a>
        <p class="small">{url}</p>
      </th>
      <td class="aside">
        <WebhookStatus of={webhook} />
      </td>
      <td class="second">{health !== undefined && <LastCall of={health} />}</td>
      <td class="when">{health !== undefined && <SuccessRate of={health} />}</td>
      <td>{health !== undefined && number(health.waiting)}</td>
      <td title={events.map((event) => named('event', event)).join(', ')}>
        {events.includes('*') ? t('webhooks.events.all') : plural('webhooks.events.count', events.length)}
      </td>
    </tr>
  );
}

/** The form for a new webhook, in a drawer. */
function Addition({ onCreated }: { onCreated: (webhook: Detail) => void }) {
  const { t } = useTexts();
  return (
    <CreationDrawer title={t('webhooks.add')}>
      {(close) => (
        <WebhookForm
          webhook={null}
          onSaved={(webhook) => {
            close();
            onCreated(webhook);
          }}
        />
      )}
    </CreationDrawer>
  );
}
