import { execFile } from 'node:child_process';
import { existsSync, statfsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * Podman with images, volumes and containers of its own, which are removed at the end. It needs no registry, no systemd and no
 * network of its own: containers have that of this machine, or none.
 *
 *     const podman = await startPodman(baseArchive);
 *     await podman.run('run', '--rm', 'postrider:0.2.0', '--version');
 *     await podman.remove();
 */
export interface Podman {
  /** A folder with the program `podman` for commands of documents: put it in front of PATH. */
  bin: string;
  /** Runs a command; rejects when it fails. Resolves with stdout. */
  run(...args: string[]): Promise<string>;
  /** A field of a container, by a Go template such as `.State.ExitCode`. */
  inspect(container: string, field: string): Promise<string>;
  remove(): Promise<void>;
}

const run = promisify(execFile);
const BASE = 'localhost/base:test';
const OVERLAYFS = 0x79_4c_76_30;

/** `base`: a tar file with the root directory of the base image. `settings`: variables of all containers with a network. */
export async function startPodman(base: string, settings: readonly string[]): Promise<Podman> {
  const dir = await mkdtemp(join(tmpdir(), 'postrider-podman-'));
  const bin = join(dir, 'bin');
  const variables = join(dir, 'variables');
  await mkdir(bin);
  await writeFile(variables, `${settings.join('\n')}\n`);
  // An overlay on an overlay is refused: a container that runs the tests has one.
  const driver = statfsSync(dir).type === OVERLAYFS ? ['--storage-driver', 'vfs'] : [];
  // crun supports no hybrid hierarchy, runc needs one that it may change.
  const isHybrid = existsSync('/sys/fs/cgroup/unified');
  const runtime = ['--runtime', isHybrid ? 'runc' : 'crun', '--cgroup-manager', 'cgroupfs'];
  const global = ['--root', join(dir, 'storage'), '--runroot', join(dir, 'run'), ...driver, ...runtime];
  // The limits of this process may not be raised.
  const limits = ['--ulimit', 'nofile=4096:4096', '--ulimit', 'nproc=4096:4096'];
  const started = [...(isHybrid ? [] : ['--cgroups=disabled']), ...limits];
  const built = [
    '--network',
    'host',
    '--isolation',
    'chroot',
    '--layers=false',
    '--build-arg',
    `BASE=${BASE}`,
  ];
  const script = `#!/bin/sh
command=$1; shift
case $command in
  build) set -- ${built.join(' ')} "$@" ;;
  run)
    case "$*" in
      *'--network none'*) ;;
      *) set -- --env-file ${variables} "$@" ;;
    esac
    set -- ${started.join(' ')} "$@" ;;
esac
exec /usr/bin/podman ${global.join(' ')} "$command" "$@"
`;
  const program = join(bin, 'podman');
  await writeFile(program, script);
  await chmod(program, 0o755);
  const podman: Podman['run'] = async (...args) => (await run(program, args)).stdout;
  await podman('import', base, BASE);
  return {
    bin,
    run: podman,
    inspect: async (container, field) =>
      (await podman('inspect', '--format', `{{${field}}}`, container)).trim(),
    remove: async () => {
      await podman('rm', '--all', '--force', '--time', '0');
      await podman('volume', 'rm', '--all', '--force');
      await rm(dir, { recursive: true, force: true });
    },
  };
}
