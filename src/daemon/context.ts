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
import type { FileSources } from '../sending/attachment-files.ts';
import type { Context } from '../store/context.ts';
import type { Superseded } from '../store/database/failure.ts';

/** The dependencies of a daemon: time, randomness, DNS. */
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
  /** From where the files of attachments are fetched; default: public addresses with valid certificates. */
  fileSources?: FileSources;
  /** The delivery worker's program; default: the built one. */
  workerScript?: URL;
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
