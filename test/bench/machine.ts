import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';

/** The machine of a measurement, printed with its results. */
export interface Machine {
  cores: number;
  cpu: string;
  memoryGiB: number;
  system: string;
  node: string;
  /** Load average of the minute before the benchmark. */
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
