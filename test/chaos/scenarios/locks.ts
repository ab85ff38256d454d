import { join } from 'node:path';
import { startChild } from '../../support/child.ts';
import { pause } from '../context.ts';
import { startEnvironment } from '../environment.ts';
import type { Scenario } from '../scenario.ts';

/** Another process holds the database's write lock: a backup, a shell, a maintenance command. */
const HOLDS = 3;
const HELD_MS = 3000;
const PAUSE_MS = 500;
const PROBE_EVERY_MS = 50;
/** Share of the probes that succeed without the lock. */
const MIN_RATIO = 0.7;

const HOLDER = `
const [file, mode, ms] = process.argv.slice(1);
const db = new (require('better-sqlite3'))(file, { timeout: 10000 });
db.exec('BEGIN ' + mode);
console.log('held');
setTimeout(() => { db.exec('COMMIT'); db.close(); }, Number(ms));`;

export const LOCKS: Scenario[] = [
  {
    name: 'foreign-locks',
    summary: `another process holds the write lock ${HOLDS} times for ${HELD_MS / 1000} s`,
    run: async (context) => {
      const env = await startEnvironment(context);
      const traffic = env.traffic();
      await env.baseline(traffic);
      const file = join(env.daemon.dataDir, 'postrider.db');
      const hold = async (mode: string) => {
        const holder = startChild(process.execPath, ['-e', HOLDER, file, mode, String(HELD_MS)], {
          cwd: new URL('../../..', import.meta.url).pathname,
        });
        context.defer(() => holder.kill('SIGKILL'));
        await new Promise<void>((resolve) => holder.onLine(() => resolve()));
        return holder;
      };
      /** Number of successful health checks, which need no lock, one every 50 ms. */
      const answered = async (ms: number) => {
        let count = 0;
        const until = Date.now() + ms;
        while (Date.now() < until && !context.signal.aborted) {
          const next = pause(PROBE_EVERY_MS);
          if ((await env.daemon.probe('/healthz', ms)) === 200) count++;
          await next;
        }
        return count;
      };

      const quiet = await answered(HELD_MS);
      let locked = 0;
      for (let n = 0; n < HOLDS; n++) {
        const holder = await hold(n % 2 === 0 ? 'IMMEDIATE' : 'EXCLUSIVE');
        locked += (await answered(HELD_MS - 300)) / HOLDS;
        await holder.exited;
        await pause(PAUSE_MS, context.signal);
      }
      env.heal();
      const ratio = (locked / quiet) * (HELD_MS / (HELD_MS - 300));
      env.note(`health checks answered while locked: ${ratio.toFixed(2)} of the usual rate`);
      if (ratio < MIN_RATIO)
        env.fault(`the event loop waits for the lock: only ${ratio.toFixed(2)} of health checks answered`);
      return env.result(traffic);
    },
  },
];
