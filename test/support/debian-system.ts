import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Child, startChild } from './child.ts';
import { eventually } from './eventually.ts';

/**
 * A Debian system in a container, started by its own systemd: what a package is installed on. It shares the loopback
 * interface with the tests, so that they can call a daemon inside and be its name server and mail destination.
 *
 *     const system = await installDebian(DEBIAN_PACKAGES);
 *     await system.boot();
 *     await system.run('systemctl', 'start', 'postrider');
 *     await system.remove();
 */
export interface DebianSystem {
  /** The root directory, as this machine sees it. */
  root: string;
  /** Starts the system; resolves when systemd has started everything. */
  boot(): Promise<void>;
  /** Runs a program inside as root; rejects when it fails. */
  run(program: string, ...args: string[]): Promise<string>;
  /** The command that runs a program inside as root, with the environment of a root login. */
  command(program: string, ...args: string[]): string[];
  /** Like `run`, but resolves with the exit status and all output. */
  tryRun(program: string, ...args: string[]): Promise<{ code: number; output: string }>;
  /** Stops the system and deletes it. */
  remove(): Promise<void>;
}

const run = promisify(execFile);
const MAX_OUTPUT_BYTES = 1 << 26;

/** What the tests of the packages need in addition to a minimal Debian: one list, so that Debian is installed once. */
export const DEBIAN_PACKAGES = ['systemd', 'systemd-sysv', 'dbus', 'curl'] as const;

/**
 * Installs a minimal system of this machine's release (Debian 12 elsewhere), with more packages. It is a copy: Debian is
 * installed once for each list of packages, into dist-package/cache.
 */
export async function installDebian(packages: readonly string[]): Promise<DebianSystem> {
  const dir = await mkdtemp(join(tmpdir(), 'postrider-debian-'));
  const root = join(dir, 'root');
  await run('cp', ['--archive', '--reflink=auto', await baseSystem(packages), root]);
  let nspawn: Child | null = null;
  let leader: number | null = null;

  const command = (program: string, ...args: string[]) => {
    if (leader === null) throw new Error('the system is not running');
    const enter = ['--target', String(leader), '--mount', '--uts', '--ipc', '--pid', '--net', '--root'];
    return ['nsenter', ...enter, '--', 'env', '--ignore-environment', ...LOGIN, program, ...args];
  };
  const tryRun = (program: string, ...args: string[]) =>
    new Promise<{ code: number; output: string }>((resolve) => {
      const [nsenter = '', ...rest] = command(program, ...args);
      const child = execFile(nsenter, rest, { maxBuffer: MAX_OUTPUT_BYTES }, (error, stdout, stderr) =>
        resolve({
          code: error === null ? 0 : typeof error.code === 'number' ? error.code : 1,
          output: stdout + stderr,
        }),
      );
      child.stdin?.end();
    });

  return {
    root,
    command,
    tryRun,
    run: async (program, ...args) => {
      const { code, output } = await tryRun(program, ...args);
      if (code !== 0) throw new Error(`${program} ${args.join(' ')} exited with ${code}: ${output}`);
      return output;
    },
    boot: async () => {
      await mkdir(join(root, 'run'), { recursive: true });
      // In a PID namespace, so that all processes inside end with this one.
      const child = startChild('unshare', [
        '--pid',
        '--fork',
        '--kill-child',
        '--mount-proc',
        'systemd-nspawn',
        '--quiet',
        '--boot',
        '--register=no',
        '--keep-unit',
        '--console=pipe',
        '--link-journal=no',
        '--resolv-conf=off',
        '--timezone=off',
        `--directory=${root}`,
        `--machine=postrider-test-${process.pid}`,
      ]);
      nspawn = child;
      leader = await eventually('the first process of the container', () => {
        if (!child.running) throw new Error(`systemd-nspawn ended: ${child.output}`);
        return initOf(child.pid);
      });
      await eventually(
        'systemd to have started everything',
        async () => {
          if (!child.running) throw new Error(`systemd-nspawn ended: ${child.output}`);
          const { output } = await tryRun('systemctl', 'is-system-running');
          return /^(running|degraded)$/m.test(output);
        },
        { everyMs: 250 },
      );
    },
    remove: async () => {
      await nspawn?.kill('SIGKILL');
      if (leader !== null)
        await eventually('the processes inside to have ended', () => !existsSync(`/proc/${leader}`));
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const LOGIN = [
  '--chdir=/root',
  'HOME=/root',
  'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  'LC_ALL=C.UTF-8',
  'DEBIAN_FRONTEND=noninteractive',
];

/** The directory of an installed system, which is never started. */
const baseSystem = (packages: readonly string[]) => bootstrap(packages, '');

/** A minimal system with more packages as a tar file, such as the base image of a container. */
export const debianArchive = (packages: readonly string[]) => bootstrap(packages, '.tar');

/**
 * Installs Debian once for each list of packages, into dist-package/cache; returns its directory, or its file when `end` is
 * `.tar`. Test files that need the same one at the same time wait for each other.
 */
async function bootstrap(packages: readonly string[], end: '' | '.tar'): Promise<string> {
  await mkdir(CACHE, { recursive: true });
  const key = createHash('sha256').update(JSON.stringify(packages)).digest('hex').slice(0, 12);
  const name = join(CACHE, `debian-${release()}-${key}`);
  const [base, partial] = [`${name}${end}`, `${name}.partial${end}`];
  // The name is given to a complete system only. The namespace ends what mmdebstrap mounts, also when it is killed.
  const install =
    'partial=$1; shift; [ -e "$0" ] || { rm -rf --one-file-system "$partial"; "$@"; mv "$partial" "$0"; }';
  const mmdebstrap = [
    'mmdebstrap',
    '--quiet',
    '--mode=root',
    '--variant=minbase',
    `--include=${packages.join(',')}`,
    // Translations are not needed.
    '--dpkgopt=path-exclude=/usr/share/locale/*',
    '--dpkgopt=force-unsafe-io',
    release(),
    partial,
  ];
  await run(
    'flock',
    [`${base}.lock`, 'unshare', '--mount', 'sh', '-ec', install, base, partial, ...mmdebstrap],
    {
      maxBuffer: MAX_OUTPUT_BYTES,
    },
  );
  return base;
}

const CACHE = new URL('../../dist-package/cache', import.meta.url).pathname;

/** All paths of the system with their types, without what changes while any system runs. */
export async function listFiles(root: string): Promise<string[]> {
  const files: string[] = [];
  const device = (await stat(root)).dev;
  const visit = async (path: string) => {
    if (VOLATILE.test(path)) return;
    for (const entry of readdirSync(root + path, { withFileTypes: true })) {
      const file = `${path}/${entry.name}`;
      if (VOLATILE.test(file)) continue;
      files.push(entry.isDirectory() ? `${file}/` : file);
      if (entry.isDirectory() && (await stat(root + file)).dev === device) await visit(file);
    }
  };
  await visit('');
  return files.toSorted();
}

const VOLATILE =
  /^\/(proc|sys|dev|run|tmp|var\/tmp|var\/log\/(journal|dpkg\.log)|var\/cache|var\/lib\/systemd\/(timers|random-seed|rfkill|catalog)|var\/lib\/dpkg\/(info\/format|.*-old|triggers|lock.*))(\/|$)/;

/** The process that became systemd: the child of systemd-nspawn, which is the child of unshare. */
function initOf(unshare: number): number | null {
  const inits = childrenOf(unshare)
    .flatMap(childrenOf)
    .filter((pid) => /^(systemd|init)$/.test(readFileSync(`/proc/${pid}/comm`, 'utf8').trim()));
  return inits[0] ?? null;
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.split(' ').flatMap((child) => (child.trim() === '' ? [] : [Number(child)]));
}

/** The code name of this Debian; `bookworm` on other systems. */
function release(): string {
  const text = readFileSync('/etc/os-release', 'utf8');
  const name = /^VERSION_CODENAME=(\w+)$/m.exec(text)?.[1];
  return /^ID=debian$/m.test(text) && name !== undefined ? name : 'bookworm';
}
