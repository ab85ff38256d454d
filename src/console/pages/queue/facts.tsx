import type { DataOf } from '../../operations.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { useTexts } from '../../texts.ts';

/** Numbers of waiting messages, by state. */
export type QueueNumbers = Omit<DataOf<'/web-setup/queue/accounts'>['accounts'][number], 'accountId'>;

interface QueueFactsProps {
  of: Pick<QueueNumbers, 'messages' | 'sending' | 'deferred' | 'held' | 'nextAttemptAt'>;
}

/** The waiting messages of a destination or an account. */
export function QueueFacts({ of: { messages, sending, deferred, held, nextAttemptAt } }: QueueFactsProps) {
  const { t, time, number } = useTexts();
  return (
    <FactList
      facts={[
        [t('system.waiting'), number(messages)],
        [t('system.sending'), number(sending)],
        [t('system.deferred'), number(deferred)],
        [t('system.held'), number(held)],
        [t('messages.next'), time(nextAttemptAt)],
      ]}
    />
  );
}
