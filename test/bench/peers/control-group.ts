import { mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { killIfRunning } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';

/**
 * A control group of Linux (version 2) for the processes of one server. It counts their CPU time also when a parent lets
 * the kernel forget its children, as Exim does. Needs root.
 */
export interface ControlGroup {
  /** The command with which a shell enters the group, with all that it starts from then on. */
  enter: string;
  /** CPU time of all processes that were or are in the group, in seconds. */
  cpu(): number;
  /** Kills its processes and removes the group. */
  end(): Promise<void>;
}

/** Throws where no group can be created, as in a container without its own control groups. */
export function createControlGroup(name: string): ControlGroup {
  const folder = join(ownGroup(), `postrider-bench-${process.pid}-${name}`);
  mkdirSync(folder);
  const read = (file: string) => readFileSync(join(folder, file), 'utf8');
  return {
    enter: `echo $$ >${folder}/cgroup.procs`,
    cpu: () => {
      const used = /^usage_usec (\d+)$/m.exec(read('cpu.stat'))?.[1];
      if (used === undefined) throw new Error(`${folder}/cpu.stat has no CPU time`);
      return Number(used) / 1e6;
    },
    end: async () => {
      await eventually(`the end of ${name}`, () => {
        const pids = read('cgroup.procs')
          .split('\n')
          .filter((line) => line !== '')
          .map(Number);
        for (const pid of pids) killIfRunning(pid);
        return pids.length === 0;
      });
      rmdirSync(folder);
    },
  };
}

/** Why no control group can be created; null when one can. */
export function controlGroupFault(): string | null {
  try {
    const folder = join(ownGroup(), `postrider-bench-${process.pid}-test`);
    mkdirSync(folder);
    rmdirSync(folder);
    return null;
  } catch {
    return 'no control group (version 2) can be created to count its CPU time';
  }
}

/** The folder of this process's group. */
function ownGroup(): string {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '));
  const mount = mounts.find(([, , type]) => type === 'cgroup2')?.[1];
  const own = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
  if (mount === undefined || own === undefined) throw new Error('no control groups (version 2) are mounted');
  return join(mount, own);
}
