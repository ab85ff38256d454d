import { addSeries, gaugesOf } from '../../core/metrics.ts';
import type { Context } from '../context.ts';
import { ReadRejected } from '../database/failure.ts';
import type { QueueKey } from '../messages/queue.ts';
import { NO_ACCOUNT, type Reader } from '../readers/reads.ts';
import type { BacklogFigures } from './backlog.ts';

interface BacklogOptions {
  /** Keys of the queue whose mail waits for the schedule of a warm-up and is therefore not late. Default: none. */
  onSchedule?(): readonly QueueKey[];
  /** Monotonic milliseconds. Default: the process's. */
  now?(): number;
}

/** Scrapes within this time after a read reuse its result. */
const MIN_AGE_MS = 5000;
/** Length of the pause after a read relative to the read: reads of a large queue use at most 5 % of a thread. */
const PAUSE_FACTOR = 20;
const EMPTY: BacklogFigures = {
  queue: { ready: 0, sending: 0, waiting: 0, held: 0, oldestDue: null, destinations: [] },
  webhooks: { ready: 0, waiting: 0, oldest: null },
  certificates: [],
  limits: { notice: 0, slow: 0, pause: 0 },
  stoppedCampaigns: 0,
};

/**
 * Registers the gauges of the backlog. All use one read in a reader thread. While reads are rejected, the gauges do not
 * change, and `postrider_backlog_age_seconds` rises.
 */
export function registerBacklogMetrics(
  { registry, reader, clock }: Pick<Context, 'registry' | 'reader' | 'clock'>,
  options: BacklogOptions = {},
): void {
  const latest = createLatest(reader, options);
  const gauge = gaugesOf(registry);
  const ageOf = (at: number | null) => (at === null ? 0 : Math.max(0, clock.now() - at) / 1000);

  labeled(
    'postrider_queue_state_messages',
    'Queued messages by state; waiting: deferred or scheduled; held: until their campaign, account or domain may send, or a restore is resolved.',
    'state',
    ({ queue }) => [
      ['ready', queue.ready],
      ['sending', queue.sending],
      ['waiting', queue.waiting],
      ['held', queue.held],
    ],
  );
  gauge(
    'postrider_queue_oldest_due_seconds',
    'Age of the message that has been due longest, is not being sent and does not wait for the quota of a warm-up; 0: there is none.',
    async () => ageOf((await latest.get()).queue.oldestDue),
  );
  labeled(
    'postrider_queue_destination_messages',
    'Queued messages of the 20 destinations with the most; estimated from a sample of queues with more than 100,000 messages.',
    'destination',
    ({ queue }) => queue.destinations.map(({ destination, messages }) => [destination, messages]),
  );
  labeled(
    'postrider_queue_destination_oldest_due_seconds',
    'Age of the message that has been due longest, of the 20 destinations with the most messages.',
    'destination',
    ({ queue }) => queue.destinations.map(({ destination, oldestDue }) => [destination, ageOf(oldestDue)]),
  );
  labeled(
    'postrider_webhook_backlog_calls',
    'Webhook calls of active webhooks that are not done: ready (due now), waiting (retried later).',
    'state',
    ({ webhooks }) => [
      ['ready', webhooks.ready],
      ['waiting', webhooks.waiting],
    ],
  );
  gauge(
    'postrider_webhook_oldest_call_seconds',
    'Age of the oldest event that an active webhook has not received; 0: there is none.',
    async () => ageOf((await latest.get()).webhooks.oldest),
  );
  labeled(
    'postrider_certificate_expiry_timestamp_seconds',
    'Expiry of the certificates of public pages: the 20 that expire first.',
    'host',
    ({ certificates }) => certificates.map(({ host, expiresAt }) => [host, expiresAt / 1000]),
  );
  labeled(
    'postrider_sending_limits',
    'Automatic limits in force by level: notice (mail is sent as usual), slow, pause.',
    'level',
    ({ limits }) => Object.entries(limits),
  );
  gauge(
    'postrider_campaigns_stopped',
    'Campaigns that were stopped automatically and wait for a person.',
    async () => (await latest.get()).stoppedCampaigns,
  );
  gauge(
    'postrider_backlog_age_seconds',
    'Age of the read from which the metrics of the backlog are derived.',
    async () => {
      await latest.get();
      return latest.ageMs() / 1000;
    },
  );

  /** Registers a gauge with one label, whose values each read determines. */
  function labeled(
    name: string,
    help: string,
    label: string,
    values: (backlog: BacklogFigures) => [string, number][],
  ): void {
    addSeries(registry, [name, help], [label], async () =>
      values(await latest.get()).map(([value, number]) => [{ [label]: value }, number]),
    );
  }
}

/** The result of the latest read; a use after MIN_AGE_MS and the pause reads again. */
function createLatest(
  reader: Reader,
  { onSchedule = () => [], now = () => performance.now() }: BacklogOptions,
) {
  let backlog = EMPTY;
  const startedAt = now();
  let readAt: number | null = null;
  let nextAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | null = null;

  async function read(): Promise<void> {
    const began = now();
    try {
      backlog = await reader.table(NO_ACCOUNT, 'backlog', 'read', onSchedule());
      readAt = now();
    } catch (error) {
      // The other metrics are needed most when reads are slow; the age shows that these are old.
      if (!(error instanceof ReadRejected)) throw error;
    } finally {
      nextAt = now() + Math.max(MIN_AGE_MS, PAUSE_FACTOR * (now() - began));
      reading = null;
    }
  }

  return {
    get: async (): Promise<BacklogFigures> => {
      if (reading === null && now() >= nextAt) reading = read();
      await reading;
      return backlog;
    },
    /** Age of the result; since the start, if no read has succeeded. */
    ageMs: (): number => now() - (readAt ?? startedAt),
  };
}
