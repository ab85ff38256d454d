import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Child, startChild } from './child.ts';
import { findProgram } from './required-programs.ts';

/**
 * A mail server of a Debian package that is unpacked in a folder: Debian allows one installed mail server, which is
 * Postfix. It runs in a separate mount namespace with an overlay of /etc that has its users and its libraries. Needs root.
 */
export interface UnpackedServer {
  /** Where the packages are unpacked. */
  root: string;
  /** A temporary directory; `etc` in it is the overlay, and may have further files. */
  dir: string;
  /** Users, each with a group of the same name and id. */
  users: Record<string, number>;
  /** Commands of the shell before the start: further mounts. */
  before?: readonly string[];
  /** The program with its arguments; words of the shell. */
  command: string;
}

/** Why no unpacked server can run here; null when one can. `name`: of the server. */
export function unpackedServerFault(name: string): string | null {
  if (process.getuid?.() !== 0) return `${name} can be started by root only`;
  try {
    execFileSync(findProgram('unshare') ?? 'unshare', ['--mount', 'true'], { stdio: 'ignore' });
    return null;
  } catch {
    // A container that may not mount.
    return `no mount namespace can be created for ${name}`;
  }
}

/** Starts the server in the foreground, without waiting for it. */
export async function startUnpackedServer(server: UnpackedServer): Promise<Child> {
  const { root, dir, users, before = [], command } = server;
  await mkdir(join(dir, 'etc'), { recursive: true });
  const names = Object.entries(users);
  await addLines(
    dir,
    'passwd',
    names.map(([name, id]) => `${name}:x:${id}:${id}::/:/bin/false\n`),
  );
  await addLines(
    dir,
    'group',
    names.map(([name, id]) => `${name}:x:${id}:\n`),
  );
  await writeFile(join(dir, 'ld.so.conf'), `${root}/usr/lib/x86_64-linux-gnu\ninclude /etc/ld.so.conf\n`);
  const cache = ['-f', join(dir, 'ld.so.conf'), '-C', join(dir, 'etc/ld.so.cache')];
  execFileSync(findProgram('ldconfig') ?? 'ldconfig', ['-X', ...cache]);
  const script = [...before, overlay('/etc', join(dir, 'etc')), `exec ${command}`].join(' && ');
  return startChild(findProgram('unshare') ?? 'unshare', ['--mount', 'sh', '-c', script]);
}

/** The command that shows the files of `folder` in `target`, next to its own ones. */
export function overlay(target: string, folder: string): string {
  return `mount -t overlay overlay -o lowerdir=${folder}:${target} ${target}`;
}

async function addLines(dir: string, file: string, lines: readonly string[]): Promise<void> {
  await writeFile(join(dir, 'etc', file), `${await readFile(join('/etc', file), 'utf8')}${lines.join('')}`);
}
