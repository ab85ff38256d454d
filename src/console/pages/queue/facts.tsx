import type * as z from 'zod';
import type { queueAccountsSchema } from '../../../http/api/queue/queue.ts';
import { useTexts } from '../../texts.ts';

/** Numbers of waiting messages, by state. */
export type QueueNumbers = Omit<z.output<typeof queueAccountsSchema>['accounts'][number], 'accountId'>;

/** A list of names with their values, without those that are empty. */
export function Facts({ facts }: { facts: [string, string][] }) {
  return (
    <dl>
      {facts
        .filter(([, value]) => value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

interface QueueFactsProps {
  of: Pick<QueueNumbers, 'messages' | 'sending' | 'deferred' | 'held' | 'nextAttemptAt'>;
}

/** The waiting messages of a destination or an account. */
export function QueueFacts({ of: { messages, sending, deferred, held, nextAttemptAt } }: QueueFactsProps) {
  const { t, time } = useTexts();
  return (
    <Facts
      facts={[
        [t('system.waiting'), String(messages)],
        [t('system.sending'), String(sending)],
        [t('system.deferred'), String(deferred)],
        [t('system.held'), String(held)],
        [t('messages.next'), time(nextAttemptAt)],
      ]}
    />
  );
}
