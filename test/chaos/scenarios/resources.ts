import { readdirSync, readFileSync } from 'node:fs';
import { run } from '../machine.ts';
import type { Scenario } from '../scenario.ts';
import { pause } from '../stage.ts';
import { startWorld } from '../world.ts';

/** The process may have less than it wants: file descriptors, memory. */
const SPARE_FILES = 6;
const FEW_FILES_MS = 8000;
const HEAP_MB = 256;
const STALLED_HOSTS = 20;
const CONNECTIONS = 10;
/** Of a message's attachment. */
const LARGE_BYTES = 2_000_000;

export const RESOURCES: Scenario[] = [
  {
    name: 'few-files',
    limitSeconds: 150,
    summary: `only ${SPARE_FILES} more file descriptors while connections to 12 destinations are wanted`,
    run: async (stage) => {
      const world = await startWorld(stage);
      const domains = Array.from({ length: 12 }, (_, n) => `files${n}.example`);
      const slow = await world.destination(domains, {
        script: { dot: { reply: '250 2.0.0 taken', delayMs: 300 } },
      });
      const traffic = world.traffic({ perSecond: 40 });
      await world.baseline(traffic);
      const { pid } = world.daemon;
      const limit = (files: number) => run('prlimit', '--pid', String(pid), `--nofile=${files}:`);
      limit(readdirSync(`/proc/${pid}/fd`).length + SPARE_FILES);
      const hungry = world.traffic({ perSecond: 100, domains });
      await pause(FEW_FILES_MS, stage.signal);
      slow.program({ script: {} });
      limit(4096);
      world.heal();
      // A look-up that failed for want of a socket is remembered for a minute.
      return world.result([traffic, hungry], { withinSeconds: 80 });
    },
  },
  {
    name: 'small-heap',
    summary: `${STALLED_HOSTS} stalled hosts, each with ${CONNECTIONS + 2} messages of ${LARGE_BYTES / 1e6} MB, in a heap of ${HEAP_MB} MB`,
    run: async (stage) => {
      const world = await startWorld(stage, { nodeArgs: [`--max-old-space-size=${HEAP_MB}`] });
      const domains = Array.from({ length: STALLED_HOSTS }, (_, n) => `stalled${n}.example`);
      const stalled = await world.destination(domains, { script: { dot: 'silent' } });
      const traffic = world.traffic({ perSecond: 20 });
      await world.baseline(traffic);
      const content = Buffer.alloc(LARGE_BYTES, 'attachment ').toString('base64');
      const large = world.traffic({
        perSecond: 15,
        domains,
        count: STALLED_HOSTS * (CONNECTIONS + 2),
        body: { attachments: [{ name: 'large.bin', contentType: 'application/octet-stream', content }] },
      });
      await pause(18_000, stage.signal);
      const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${world.daemon.pid}/status`, 'utf8'))?.[1];
      world.note(`${large.refusals.size === 0 ? 'all accepted' : 'some refused'}; peak ${peak} KiB`);
      stalled.program({ script: {} });
      stalled.disconnect();
      world.heal();
      return world.result([traffic, large]);
    },
  },
];
