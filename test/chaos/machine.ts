import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
import { findProgram } from '../support/required-programs.ts';
import type { Need } from './scenario.ts';
import type { Stage } from './stage.ts';

/** What the machine offers to the scenarios, and the file systems that they break. */

/** Debian's package faketime; the directory carries the architecture. */
const FAKETIME_FILES = ['x86_64', 'aarch64'].map(
  (machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`,
);

/** Why the machine cannot give this; null: it can. */
export function needFault(need: Need): string | null {
  return FAULTS[need]();
}

const FAULTS: Record<Need, () => string | null> = {
  mounts: rootFault,
  loop: () => {
    if (!existsSync('/dev/loop-control')) return 'there are no loop devices here';
    if (findProgram('mkfs.ext4') === null) return 'mkfs.ext4 (package e2fsprogs) is not installed';
    return rootFault();
  },
  faketime: () => (faketimeLibrary() === null ? 'libfaketime (package faketime) is not installed' : null),
};

/** Why this process cannot have a mount namespace of its own; null: it can. */
export function rootFault(): string | null {
  if (process.getuid?.() !== 0) return 'mounting file systems needs root';
  const { status } = spawnSync('unshare', ['--mount', 'true']);
  return status === 0 ? null : 'this machine does not let root mount file systems';
}

export function faketimeLibrary(): string | null {
  return FAKETIME_FILES.find(existsSync) ?? null;
}

/** Runs a program and returns what it printed; throws when it fails. */
export function run(command: string, ...args: string[]): string {
  return execFileSync(findProgram(command) ?? command, args, { encoding: 'utf8', stdio: 'pipe' });
}

/** A file system of its own that a scenario can fill or break. */
export interface Volume {
  dir: string;
  /** Takes every free byte, also those that become free later; ends with the returned function. */
  fill(): () => void;
  /** Takes every free inode. */
  fillInodes(): () => void;
}

/** `options` as mount takes them: `size=40m,nr_inodes=64`. */
export function mountTmpfs(stage: Stage, options: string): Volume {
  const dir = join(stage.dir, 'volume');
  mkdirSync(dir);
  run('mount', '-t', 'tmpfs', '-o', `${options},mode=0700`, 'chaos', dir);
  stage.defer(() => run('umount', '--lazy', dir));
  return {
    dir,
    fill: () => {
      const ballast = openSync(join(dir, 'ballast'), 'w');
      const top = () => untilFull(() => writeSync(ballast, Buffer.alloc(4096)));
      top();
      const timer = setInterval(top, 50);
      stage.defer(() => clearInterval(timer));
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

function untilFull(take: () => unknown): void {
  try {
    for (;;) take();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  }
}

/** An ext4 file system in a file that turns read-only as it does after an I/O error. */
export interface FragileVolume {
  dir: string;
  /** The kernel finds an error: every write fails from now on. */
  turnReadOnly(): void;
  /** What an administrator does; nothing may have a file open there. */
  repair(): void;
}

export function mountFragile(stage: Stage): FragileVolume {
  const image = join(stage.dir, 'image');
  const dir = join(stage.dir, 'volume');
  mkdirSync(dir);
  run('truncate', '--size', '128M', image);
  run('mkfs.ext4', '-q', image);
  const mount = () => run('mount', '-o', 'loop,errors=remount-ro', image, dir);
  mount();
  stage.defer(() => run('umount', '--lazy', dir));
  return {
    dir,
    turnReadOnly: () => {
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
