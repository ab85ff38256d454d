import { createHeldExpiry } from '../backup/held.ts';
import { createBackupSchedule } from '../backup/schedule.ts';
import { gaugesOf } from '../core/metrics.ts';
import type { Recorder } from '../events/record.ts';
import type { DaemonBase } from './storage.ts';

export type DaemonBackups = ReturnType<typeof createBackups>;

/**
 * Creates the schedule of backups, null if none are scheduled, and the expiry of what a restore holds, with its metrics. Starts
 * neither.
 */
export function createBackups(base: DaemonBase, recorder: Recorder) {
  const { config, registry } = base;
  const held = createHeldExpiry(base, recorder);
  const gauge = gaugesOf(registry);
  gauge(
    'postrider_restore_held_messages',
    'Messages held since a restore, counted up to 100,000.',
    () => held.counts().messages,
  );
  gauge(
    'postrider_restore_held_webhook_deliveries',
    'Webhook deliveries held since a restore, counted up to 100,000.',
    () => held.counts().webhookDeliveries,
  );
  const schedule =
    config.backup.schedule === undefined
      ? null
      : createBackupSchedule(base, {
          schedule: config.backup.schedule,
          instanceId: base.instanceId,
        });
  return { held, schedule };
}
