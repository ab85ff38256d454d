import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { QueueKey } from '../../store/messages/queue.ts';
import type { Tables } from '../../store/tables.ts';
import type { Deliveries } from '../deliver.ts';
import { createQueueReader, type QueueReader, type QueueReaderDeps } from './queue-reader.ts';
import { createQueueScan, type QueueScan } from './queue-scan.ts';
import { createRecentMessages, type RecentMessages } from './recent-messages.ts';
import { createScheduler, type Scheduler, type SchedulerDeps } from './scheduler.ts';
import { createTargets, type Targets, type TargetsDeps } from './targets.ts';

/** The parts that decide which message is sent next, wired with each other. */
export interface Scheduling {
  targets: Targets;
  reader: QueueReader;
  recent: RecentMessages;
  scheduler: Scheduler;
  scan: QueueScan;
}

export interface SchedulingDeps
  extends Pick<TargetsDeps, 'sites' | 'routes' | 'egress' | 'paths' | 'controls'>,
    Pick<QueueReaderDeps, 'claims' | 'waits'>,
    Pick<SchedulerDeps, 'shares' | 'mayStart' | 'defer' | 'after'> {
  clock: Clock;
  /** For durations: setting the system clock does not change it. */
  monotonic: Clock;
  expiry: QueueReaderDeps['expiry'];
  log: Log;
  tables: Tables;
  writer: Writer;
  pools: TargetsDeps['pools'] & QueueReaderDeps['pools'];
  recording: QueueReaderDeps['recording'] & SchedulerDeps['recording'];
  deliveries: QueueReaderDeps['deliveries'] & Pick<Deliveries, 'deliver'>;
}

/**
 * Starts nothing: the owner calls `scheduler.start` and runs `scan` in a loop. A key that the reader can read again is
 * requested from the scheduler.
 */
export function createScheduling(deps: SchedulingDeps): Scheduling {
  const { controls } = deps;
  const targets = createTargets(deps);
  const recent = createRecentMessages(deps.monotonic);
  const reader = createQueueReader({ ...deps, recent, targets, onReadable: (key) => scheduler.request(key) });
  const scheduler: Scheduler = createScheduler({
    ...deps,
    reader,
    deliver: deps.deliveries.deliver,
    isPaused: (key: QueueKey) => controls.ofKey(key)?.action === 'pause',
  });
  const scan = createQueueScan({ ...deps, recent, reader, scheduler });
  return { targets, reader, recent, scheduler, scan };
}
