import { readdirSync, readFileSync } from 'node:fs';

/** The resources that a process has used so far, read from Linux's /proc. */
export interface ProcessCost {
  /** CPU time of all threads, user and system, in seconds. */
  cpu: number;
  /** CPU time of the main thread, which runs Node's event loop, in seconds. */
  mainThread: number;
  /** Peak resident memory, in MiB. */
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

/** CPU time of a process and all its descendants, also those that exited, in seconds. */
export function familyCpu(pid: number): number {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        return [readStat(`/proc/${name}/stat`)];
      } catch {
        // It exited after the directory was read; its parent's counters include its CPU time.
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

/** CPU time of this process's children that exited, in seconds. */
export function endedChildrenCpu(): number {
  return readStat('/proc/self/stat').reaped;
}

/** CPU time of this process and its threads during a call, in milliseconds: other load does not change it. */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** The child of this process that has an argument ending with each of the words. */
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
  /** Seconds, of children that exited and were waited for. */
  reaped: number;
}

/** Parses proc(5)'s stat: the process name may contain any character, so fields are counted after the last bracket. */
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
