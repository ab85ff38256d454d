import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pause, type ScenarioContext } from '../context.ts';
import { startEnvironment } from '../environment.ts';
import { faketimeLibrary } from '../machine.ts';
import type { Scenario } from '../scenario.ts';

/**
 * The system clock jumps while mail is deferred. libfaketime shifts the wall clock of the daemon by an offset in a file;
 * the monotonic clock advances normally, as it does in reality.
 */
async function jump(context: ScenarioContext, offset: string, options: { suspended?: boolean } = {}) {
  const file = join(context.dir, 'clock-offset');
  writeFileSync(file, '+0\n');
  const env = await startEnvironment(context, {
    env: {
      LD_PRELOAD: faketimeLibrary() ?? '',
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  });
  const deferring = await env.destination(['later.example'], {
    script: { rcpt: '451 4.3.0 try again later' },
  });
  const traffic = env.traffic({ perSecond: 40 });
  const deferred = env.traffic({ perSecond: 20, domains: ['later.example'] });
  await env.baseline(traffic, 3);
  // A suspended virtual machine: the clock is another one when it continues.
  if (options.suspended === true) {
    process.kill(env.daemon.pid, 'SIGSTOP');
    context.defer(() => {
      if (env.daemon.running) process.kill(env.daemon.pid, 'SIGCONT');
    });
    await pause(2000, context.signal);
  }
  writeFileSync(file, `${offset}\n`);
  if (options.suspended === true) process.kill(env.daemon.pid, 'SIGCONT');
  await pause(3000, context.signal);
  deferring.program({ script: {} });
  env.heal();
  return env.result([traffic, deferred]);
}

export const CLOCK: Scenario[] = [
  {
    name: 'clock-back',
    summary: 'the clock is set back by 6 hours while messages are deferred',
    short: true,
    needs: ['faketime'],
    run: (context) => jump(context, '-6h'),
  },
  {
    name: 'clock-forward',
    summary: 'the clock is set forward by 6 hours while messages are deferred',
    needs: ['faketime'],
    run: (context) => jump(context, '+6h'),
  },
  {
    name: 'clock-back-2h',
    summary: 'the clock is set back by 2 hours while messages are deferred',
    needs: ['faketime'],
    run: (context) => jump(context, '-2h'),
  },
  {
    name: 'clock-days',
    summary: 'the clock is set forward by more than the lifetime of the messages that are deferred',
    short: true,
    needs: ['faketime'],
    run: (context) => jump(context, '+3d'),
  },
  {
    name: 'clock-suspended',
    summary: 'the daemon is stopped for two seconds, and the clock is three days ahead when it continues',
    needs: ['faketime'],
    run: (context) => jump(context, '+3d', { suspended: true }),
  },
];
