import { readdirSync, readFileSync } from 'node:fs';

/** What a process cost so far, from Linux's /proc. Reading it costs the process nothing. */
export interface ProcessCost {
  /** Seconds of CPU, user and system, of all its threads. */
  cpu: number;
  /** Of which its first thread: Node's event loop. */
  mainThread: number;
  /** The most memory it held at once, in MiB. */
  peakMiB: number;
}

/** USER_HZ, 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

export function processCost(pid: number): ProcessCost {
  const peakKb = /^VmHWM:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0;
  return {
    cpu: readStat(`/proc/${pid}/stat`).cpu,
    mainThread: readStat(`/proc/${pid}/task/${pid}/stat`).cpu,
    peakMiB: Number(peakKb) / 1024,
  };
}

/** Seconds of CPU of a process and all that came of it, those that ended as well. */
export function familyCpu(pid: number): number {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        return [readStat(`/proc/${name}/stat`)];
      } catch {
        // It ended since the folder was read; its parent's account holds what it cost.
        return [];
      }
    });
  const total = (stat: Stat): number =>
    stat.cpu +
    stat.reaped +
    all.filter(({ parent }) => parent === stat.pid).reduce((sum, child) => sum + total(child), 0);
  const first = all.find((stat) => stat.pid === pid);
  return first === undefined ? 0 : total(first);
}

/** Seconds of CPU of this process's children that ended. */
export function endedChildrenCpu(): number {
  return readStat('/proc/self/stat').reaped;
}

/** A child of this process whose command line holds all these words. */
export function findChild(...words: string[]): number {
  const pids = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ').map(Number);
  const found = pids.find((pid) => {
    const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return words.every((word) => line.some((argument) => argument.endsWith(word)));
  });
  if (found === undefined) throw new Error(`no child process ${words.join(' ')}`);
  return found;
}

interface Stat {
  pid: number;
  parent: number;
  /** Seconds. */
  cpu: number;
  /** Seconds, of children that ended and were waited for. */
  reaped: number;
}

/** proc(5): the name in brackets may hold anything, so fields count from behind the last bracket. */
function readStat(file: string): Stat {
  const text = readFileSync(file, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const seconds = (index: number) => Number(fields[index]) / TICKS_PER_SECOND;
  return {
    pid: Number.parseInt(text, 10),
    parent: Number(fields[1]),
    cpu: seconds(11) + seconds(12),
    reaped: seconds(13) + seconds(14),
  };
}
