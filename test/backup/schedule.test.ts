import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { listBackups } from '../../src/backup/folder.ts';
import { createBackupSchedule } from '../../src/backup/schedule.ts';
import type { Clock } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { heldClock } from '../support/store.ts';
import { startInstallation } from './setup.ts';

type Installation = Awaited<ReturnType<typeof startInstallation>>;

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

function start(installation: Installation, dir: string, monotonic: Clock = installation.clock) {
  const { config, clock, tables, writer } = installation;
  const registry = new Registry();
  const backups = createBackupSchedule(
    {
      config: { ...config, backup: { ...config.backup, dir, keep: 1 } },
      clock,
      monotonic,
      log: createLog({ level: 'silent', hashAddresses: true }),
      tables,
      writer,
      registry,
    },
    { schedule: '30 3 * * *', instanceId: 'one' },
  );
  onTestFinished(backups.stop);
  backups.start();
  return { ...backups, metric: async () => (await registry.metrics()).match(/^postrider_backup.*$/gm) };
}

describe('the schedule of backups', () => {
  it('waits for its first time, and catches up a run that was missed while the daemon was stopped', async () => {
    const installation = await startInstallation();
    await installation.writer.run((tx) => tx.settings.put('instance-id', 'one'));
    // The schedule computes its times with the system clock.
    installation.clock.advance(Date.now() - installation.clock.now());
    const first = start(installation, installation.backups);
    const { nextAt } = first.status();
    expect(Date.parse(nextAt)).toBeGreaterThan(installation.clock.now());
    expect(first.status()).toMatchObject({ lastSuccessAt: null, error: null, isRunning: false });
    await first.stop();
    expect(await listBackups(installation.backups)).toEqual([]);

    await installation.writer.run((tx) =>
      tx.settings.put(
        'backup-schedule',
        JSON.stringify({
          schedule: '30 3 * * *',
          nextAt: Date.now() - 2 * DAY,
          lastSuccessAt: null,
          error: null,
        }),
      ),
    );
    const second = start(installation, installation.backups);
    await expect.poll(() => second.status().lastSuccessAt).not.toBeNull();
    expect(Date.parse(second.status().nextAt)).toBeGreaterThan(installation.clock.now());
    expect(await listBackups(installation.backups)).toHaveLength(1);
    expect(await second.metric()).toContainEqual('postrider_backups_total{outcome="succeeded"} 1');
  });

  it('computes the next time again when it is changed, and reports the last success', async () => {
    const installation = await startInstallation();
    await installation.writer.run((tx) =>
      tx.settings.put(
        'backup-schedule',
        JSON.stringify({ schedule: '0 1 * * *', nextAt: 0, lastSuccessAt: 5000, error: null }),
      ),
    );
    const { status } = start(installation, installation.backups);
    expect(status().lastSuccessAt).toBe('1970-01-01T00:00:05.000Z');
    expect(Date.parse(status().nextAt)).toBeGreaterThan(Date.now());
  });

  it('reports a failure, also after a restart, and the run remains due', async () => {
    const installation = await startInstallation();
    const blocked = join(installation.backups, 'file');
    writeFileSync(blocked, '');
    await installation.writer.run((tx) =>
      tx.settings.put(
        'backup-schedule',
        JSON.stringify({ schedule: '30 3 * * *', nextAt: 0, lastSuccessAt: 5000, error: null }),
      ),
    );
    const schedule = start(installation, join(blocked, 'backups'));
    await expect.poll(() => schedule.status().error).toContain('ENOTDIR');
    expect(schedule.status()).toMatchObject({ lastSuccessAt: '1970-01-01T00:00:05.000Z', isRunning: false });
    expect(schedule.status().nextAt).toBe('1970-01-01T00:00:00.000Z');
    expect(await schedule.metric()).toEqual(
      expect.arrayContaining([
        'postrider_backups_total{outcome="failed"} 1',
        'postrider_backup_last_success_timestamp_seconds 5',
        'postrider_backup_next_timestamp_seconds 0',
      ]),
    );
    await schedule.stop();
    expect(start(installation, join(blocked, 'backups')).status().error).toContain('ENOTDIR');
  });

  it('is overdue once retries have failed for an hour, and no longer after a backup', async () => {
    const installation = await startInstallation();
    const { clock, writer } = installation;
    // The schedule computes its times with the system clock.
    clock.advance(Date.now() - clock.now());
    const blocked = join(installation.backups, 'file');
    writeFileSync(blocked, '');
    const dueAt = clock.now();
    const stored = { schedule: '30 3 * * *', nextAt: dueAt, lastSuccessAt: null, error: null };
    await writer.run((tx) => tx.settings.put('backup-schedule', JSON.stringify(stored)));
    const failing = start(installation, join(blocked, 'backups'));
    await expect.poll(() => failing.status().error).toContain('ENOTDIR');
    expect(failing.overdue()).toBeNull();
    clock.advance(HOUR + 1);
    expect(failing.overdue()).toBe(`the backup that was due at ${new Date(dueAt).toISOString()} has failed`);
    await failing.stop();

    // The first run after a start may succeed: nothing is reported before it has failed.
    const working = start(installation, installation.backups);
    expect(working.overdue()).toBeNull();
    await expect.poll(() => working.status().lastSuccessAt).not.toBeNull();
    expect(working.overdue()).toBeNull();
  });

  it('is overdue when a run does not end within a day', async () => {
    const installation = await startInstallation();
    const { clock, writer } = installation;
    clock.advance(Date.now() - clock.now());
    const stored = { schedule: '30 3 * * *', nextAt: clock.now(), lastSuccessAt: null, error: null };
    await writer.run((tx) => tx.settings.put('backup-schedule', JSON.stringify(stored)));
    const monotonic = heldClock(0);
    const backups = start(installation, installation.backups, monotonic);
    expect(backups.status().isRunning).toBe(true);
    monotonic.advance(DAY + 1);
    expect(backups.overdue()).toMatch(/has not ended within a day$/);
    await expect.poll(() => backups.status().isRunning).toBe(false);
    expect(backups.overdue()).toBeNull();
  });
});
