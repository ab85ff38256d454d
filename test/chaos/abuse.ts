import { startChild } from '../support/child.ts';
import { eventually } from '../support/eventually.ts';
import type { AbuseJob } from './abuse-process.ts';
import type { ScenarioContext } from './context.ts';

/** abuse-process.ts at the lowest priority, so that its work does not slow the daemon down. */
export interface Abuse {
  /** Number of its actions and of the responses: `{ requests: 120, 503: 80 }`. */
  readonly counts: Record<string, number>;
  stop(): Promise<void>;
}

const PROGRAM = new URL('abuse-process.ts', import.meta.url).pathname;

/** Resolves when it has begun. */
export async function startAbuse(context: ScenarioContext, job: AbuseJob): Promise<Abuse> {
  const args = ['-n', '19', process.execPath, '--import', 'tsx', PROGRAM, JSON.stringify(job)];
  const child = startChild('nice', args);
  context.defer(() => child.kill('SIGKILL'));
  let counts: Record<string, number> = {};
  child.onLine((line) => {
    if (line.startsWith('{')) counts = JSON.parse(line);
  });
  const abuse: Abuse = {
    get counts() {
      return counts;
    },
    stop: async () => void (await child.kill('SIGKILL')),
  };
  await eventually(`the abuse ${job.kind} to begin`, () => {
    if (!child.running) throw new Error(`the abuse ${job.kind} ended: ${child.output.slice(-1500)}`);
    return Object.keys(counts).length > 0;
  });
  return abuse;
}
