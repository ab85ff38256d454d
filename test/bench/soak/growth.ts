import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningDaemon } from '../../support/daemon.ts';

/** The resources of the daemon at one time. */
export interface Sample {
  /** Since the beginning of the faults. */
  seconds: number;
  rssMiB: number;
  /** Open file descriptors of the process: sockets, files. */
  descriptors: number;
  /** Handles and requests of the main thread: sockets, timers, servers. */
  handles: number;
  walMiB: number;
  queued: number;
}

/**
 * The limit of the growth of a value in the second half of the test: what the least-squares line through its samples rises
 * during that half, at most `share` of its mean, or `atLeast` where that is more. The faults recur in cycles, of which a
 * half has several, so that a fault at the beginning or at the end does not look like growth.
 */
interface GrowthLimit {
  value: 'rssMiB' | 'descriptors' | 'handles' | 'walMiB';
  name: string;
  unit: string;
  share: number;
  atLeast: number;
}

export const GROWTH_LIMITS: readonly GrowthLimit[] = [
  { value: 'rssMiB', name: 'RSS', unit: ' MiB', share: 0.05, atLeast: 0 },
  { value: 'descriptors', name: 'file descriptors', unit: '', share: 0.05, atLeast: 5 },
  { value: 'handles', name: 'handles and timers', unit: '', share: 0.05, atLeast: 5 },
  { value: 'walMiB', name: 'WAL', unit: ' MiB', share: 0.05, atLeast: 4 },
];

export interface Growth extends GrowthLimit {
  firstHalf: number;
  /** Mean of the second half. */
  mean: number;
  max: number;
  /** Rise of the line during the second half. */
  rise: number;
  limit: number;
}

export async function takeSample(daemon: RunningDaemon, pid: number, seconds: number): Promise<Sample> {
  const rssKb = /^VmRSS:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return {
    seconds,
    rssMiB: Number(rssKb) / 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    handles: await daemon.metric('nodejs_active_resources_total'),
    walMiB: statSync(join(daemon.dataDir, 'postrider.db-wal')).size / 2 ** 20,
    queued: await daemon.metric('postrider_queue_messages'),
  };
}

/** Throws for less than four samples. */
export function growthOf(samples: readonly Sample[]): Growth[] {
  if (samples.length < 4) throw new Error(`${samples.length} samples are too few: let the test run longer`);
  const half = Math.floor(samples.length / 2);
  const [first, second] = [samples.slice(0, half), samples.slice(half)];
  const seconds = (second.at(-1)?.seconds ?? 0) - (second[0]?.seconds ?? 0);
  return GROWTH_LIMITS.map((limit) => {
    const values = second.map((sample) => sample[limit.value]);
    const average = mean(values);
    return {
      ...limit,
      firstHalf: mean(first.map((sample) => sample[limit.value])),
      mean: average,
      max: Math.max(...values),
      rise:
        slope(
          second.map((sample) => sample.seconds),
          values,
        ) * seconds,
      limit: Math.max(limit.atLeast, limit.share * average),
    };
  });
}

/** Slope of the least-squares line; 0 when all x are equal. */
export function slope(x: readonly number[], y: readonly number[]): number {
  const [meanX, meanY] = [mean(x), mean(y)];
  let products = 0;
  let squares = 0;
  for (const [n, at] of x.entries()) {
    products += (at - meanX) * ((y[n] ?? 0) - meanY);
    squares += (at - meanX) ** 2;
  }
  return squares === 0 ? 0 : products / squares;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
