import type { Worker } from 'node:worker_threads';
import { Registry } from 'prom-client';
import type { Config } from '../config/schema.ts';
import { formatListen, type ListenAddress } from '../config/setting-types.ts';
import { type Clock, monotonicClock, SECOND } from '../core/clock.ts';
import { createExpiryClock } from '../core/expiry-clock.ts';
import { createIds } from '../core/ids.ts';
import type { AddressHasher, Log } from '../core/log.ts';
import type { Random } from '../core/random.ts';
import type { Runtime } from '../core/runtime.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { GenerateKey } from '../domains/key-queue.ts';
import type { CopyPrograms } from '../store/backup/copy.ts';
import type { Context } from '../store/context.ts';
import type { Superseded } from '../store/database/failure.ts';

/** The dependencies of a daemon: time, randomness, DNS, and the programs of its threads. */
export interface DaemonEnv {
  clock: Clock;
  /** Default: the process's own. */
  monotonic?: Clock;
  random: Random;
  log: Log;
  /** Hashes addresses in the log; receives its key from the daemon. */
  addresses?: AddressHasher;
  /** The number of log records that were dropped because the log was not read; default: none. */
  droppedLogRecords?(): number;
  /** Default: our own resolver over `dns.resolvers`. */
  resolver?: Resolver;
  /** Generates DKIM keys; default: new RSA keys. */
  generateKey?: GenerateKey;
  /** The delivery worker's program; default: the compiled one. */
  workerScript?: URL;
  /** The program of the thread that flushes the write-ahead log; default: the compiled one. */
  flushScript?: URL;
  /** The program of the threads that read the database; default: the compiled one. */
  storeReaderScript?: URL;
  /** The program of the thread that clears unused space of the database; default: the compiled one. */
  slackScript?: URL;
  /** The program of the thread that migrates a large database; default: the compiled one. */
  migrationScript?: URL;
  /** The program of the process that checks the database for damage; default: the compiled one. */
  integrityScript?: URL;
  /** Starts a thread that parses received mail; default: of the compiled program. */
  startParserThread?: () => Worker;
  /** The programs of the threads of a backup; default: the compiled ones. */
  copyPrograms?: CopyPrograms;
  /** The directory with the files of the console; default: of the compiled program. */
  consoleDirectory?: string;
  /** Aborts a migration at the start. */
  startSignal?: AbortSignal;
  /** Whether this daemon takes over from daemons with copies of its database that were restored before. */
  takeOver?: boolean;
  /** Another daemon has taken over: must end the process without delay. Default: an uncaught exception. */
  onSuperseded?(error: Superseded): void;
}

export type StopStep = () => Promise<void> | void;

/** What every function that starts parts of the daemon receives. */
export interface DaemonContext extends Runtime, Pick<Context, 'config' | 'expiry' | 'registry'> {
  env: DaemonEnv;
  /** Adds a step of the stop; the steps run one after the other, the last added first. */
  onStop(step: StopStep): void;
}

/** Time that a listener gives open connections and requests when the daemon stops. */
export const GRACE_MS = 30 * SECOND;

/** Starts nothing. */
export function createContext(
  config: Config,
  env: DaemonEnv,
  onStop: (step: StopStep) => void,
): DaemonContext {
  const { clock, random, log, monotonic = monotonicClock } = env;
  return {
    config,
    env,
    clock,
    monotonic,
    expiry: createExpiryClock(clock, monotonic),
    random,
    log,
    ids: createIds(clock, random),
    registry: new Registry(),
    onStop,
  };
}

/** Logs the bound address of a listener; nothing if the listener is off. */
export function logListener(log: Log, listener: string, address: ListenAddress | null | undefined): void {
  if (address) log.info({ listener, address: formatListen(address) }, 'listening');
}
