import { getEventListeners } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { monotonicClock, systemClock } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import type { Check, DoctorParts } from '../../src/doctor/context.ts';
import { firstValues } from '../../src/doctor/daemon-report.ts';
import { failure, ok, unknown } from '../../src/doctor/finding.ts';
import { thisMachine } from '../../src/doctor/machine.ts';
import { limitLookups, type Progress, runChecks } from '../../src/doctor/run.ts';
import { createDoctor } from '../../src/doctor/service.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { temporaryDir } from '../support/store.ts';

async function startDeps(): Promise<DoctorParts> {
  const dns = await startDnsServer();
  const settings = {
    'data.dir': temporaryDir(),
    'dns.resolvers': [dns.address],
    hostname: 'mail.example.net',
  };
  const env = Object.entries(settings).map(([path, value]) => [
    `POSTRIDER_${path.replaceAll('.', '__').toUpperCase()}`,
    JSON.stringify(value),
  ]);
  const config = loadConfig({ file: null, env: Object.fromEntries(env) });
  const resolver = createResolver({ ...config.dns, monotonic: monotonicClock, random: systemRandom });
  onTestFinished(async () => {
    resolver.close();
    await dns.close();
  });
  return {
    config,
    clock: systemClock,
    monotonic: monotonicClock,
    random: systemRandom,
    resolver,
    database: { kind: 'closed', finding: unknown('database', 'Not open.') },
    daemon: () => Promise.resolve({ kind: 'stopped' }),
    machine: thisMachine(null),
  };
}

const OPTIONS = { domain: null, maxDomains: 1, integrityMs: 1000 };

const GOOD: Check = { id: 'good', title: 'Good', group: 'Machine', run: async () => [ok('one', 'Fine.')] };

async function run(checks: readonly Check[], signal = new AbortController().signal) {
  const progress: Progress[] = [];
  const onProgress = (each: Progress) => void progress.push(each);
  const findings = await runChecks(checks, await startDeps(), OPTIONS, { signal, onProgress });
  return { findings, progress };
}

describe('runChecks', () => {
  it('reports the exception of a check as unknown and runs the others', async () => {
    const broken: Check = {
      ...GOOD,
      id: 'broken',
      title: 'Broken',
      run: () => Promise.reject(new Error('the file is gone')),
    };
    const { findings, progress } = await run([broken, GOOD]);
    expect(findings).toEqual([
      {
        check: 'broken',
        subject: 'Broken',
        status: 'unknown',
        reason: 'The check itself failed: the file is gone',
      },
      { check: 'good', subject: 'one', status: 'ok', reason: 'Fine.' },
    ]);
    expect(progress.map(({ done, total }) => [done, total])).toEqual([
      [1, 2],
      [2, 2],
    ]);
  });

  it('reports missing permissions with the user to run as', async () => {
    const denied = Object.assign(new Error('EACCES: permission denied, stat /data'), { code: 'EACCES' });
    const { findings } = await run([{ ...GOOD, run: () => Promise.reject(denied) }]);
    expect(findings).toMatchObject([
      {
        status: 'unknown',
        reason: expect.stringMatching(/^Not permitted: EACCES/),
        fix: expect.stringContaining('as the user of the daemon'),
      },
    ]);
  });

  it('ends a check at its time limit, also if it ignores the signal', async () => {
    const endless: Check = { ...GOOD, id: 'endless', timeoutMs: 50, run: () => new Promise(() => {}) };
    const { findings } = await run([endless, GOOD]);
    expect(findings).toMatchObject([
      { check: 'endless', status: 'unknown', reason: 'The check did not end within 0.05 s.' },
      { check: 'good', status: 'ok' },
    ]);
  });

  it('does not run a check that needs what is missing', async () => {
    const { findings } = await run([
      { ...GOOD, id: 'needs-database', needs: 'database' },
      { ...GOOD, id: 'needs-daemon', needs: 'daemon' },
    ]);
    expect(findings).toMatchObject([
      { check: 'needs-database', status: 'unknown', reason: 'Not checked: the database is not open.' },
      { check: 'needs-daemon', status: 'unknown', reason: expect.stringContaining('daemon is not running') },
    ]);
  });

  it('removes control characters that others wrote', async () => {
    const hostile: Check = {
      ...GOOD,
      run: async () => [failure('a\u001b[2Jb', `x\u0007y\nz${'.'.repeat(5000)}`, 'one\ntwo\u001b[0m')],
    };
    const { findings } = await run([hostile]);
    expect(findings[0]).toMatchObject({ subject: 'a [2Jb', fix: 'one\ntwo [0m' });
    expect(findings[0]?.reason).toMatch(/^x y z\.+$/);
    expect(findings[0]?.reason).toHaveLength(2000);
  });

  it('leaves no listener on the signal of its caller', async () => {
    const { signal } = new AbortController();
    await run([GOOD, { ...GOOD, id: 'other', timeoutMs: 3_600_000 }], signal);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('rejects when it is cancelled, and starts no further check', async () => {
    const cancel = new AbortController();
    const endless: Check = {
      ...GOOD,
      run: () => {
        cancel.abort();
        return new Promise(() => {});
      },
    };
    let started = 0;
    const waiting: Check = {
      ...GOOD,
      run: () => {
        started++;
        return Promise.resolve([]);
      },
    };
    const more = Array.from({ length: 30 }, () => waiting);
    await expect(run([endless, ...more], cancel.signal)).rejects.toThrow(/aborted/);
    expect(started).toBeLessThan(30);
  });
});

describe('limitLookups', () => {
  it('rejects lookups beyond the limit', async () => {
    const { resolver } = await startDeps();
    const limited = limitLookups(resolver, 2, new AbortController().signal);
    for (const name of ['one.test', 'two.test'])
      await expect(limited.a(name)).rejects.toMatchObject({ code: 'ENOTFOUND' });
    await expect(limited.a('three.test')).rejects.toMatchObject({ code: 'ECANCELLED' });
  });
});

describe('createDoctor', () => {
  it('refuses after it was stopped during a run', async () => {
    const doctor = createDoctor(await startDeps());
    const examined = doctor.examine();
    doctor.stop();
    const result = await examined;
    expect(isRefusal(result) && result.code).toBe('UNAVAILABLE');
  });
});

describe('firstValues', () => {
  it('reads values with and without labels', () => {
    const text = '# HELP a b\n# TYPE a gauge\na 1.5\nb{kind="do main"} 2\nb{kind="account"} 3\n';
    expect([...firstValues(text)]).toEqual([
      ['a', 1.5],
      ['b', 2],
    ]);
  });
});
