import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';

/** What the figures were measured on; without it they mean nothing. */
export interface Machine {
  cores: number;
  cpu: string;
  memoryGiB: number;
  system: string;
  node: string;
  /** Of the last minute, before the benchmark: a busy machine measures its other work. */
  load: number;
}

export function thisMachine(): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `Linux ${release()}`,
    node: process.version,
    load: Number.parseFloat(readFileSync('/proc/loadavg', 'utf8')),
  };
}
