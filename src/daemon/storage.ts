import { createStandby } from '../backup/standby.ts';
import { eventLoopTurns } from '../core/concurrency/slices.ts';
import { LOG_KEY_PURPOSE } from '../core/log.ts';
import type { Seal } from '../core/seal.ts';
import { registerMessageCounters } from '../events/message-metrics.ts';
import { migrateAtStart } from '../http/startup.ts';
import { createTokens, type Tokens } from '../mail/tokens.ts';
import type { Context } from '../store/context.ts';
import { lockDaemon } from '../store/database/database.ts';
import type { Superseded } from '../store/database/failure.ts';
import { openSeal } from '../store/master-key.ts';
import type { CountedMessages } from '../store/messages/hourly-counts.ts';
import { createStorage, type Storage } from '../store/storage.ts';
import { createTokenAccounts } from '../transfer/token-accounts.ts';
import type { DaemonContext } from './context.ts';

/** The open database and what its master key protects. */
export interface DaemonStorage extends Omit<Storage, 'close'> {
  seal: Seal;
  tokens: Tokens;
  /** Calls a function with the counts of each commit that is on disk. */
  observeCounts(observe: (counted: readonly CountedMessages[]) => void): void;
}

/** The context together with the database: what most parts of the daemon use. */
export type DaemonBase = DaemonContext & DaemonStorage & Context;

/**
 * Locks the data directory, migrates and opens the database, and opens the master key. Rejects when another daemon has
 * taken over the database; nothing was sent then.
 */
export async function startStorage(context: DaemonContext): Promise<DaemonStorage> {
  const { config, env, clock, random, log, registry, onStop } = context;
  const lock = lockDaemon(config.data.dir);
  onStop(() => lock.release());
  await migrateAtStart(context, env.startSignal);
  const standby = createStandby({ peers: config.standby.peers, log });
  onStop(() => standby.stop());
  const onSuperseded =
    env.onSuperseded ??
    ((error: Superseded) => {
      setImmediate(() => {
        throw error;
      });
    });
  const observers = [registerMessageCounters(registry)];
  const { close, ...storage } = await createStorage(context, {
    lock,
    onCounted: (counted) => {
      for (const observe of observers) observe(counted);
    },
    turn: eventLoopTurns.next,
    onSuperseded,
    minGeneration: env.takeOver === true ? Math.max(clock.now(), (await standby.highestGeneration()) + 1) : 0,
  });
  onStop(close);
  const { tables, writer, generation, instanceId } = storage;
  // Before anything is sent.
  await standby.check({ instanceId, generation });
  standby.watch({ instanceId, generation }, onSuperseded);

  const seal = await openSeal(
    { random, tables, writer },
    {
      file: config.data.masterKeyFile,
      credentialsDirectory: process.env['CREDENTIALS_DIRECTORY'],
    },
  );
  env.addresses?.useKey(seal.derive(LOG_KEY_PURPOSE));
  const observeCounts = (observe: (typeof observers)[number]) => void observers.push(observe);
  return {
    ...storage,
    observeCounts,
    seal,
    tokens: createTokens(seal, createTokenAccounts({ tables, seal })),
  };
}
