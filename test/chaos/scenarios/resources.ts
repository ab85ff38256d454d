import { readdirSync, readFileSync } from 'node:fs';
import { pause } from '../context.ts';
import { startEnvironment } from '../environment.ts';
import { run } from '../machine.ts';
import type { Scenario } from '../scenario.ts';

/** The process has fewer file descriptors or less memory than it needs. */
const SPARE_FILES = 6;
const FEW_FILES_MS = 8000;
const HEAP_MB = 256;
const STALLED_HOSTS = 20;
const CONNECTIONS = 10;
/** Size of a message's attachment. */
const LARGE_BYTES = 2_000_000;

export const RESOURCES: Scenario[] = [
  {
    name: 'few-files',
    limitSeconds: 150,
    summary: `only ${SPARE_FILES} more file descriptors while 12 destinations need connections`,
    run: async (context) => {
      const env = await startEnvironment(context);
      const domains = Array.from({ length: 12 }, (_, n) => `files${n}.example`);
      const slow = await env.destination(domains, {
        script: { dot: { reply: '250 2.0.0 taken', delayMs: 300 } },
      });
      const traffic = env.traffic({ perSecond: 40 });
      await env.baseline(traffic);
      const { pid } = env.daemon;
      const limit = (files: number) => run('prlimit', '--pid', String(pid), `--nofile=${files}:`);
      limit(readdirSync(`/proc/${pid}/fd`).length + SPARE_FILES);
      const hungry = env.traffic({ perSecond: 100, domains });
      await pause(FEW_FILES_MS, context.signal);
      slow.program({ script: {} });
      limit(4096);
      env.heal();
      // A lookup that failed without a socket is cached for a minute.
      return env.result([traffic, hungry], { withinSeconds: 80 });
    },
  },
  {
    name: 'small-heap',
    summary: `${STALLED_HOSTS} stalled hosts, each with ${CONNECTIONS + 2} messages of ${LARGE_BYTES / 1e6} MB, in a heap of ${HEAP_MB} MB`,
    run: async (context) => {
      const env = await startEnvironment(context, { nodeArgs: [`--max-old-space-size=${HEAP_MB}`] });
      const domains = Array.from({ length: STALLED_HOSTS }, (_, n) => `stalled${n}.example`);
      const stalled = await env.destination(domains, { script: { dot: 'silent' } });
      const traffic = env.traffic({ perSecond: 20 });
      await env.baseline(traffic);
      const content = Buffer.alloc(LARGE_BYTES, 'attachment ').toString('base64');
      const large = env.traffic({
        perSecond: 15,
        domains,
        count: STALLED_HOSTS * (CONNECTIONS + 2),
        body: { attachments: [{ name: 'large.bin', contentType: 'application/octet-stream', content }] },
      });
      await pause(18_000, context.signal);
      const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${env.daemon.pid}/status`, 'utf8'))?.[1];
      env.note(`${large.refusals.size === 0 ? 'all accepted' : 'some refused'}; peak ${peak} KiB`);
      stalled.program({ script: {} });
      stalled.disconnect();
      env.heal();
      return env.result([traffic, large]);
    },
  },
];
