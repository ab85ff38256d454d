import { setTimeout as sleep } from 'node:timers/promises';
import { startCompanion } from './benchmark-process.ts';
import type { SinkCounts, SinkQuestion } from './sink.ts';

/** The receiving side as the benchmark sees it: one sink process behind the addresses of several MX hosts. */
export interface Receiver {
  /** Addresses of the MX hosts. */
  hosts: string[];
  /** The port of all of them. */
  port: number;
  pid: number;
  counts(): Promise<SinkCounts>;
  /** Epoch ms at which mail to recipients that begin with `timed` was taken. */
  arrivals(): Promise<Map<string, number>>;
  /** Forgets what came so far. */
  reset(): Promise<void>;
  /** Waits until so many messages came, `look` is called with every count; gives up when none come any more. */
  waitFor(messages: number, look?: (counts: SinkCounts) => void): Promise<SinkCounts>;
  stop(): Promise<void>;
}

const LOOK_EVERY_MS = 10;
/** As long as nothing comes, for a message that is missing; and how long a second copy of one may take. */
const PATIENCE_MS = 15_000;
const AFTERWARDS_MS = 500;

export async function startReceiver(hosts: string[]): Promise<Receiver> {
  const program = new URL('sink.ts', import.meta.url);
  const sink = startCompanion<SinkQuestion, SinkCounts>(
    program,
    hosts.flatMap((host) => ['--host', host]),
  );
  const counts = () => sink.ask({});
  const { port } = await counts();
  return {
    hosts,
    port,
    pid: sink.pid,
    counts,
    arrivals: async () => new Map((await sink.ask({ arrivals: true })).arrivals),
    reset: async () => void (await sink.ask({ reset: true })),
    waitFor: async (messages, look = () => {}) => {
      let last = { messages: -1, at: Date.now() };
      for (;;) {
        const now = await counts();
        look(now);
        if (now.messages > last.messages) last = { messages: now.messages, at: Date.now() };
        if (now.messages >= messages || Date.now() - last.at > PATIENCE_MS) break;
        await sleep(LOOK_EVERY_MS);
      }
      await sleep(AFTERWARDS_MS);
      return counts();
    },
    stop: () => sink.stop(),
  };
}
