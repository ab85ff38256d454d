import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ApiClient, type Credentials, createApiClient } from './api-client.ts';
import { type Reader, type ReaderOptions, startReader } from './reader.ts';

/**
 * A reader of the documents for operators: root on a server with the Debian package that `init` has set up. The server's
 * directories are below `root`.
 *
 *     const server = await startServer();
 *     await server.reader.follow('docs/backup.md');
 *     await server.close();
 */
export interface Server {
  reader: Reader;
  /** The directory that stands for `/` of the documents. */
  root: string;
  dataDir: string;
  close(): Promise<void>;
}

/** With a running service, an account and the verified domain example.com. */
export interface RunningServer extends Server {
  api: ApiClient;
}

/** Files of the package which the documents name. */
const MONITORING = new URL('../../config/monitoring', import.meta.url).pathname;

/**
 * Programs of the documents with a part that is impossible here: this machine has no user `postrider`, and nothing is
 * installed on it. The packages are tested by package.test.ts.
 */
export const STAND_INS = {
  install: `left=$#
while [ $left -gt 0 ]; do
  argument=$1; shift; left=$((left - 1))
  case $argument in
    -o|-g) shift; left=$((left - 1)) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec /usr/bin/install "$@"`,
  chown: 'exit 0',
  chgrp: 'exit 0',
  apt: 'exit 0',
};

export async function startServer(options: ReaderOptions = {}): Promise<RunningServer> {
  const { account, ...server } = await initialize(options, 'Example');
  const { reader } = server;
  try {
    if (account === null) throw new Error('init created no account');
    await reader.run(`postrider domain add example.com --account '${account.accountId}' --use-case tx-local`);
    await reader.publish();
    await reader.serve();
    await reader.run('postrider domain verify example.com');
    return { ...server, api: createApiClient(`http://${reader.adapted('127.0.0.1:8080')}`, account) };
  } catch (error) {
    await server.close();
    throw error;
  }
}

/** A server with the configuration and no data: its service is not started. */
export async function prepareServer(options: ReaderOptions = {}): Promise<Server> {
  const { account: _, ...server } = await initialize(options, '-');
  rmSync(server.dataDir, { recursive: true });
  return server;
}

/** `accountName` `-`: without an account. */
async function initialize(
  options: ReaderOptions,
  accountName: string,
): Promise<Server & { account: Credentials | null }> {
  const root = mkdtempSync(join(tmpdir(), 'postrider-server-'));
  for (const dir of ['etc', 'root', 'srv', 'var/lib', 'var/backups', 'var/tmp'])
    mkdirSync(join(root, dir), { recursive: true });
  const configFile = join(root, 'etc/postrider/postrider.toml');
  const dataDir = join(root, 'var/lib/postrider');
  const reader = await startReader({
    ...options,
    settings: { 'delivery.retry.first': '1s', ...options.settings },
    replace: longestFirst({
      '/usr/share/doc/postrider/examples/monitoring': MONITORING,
      ...Object.fromEntries(['/etc/', '/srv/', '/var/', '/root/'].map((dir) => [dir, root + dir])),
      ...options.replace,
    }),
    programs: { ...STAND_INS, ...options.programs },
  });
  const close = async () => {
    await reader.close();
    rmSync(root, { recursive: true, force: true });
  };
  try {
    const created: { account: Credentials | null } = JSON.parse(
      await reader.run(
        `postrider init --json --hostname mail.example.net --tls none --output '${configFile}' --data '${dataDir}' \\
          --account '${accountName}' --company "Example Ltd" --address "1 High Street, Sampletown, AB1 2CD, GB"`,
      ),
    );
    reader.env['POSTRIDER_CONFIG'] = configFile;
    return { reader, root, dataDir, account: created.account, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** For `ReaderOptions.replace`: longer texts are replaced before those that they contain. */
export function longestFirst(replace: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(replace).toSorted(([a], [b]) => b.length - a.length));
}
