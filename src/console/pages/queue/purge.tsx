import { useState } from 'preact/hooks';
import type * as z from 'zod';
import type { bulkSchema } from '../../../http/api/queue/queue-schemas.ts';
import { request } from '../../api.ts';
import { fieldText } from '../../parts/field-text.ts';
import { Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

type Bulk = z.output<typeof bulkSchema>;

interface Order {
  filter: { destination?: string; accountId?: string };
  reason: string;
}

const PATH = '/console/api/web-setup/queue/purge';

/** Cancels waiting messages, after it has counted them. `destination`: only those to it. */
export function Purge({ destination, onChange }: { destination?: string; onChange: () => void }) {
  const { t } = useTexts();
  const { person } = useMember();
  const [counted, setCounted] = useState<{ order: Order; matched: number } | null>(null);
  const { outcome, run } = useAction();
  const count = (form: FormData) =>
    run(async () => {
      setCounted(null);
      const text = (name: string) => fieldText(form, name);
      const name = destination ?? text('destination');
      const accountId = text('accountId');
      const order = {
        filter: { ...(name === '' ? {} : { destination: name }), ...(accountId === '' ? {} : { accountId }) },
        reason: text('reason'),
      };
      let matched = 0;
      for await (const part of parts({ ...order, dryRun: true })) matched += part.matched;
      setCounted(matched === 0 ? null : { order, matched });
      return t('queue.purge.counted', { count: matched });
    });
  const purge = (order: Order) =>
    run(async () => {
      setCounted(null);
      let changed = 0;
      for await (const part of parts(order)) changed += part.changed;
      onChange();
      return t('queue.purge.done', { count: changed });
    });
  return (
    <>
      <form
        class="search"
        aria-label={t('queue.purge')}
        onInput={() => setCounted(null)}
        onSubmit={(event) => {
          event.preventDefault();
          void count(new FormData(event.currentTarget));
        }}
      >
        {destination === undefined && (
          <label>
            {t('system.destination')}
            <input name="destination" maxLength={300} autocapitalize="none" spellcheck={false} />
          </label>
        )}
        <label>
          {t('app.account')}
          <select name="accountId">
            <option value="">{t('messages.any')}</option>
            {person.memberships.map(({ accountId, accountName }) => (
              <option value={accountId} key={accountId}>
                {accountName}
              </option>
            ))}
          </select>
        </label>
        <label>
          {t('queue.reason')}
          <input name="reason" required maxLength={200} />
        </label>
        <div class="actions">
          <button type="submit" disabled={outcome?.running}>
            {t('queue.purge.count')}
          </button>
        </div>
      </form>
      <Outcome of={outcome} />
      {counted !== null && (
        <button type="button" class="primary" onClick={() => void purge(counted.order)}>
          {t('queue.purge.now', { count: counted.matched })}
        </button>
      )}
    </>
  );
}

/** The responses to an order: each continues where the one before it ended. */
async function* parts(order: Order & { dryRun?: boolean }): AsyncGenerator<Bulk> {
  let after: number | null = 0;
  while (after !== null) {
    const part: Bulk = await request<Bulk>(PATH, { method: 'POST', body: { ...order, after } });
    yield part;
    after = part.next;
  }
}
