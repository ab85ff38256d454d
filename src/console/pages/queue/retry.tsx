import { Icon } from '../../parts/icon/icon.tsx';
import { type LongTask, TaskProgress } from '../../parts/long-task.tsx';
import { Outcome, useAction } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import { countOf, type QueueOrder, type QueueWork, useQueueTask } from './change-task.ts';

/** Retries of the deferred messages of a destination or an account. */
export interface Retries {
  task: LongTask<QueueWork>;
  outcome: ReturnType<typeof useAction>['outcome'];
  /** Counts the messages of `target`, then retries them. */
  start(target: string, filter: QueueOrder['filter']): void;
}

/**
 * One task at a time, in the state of the component. `start` counts first and starts no task for 0 messages; `onEnd` is
 * called when the task has ended.
 */
export function useRetries(onEnd: () => void): Retries {
  const { t } = useTexts();
  const task = useQueueTask('retry', onEnd);
  const { outcome, run } = useAction();
  const start = (target: string, filter: QueueOrder['filter']) =>
    run(async () => {
      const order: QueueOrder = { change: 'retry', filter };
      const total = await countOf(order);
      if (total === 0) return t('queue.retry.none', { target });
      task.start({ title: t('queue.retry.of', { target }), work: { order, after: 0 }, total });
      return '';
    });
  return { task, outcome, start: (target, filter) => void start(target, filter) };
}

/** The progress of the retries. */
export function RetryProgress({ retries: { task, outcome } }: { retries: Retries }) {
  const { t } = useTexts();
  const { done = 0, skipped = 0 } = task.state ?? {};
  return (
    <>
      {(outcome?.failed === true || outcome?.text) && <Outcome of={outcome} />}
      <TaskProgress task={task} result={t('queue.retry.done', { count: done - skipped })} />
    </>
  );
}

/** A button that retries the deferred messages of `target`. */
export function RetryButton(props: { retries: Retries; target: string; filter: QueueOrder['filter'] }) {
  const { t } = useTexts();
  const { retries, target, filter } = props;
  const isBusy =
    retries.outcome?.running === true || (retries.task.state !== null && retries.task.status !== 'finished');
  return (
    <button
      class="button ghost icon-only"
      type="button"
      aria-label={t('queue.retry.of', { target })}
      title={t('queue.retry')}
      disabled={isBusy}
      onClick={() => retries.start(target, filter)}
    >
      <Icon name="rotate-cw" />
    </button>
  );
}
