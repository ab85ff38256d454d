import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
import { findProgram } from '../support/required-programs.ts';
import type { ScenarioContext } from './context.ts';
import type { Need } from './scenario.ts';

/** The features of the machine that scenarios need, and the file systems that they break. */

/** From Debian's package faketime; the directory depends on the architecture. */
const FAKETIME_FILES = ['x86_64', 'aarch64'].map(
  (machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`,
);

/** Why the machine does not have a feature; null: it has it. */
export function needFault(need: Need): string | null {
  return FAULTS[need]();
}

const FAULTS: Record<Need, () => string | null> = {
  mounts: rootFault,
  loop: () => {
    if (!existsSync('/dev/loop-control')) return 'this machine has no loop devices';
    if (findProgram('mkfs.ext4') === null) return 'mkfs.ext4 (package e2fsprogs) is not installed';
    return rootFault();
  },
  faketime: () => (faketimeLibrary() === null ? 'libfaketime (package faketime) is not installed' : null),
};

/** Why this process cannot have a separate mount namespace; null: it can. */
export function rootFault(): string | null {
  if (process.getuid?.() !== 0) return 'mounting file systems needs root';
  const { status } = spawnSync('unshare', ['--mount', 'true']);
  return status === 0 ? null : 'root cannot mount file systems on this machine';
}

export function faketimeLibrary(): string | null {
  return FAKETIME_FILES.find(existsSync) ?? null;
}

/** Runs a program and returns its output; throws when it fails. */
export function run(command: string, ...args: string[]): string {
  return execFileSync(findProgram(command) ?? command, args, { encoding: 'utf8', stdio: 'pipe' });
}

/** A separate file system that a scenario can fill. */
export interface Volume {
  dir: string;
  /** Fills all free space, also space that becomes free later, until the returned function is called. */
  fill(): () => void;
  /** Uses all free inodes until the returned function is called. */
  fillInodes(): () => void;
}

/** `options`: those of mount, `size=40m,nr_inodes=64`. */
export function mountTmpfs(context: ScenarioContext, options: string): Volume {
  const dir = join(context.dir, 'volume');
  mkdirSync(dir);
  run('mount', '-t', 'tmpfs', '-o', `${options},mode=0700`, 'chaos', dir);
  context.defer(() => run('umount', '--lazy', dir));
  return {
    dir,
    fill: () => {
      const ballast = openSync(join(dir, 'ballast'), 'w');
      const topUp = () => untilFull(() => writeSync(ballast, Buffer.alloc(4096)));
      topUp();
      const timer = setInterval(topUp, 50);
      context.defer(() => clearInterval(timer));
      return () => {
        clearInterval(timer);
        closeSync(ballast);
        rmSync(join(dir, 'ballast'));
      };
    },
    fillInodes: () => {
      let files = 0;
      untilFull(() => {
        writeFileSync(join(dir, `inode-${files}`), '');
        files++;
      });
      return () => {
        while (files > 0) rmSync(join(dir, `inode-${--files}`), { force: true });
      };
    },
  };
}

function untilFull(write: () => unknown): void {
  try {
    for (;;) write();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  }
}

/** An ext4 file system in a file that can become read-only as after an I/O error. */
export interface FragileVolume {
  dir: string;
  /** Makes the kernel detect an error: all writes fail from now on. */
  makeReadOnly(): void;
  /** Repairs it as an administrator would; no process may have a file open in it. */
  repair(): void;
}

export function mountFragile(context: ScenarioContext): FragileVolume {
  const image = join(context.dir, 'image');
  const dir = join(context.dir, 'volume');
  mkdirSync(dir);
  run('truncate', '--size', '128M', image);
  run('mkfs.ext4', '-q', image);
  const mount = () => run('mount', '-o', 'loop,errors=remount-ro', image, dir);
  mount();
  context.defer(() => run('umount', '--lazy', dir));
  return {
    dir,
    makeReadOnly: () => {
      const device = basename(run('findmnt', '-no', 'SOURCE', dir).trim());
      writeFileSync(`/sys/fs/ext4/${device}/trigger_fs_error`, '1');
    },
    repair: () => {
      run('umount', dir);
      // 1: errors were found and corrected.
      const { status } = spawnSync(findProgram('e2fsck') ?? 'e2fsck', ['-fy', image]);
      if (status !== 0 && status !== 1) throw new Error(`e2fsck ended with ${status}`);
      mount();
    },
  };
}
