import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.ts';
import type { ScenarioContext } from '../context.ts';
import { startEnvironment } from '../environment.ts';
import type { Scenario } from '../scenario.ts';

/** What surrounds the daemon does not do its part: the reader of the log, the writer of its files. */
const DROPPED = 'postrider_log_records_dropped_total';
const DROPPED_TIMEOUT_MS = 60_000;

/** A pipe for the log that nobody reads until `read` is called, which returns what is in it. */
function logPipe(context: ScenarioContext) {
  const file = join(context.dir, 'log');
  execFileSync('mkfifo', [file]);
  const reader = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  context.defer(() => closeSync(reader));
  const buffer = Buffer.alloc(1 << 20);
  return {
    wrap: (command: readonly string[]) => ['sh', '-c', 'exec "$@" > "$0" 2>&1', file, ...command],
    read: () => {
      try {
        return buffer.toString('utf8', 0, readSync(reader, buffer));
      } catch {
        return ''; // Empty: EAGAIN.
      }
    },
  };
}

export const OPERATION: Scenario[] = [
  {
    name: 'log-not-read',
    limitSeconds: 240,
    summary: 'nobody reads standard output and standard error: while running, at SIGTERM, and at the start',
    run: async (context) => {
      const log = logPipe(context);
      const env = await startEnvironment(context, { wrap: log.wrap, config: { log: { level: 'debug' } } });
      const traffic = env.traffic({ perSecond: 200 });
      await env.baseline(traffic);
      const untilDropped = async (since: number) =>
        eventually(
          'log records to be dropped',
          async () => ((await env.daemon.metric(DROPPED)) ?? 0) > since,
          { ms: DROPPED_TIMEOUT_MS, everyMs: 250 },
        );
      await untilDropped(0);
      const status = await env.daemon.probe('/healthz', 5000);
      if (status !== 200) env.fault(`/healthz answered ${status} while the log was not read`);

      let text = '';
      await eventually('the report of the dropped records', () => {
        text += log.read();
        return text.includes('log records dropped');
      });
      await untilDropped((await env.daemon.metric(DROPPED)) ?? 0);
      env.note(`${await env.daemon.metric(DROPPED)} log records dropped`);
      const exit = await env.daemon.terminate();
      if (exit?.code !== 0) env.fault(`SIGTERM while the log was not read: ${JSON.stringify(exit)}`);
      // The pipe is still full.
      await env.daemon.start();
      const reading = setInterval(log.read, 100);
      context.defer(() => clearInterval(reading));
      env.heal();
      return env.result(traffic);
    },
  },
];
