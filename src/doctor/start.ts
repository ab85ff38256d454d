import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, isIPv6 } from 'node:net';
import { createStandby } from '../backup/standby.ts';
import { listenersOf } from '../config/listeners.ts';
import type { Config } from '../config/schema.ts';
import type { ListenAddress } from '../config/setting-types.ts';
import { SECOND } from '../core/clock.ts';
import { errorText } from '../core/errors.ts';
import { createLog } from '../core/log.ts';
import { isDenied, listenFault, OperatorFault } from '../core/operator-fault.ts';
import { instanceIn, requireOriginal } from '../store/backup/identity.ts';
import { Superseded } from '../store/database/failure.ts';
import { requireMasterKey } from '../store/master-key.ts';
import { certificateFiles } from './certificate-files.ts';
import type { DatabaseState } from './context.ts';
import { reachableHost } from './daemon-client.ts';
import { AS_DAEMON, failure, type Result, unknown } from './finding.ts';

/*
 * What a start of the daemon needs: database, master key, certificate files, ports, and that no other daemon has taken
 * over. Examined while the daemon is stopped: each port is bound for a moment, nothing is accepted, written or sent.
 */

const CONNECT_TIMEOUT_MS = 2 * SECOND;

/**
 * A failure for each obstacle; none: a start would succeed. Unknown: this user may not find out. Warning: a part would not
 * start.
 */
export async function examineStart(config: Config, database: DatabaseState): Promise<Result[]> {
  return [
    ...databaseObstacles(config, database),
    ...keyObstacles(config, database),
    ...(await certificateObstacles(config)),
    ...(await successorObstacles(config, database)),
    ...(await portObstacles(config)),
  ];
}

function databaseObstacles({ data }: Config, database: DatabaseState): Result[] {
  if (database.kind === 'open') return obstacle('database', () => requireOriginal(database.tables, data.dir));
  // A missing database is created, and one with an older schema is migrated: both are warnings.
  const { status } = database.finding;
  return status === 'failure' || status === 'unknown' ? [database.finding] : [];
}

function keyObstacles({ data }: Config, database: DatabaseState): Result[] {
  const tables = database.kind === 'open' ? database.tables : null;
  return obstacle('data.masterKeyFile', () =>
    requireMasterKey(data.masterKeyFile, tables, process.env['CREDENTIALS_DIRECTORY']),
  );
}

async function certificateObstacles(config: Config): Promise<Result[]> {
  return (await certificateFiles(config)).flatMap(({ setting, file, fault, certificate }) => {
    if (certificate === null)
      return [failure(setting, `${file} cannot be used: ${fault ?? 'unknown error'}`)];
    if (!certificate.matchesKey)
      return [failure(setting, 'The private key in keyFile does not belong to the certificate.')];
    return [];
  });
}

/** The next start raises the generation by one. */
async function successorObstacles({ standby }: Config, database: DatabaseState): Promise<Result[]> {
  const own = database.kind === 'open' ? instanceIn(database.tables) : null;
  if (own === null || standby.peers.length === 0) return [];
  const log = createLog({ level: 'silent', hashAddresses: true });
  try {
    await createStandby({ peers: standby.peers, log }).check({ ...own, generation: own.generation + 1 });
    return [];
  } catch (error) {
    if (!(error instanceof Superseded)) throw error;
    return [failure('standby.peers', `${error.message}.`)];
  }
}

function obstacle(subject: string, examine: () => void): Result[] {
  try {
    examine();
    return [];
  } catch (error) {
    if (!(error instanceof OperatorFault)) throw error;
    return [
      isDenied(error.cause)
        ? unknown(subject, `${error.message}.`, AS_DAEMON)
        : failure(subject, `${error.message}.`),
    ];
  }
}

/** Ports stay bound until all are examined: two settings with one address are an obstacle, too. */
async function portObstacles(config: Config): Promise<Result[]> {
  const bound: (() => void)[] = [];
  const results: Result[] = [];
  try {
    for (const { setting, address, protocol } of listenersOf(config)) {
      // Port 0 is always free.
      if (address.port === 0) continue;
      try {
        bound.push(await (protocol === 'TCP' ? bindTcp(address) : bindUdp(address)));
      } catch (error) {
        const obstacle = await portObstacle(setting, address, error);
        // The daemon starts without its console.
        results.push(setting === 'console.listen' ? { ...obstacle, status: 'warning' } : obstacle);
      }
    }
    return results;
  } finally {
    for (const release of bound) release();
  }
}

async function portObstacle(setting: string, address: ListenAddress, error: unknown): Promise<Result> {
  if (!isDenied(error)) return failure(setting, `${errorText(listenFault(setting, address, error))}.`);
  // The user of a command may lack the capability that the service has.
  if (await isTaken(address)) {
    const inUse = Object.assign(new Error('in use'), { code: 'EADDRINUSE' });
    return failure(setting, `${errorText(listenFault(setting, address, inUse))}.`);
  }
  return unknown(
    setting,
    `This user may not listen on port ${address.port}, for which the service has the capability CAP_NET_BIND_SERVICE; no other program answers there.`,
  );
}

async function bindTcp({ host, port }: ListenAddress): Promise<() => void> {
  const server = createServer((socket) => socket.destroy());
  server.listen({ host, port });
  await once(server, 'listening');
  return () => void server.close();
}

async function bindUdp({ host, port }: ListenAddress): Promise<() => void> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
  socket.bind({ address: host, port });
  await once(socket, 'listening');
  return () => void socket.close();
}

/** Whether a program accepts connections there. */
function isTaken({ host, port }: ListenAddress): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: reachableHost(host), port, timeout: CONNECT_TIMEOUT_MS });
    const finish = (taken: boolean) => {
      socket.destroy();
      resolve(taken);
    };
    socket.on('connect', () => finish(true));
    socket.on('timeout', () => finish(false));
    socket.on('error', () => finish(false));
  });
}
