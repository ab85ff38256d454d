import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { monotonicClock, systemClock } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/ids.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createProgressMeter, migrateAtStart } from '../../src/http/startup.ts';
import { openConnection } from '../../src/store/database/connection.ts';
import { schemaOf } from '../../src/store/migrate/migrate.ts';
import { knownMigrations, newestOf } from '../../src/store/migrate/migrations.ts';
import { freePort } from '../support/free-port.ts';
import { createOldDatabase, OLD_SCHEMA } from '../support/old-database.ts';
import { temporaryDir } from '../support/store.ts';

async function start({ signal, large = true }: { signal?: AbortSignal; large?: boolean } = {}) {
  const dataDir = temporaryDir();
  const file = createOldDatabase(dataDir, { large });
  const port = await freePort();
  const lines: Record<string, unknown>[] = [];
  // The migration waits for a connection of another process.
  const other = openConnection(file, {});
  other.exec('SELECT count(*) FROM accounts');
  const context = {
    config: loadConfig({
      env: { POSTRIDER_DATA__DIR: dataDir, POSTRIDER_API__LISTEN: `127.0.0.1:${port}` },
    }),
    ids: createIds(systemClock, systemRandom),
    log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }),
    monotonic: monotonicClock,
  };
  const migrated = migrateAtStart(context, signal);
  return { file, lines, migrated, release: () => other.close(), url: `http://127.0.0.1:${port}` };
}

describe('a large migration at the start of the daemon', () => {
  it('responds to health checks, and logs estimate and result', async () => {
    const { file, lines, migrated, release, url } = await start();
    const [alive, ready, send] = await Promise.all([
      fetch(`${url}/healthz`),
      fetch(`${url}/readyz`),
      fetch(`${url}/email/send`, { method: 'POST', body: '{}' }),
    ]);
    expect([alive.status, ready.status, send.status]).toEqual([200, 503, 503]);
    expect(await ready.json()).toMatchObject({
      success: false,
      data: {
        checks: [{ check: 'database', ok: false, message: expect.stringContaining('being migrated') }],
      },
    });
    expect(send.headers.get('Retry-After')).toBe('30');
    expect(await send.json()).toMatchObject({ error: { code: 'UNAVAILABLE' } });
    release();
    await migrated;
    expect(schemaOf(file)).toBe(newestOf(knownMigrations()));
    expect(lines.map(({ msg }) => msg)).toEqual(
      expect.arrayContaining(['migrating the database', 'migration estimated', 'database migrated']),
    );
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  });

  it('ends at a signal', async () => {
    const stop = new AbortController();
    const { file, migrated, release } = await start({ signal: stop.signal });
    stop.abort();
    release();
    await expect(migrated).rejects.toMatchObject({ name: 'AbortError' });
    expect(schemaOf(file)).toBe(OLD_SCHEMA);
  });

  it('does not run for small databases', async () => {
    const { file, migrated, release } = await start({ large: false });
    release();
    await migrated;
    expect(schemaOf(file)).toBe(OLD_SCHEMA);
  });
});

describe('the progress of a migration', () => {
  it('has rate and remaining time of the current step', () => {
    let now = 0;
    const meter = createProgressMeter({ now: () => now });
    expect(meter.describe()).toBe('estimate');
    now = 5000;
    meter.update({ step: 'copy', item: 'messages', done: 100, total: 1100 });
    now = 7000;
    meter.update({ step: 'copy', item: 'events', done: 600, total: 1100 });
    expect(meter.describe()).toBe('copy events, 54 %');
    expect(meter.fields()).toEqual({
      step: 'copy',
      item: 'events',
      done: 600,
      total: 1100,
      percent: 54,
      seconds: 7,
      perSecond: 250,
      secondsLeft: 2,
    });
  });
});
