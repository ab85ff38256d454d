import { useState } from 'preact/hooks';
import { AccountOptions } from '../../parts/account-options.tsx';
import { fieldText } from '../../parts/field-text.ts';
import { TaskProgress } from '../../parts/long-task.tsx';
import { Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { countOf, type QueueOrder, useQueueTask } from './change-task.ts';

interface PurgeProps {
  /** Only messages to this destination. */
  destination?: string;
  /** Only messages of this account. */
  account?: string;
  onChange: () => void;
}

/** Cancels waiting messages, after it has counted them. */
export function Purge({ destination, account, onChange }: PurgeProps) {
  const { t } = useTexts();
  const { person } = useMember();
  const [counted, setCounted] = useState<{ order: QueueOrder; matched: number } | null>(null);
  const { outcome, run } = useAction();
  const task = useQueueTask('purge', onChange);
  const isBusy = outcome?.running === true || (task.state !== null && task.status !== 'finished');
  const count = (form: FormData) =>
    run(async () => {
      setCounted(null);
      const text = (name: string) => fieldText(form, name);
      const name = destination ?? text('destination');
      const accountId = account ?? text('accountId');
      const order: QueueOrder = {
        change: 'purge',
        filter: { ...(name === '' ? {} : { destination: name }), ...(accountId === '' ? {} : { accountId }) },
        reason: text('reason'),
      };
      const matched = await countOf(order);
      setCounted(matched === 0 ? null : { order, matched });
      return t('queue.purge.counted', { count: matched });
    });
  const purge = (order: QueueOrder, total: number) => {
    setCounted(null);
    const { destination: to, accountId } = order.filter;
    const target = [to, accountId].filter((name) => name !== undefined).join(', ');
    task.start({ title: t('queue.purge.of', { target }), work: { order, after: 0 }, total });
  };
  const { done = 0, skipped = 0 } = task.state ?? {};
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
          <label class="field">
            {t('system.destination')}
            <input
              class="input"
              name="destination"
              maxLength={300}
              autocapitalize="none"
              spellcheck={false}
            />
          </label>
        )}
        {account === undefined && (
          <label class="field">
            {t('app.account')}
            <select class="select" name="accountId">
              <option value="">{t('messages.any')}</option>
              <AccountOptions of={person} />
            </select>
          </label>
        )}
        <label class="field">
          {t('queue.reason')}
          <input class="input" name="reason" required maxLength={200} />
        </label>
        <div class="actions">
          <button class="button" type="submit" disabled={isBusy}>
            {t('queue.purge.count')}
          </button>
        </div>
      </form>
      <Outcome of={outcome} />
      {counted !== null && (
        <button
          type="button"
          class="button primary"
          disabled={isBusy}
          onClick={() => purge(counted.order, counted.matched)}
        >
          {t('queue.purge.now', { count: counted.matched })}
        </button>
      )}
      <TaskProgress task={task} result={t('queue.purge.done', { count: done - skipped })} />
    </>
  );
}
