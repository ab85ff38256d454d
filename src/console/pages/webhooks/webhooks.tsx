import { useState } from 'preact/hooks';
import type * as z from 'zod';
import type { webhook, webhookDetail } from '../../../http/api/webhook-schemas.ts';
import { callApi } from '../../api.ts';
import { useData } from '../../data.ts';
import { filledFields } from '../../parts/filled-fields.ts';
import { Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { NewSecret } from './new-secret.tsx';
import { WebhookStatus } from './webhook-status.tsx';

type Detail = z.output<typeof webhookDetail>;

const PATH = '/web-setup/webhooks?includeInactive=true';
const EVENTS = [
  'email_sent',
  'email_delivered',
  'email_delayed',
  'email_bounced',
  'email_suppressed',
  'email_rejected',
  'email_failed',
  'email_complained',
  'email_opened',
  'email_clicked',
  'email_unsubscribed',
  'domain_verified',
  'domain_failing',
  'domain_failed',
  'source_address_blocked',
] as const;

/** The webhooks of the account. */
export function WebhooksPage() {
  const { t, named } = useTexts();
  const { href } = useNavigation();
  const { may } = useMember();
  const list = useData<{ webhooks: z.output<typeof webhook>[] }>(PATH);
  return (
    <Page title={t('page.webhooks')} question={t('webhooks.question')} curl={PATH}>
      <Loaded data={list}>
        {({ webhooks }) =>
          webhooks.length === 0 ? (
            <Empty title={t('webhooks.empty')}>
              <p>{t('webhooks.empty.hint')}</p>
            </Empty>
          ) : (
            <Table
              label={t('page.webhooks')}
              heads={[t('people.name'), t('webhooks.url'), t('webhooks.events'), t('messages.status')]}
            >
              {webhooks.map(({ webhookId, name, url, events, isActive, failingSince }) => (
                <tr key={webhookId}>
                  <th scope="row">
                    <a href={href(`webhooks/${encodeURIComponent(webhookId)}`)}>{name || webhookId}</a>
                  </th>
                  <td>{url}</td>
                  <td>{events.map((event) => named('event', event)).join(', ')}</td>
                  <td>
                    <WebhookStatus of={{ isActive, failingSince }} />
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
      {may('createWebhook') && <Creation />}
    </Page>
  );
}

function Creation() {
  const { t, named } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const [created, setCreated] = useState<Detail | null>(null);
  const create = (form: HTMLFormElement) =>
    run(async () => {
      const { url, name } = filledFields(form);
      const events = new FormData(form).getAll('events');
      setCreated(
        await callApi<Detail>('/web-setup/webhooks', {
          method: 'POST',
          account: accountId,
          body: { url, name, events: events.length === 0 ? ['*'] : events },
        }),
      );
      return '';
    });
  return (
    <>
      <h2>{t('webhooks.add')}</h2>
      <form
        aria-label={t('webhooks.add')}
        onSubmit={(event) => {
          event.preventDefault();
          void create(event.currentTarget);
        }}
      >
        <label class="field">
          {t('webhooks.url')}
          <input class="input" name="url" type="url" required maxLength={2048} placeholder="https://" />
        </label>
        <label class="field">
          {t('people.name')}
          <input class="input" name="name" maxLength={100} />
        </label>
        <fieldset class="group">
          <legend>{t('webhooks.events.choose')}</legend>
          {EVENTS.map((event) => (
            <label key={event} class="check">
              <input class="tick" type="checkbox" name="events" value={event} /> {named('event', event)}
            </label>
          ))}
        </fieldset>
        <div class="actions">
          <button type="submit" class="button primary" disabled={outcome?.running}>
            {t('webhooks.create')}
          </button>
        </div>
      </form>
      <Outcome of={outcome} />
      {created !== null && (
        <NewSecret
          secret={created.secret}
          onStored={() => go(href(`webhooks/${encodeURIComponent(created.webhookId)}`))}
        />
      )}
    </>
  );
}
