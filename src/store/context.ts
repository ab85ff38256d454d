import type { Registry } from 'prom-client';
import type { Config } from '../config/schema.ts';
import type { ExpiryClock } from '../core/expiry-clock.ts';
import type { Runtime } from '../core/runtime.ts';
import type { Seal } from '../core/seal.ts';
import type { Writer } from './database/writer.ts';
import type { Reader } from './readers/reads.ts';
import type { Tables } from './tables.ts';

/**
 * What a part of the daemon receives first. A part takes what it uses of it, so that a test has to create no more:
 * `createX(context: Pick<Context, 'clock' | 'tables'>, …)`; its collaborators follow.
 */
export interface Context extends Runtime {
  /** A reload changes its fields: read them when they are used. */
  config: Config;
  expiry: ExpiryClock;
  registry: Registry;
  /** Reads on this thread. */
  tables: Tables;
  /** Reads in other threads, within the account's share of them. */
  reader: Reader;
  writer: Writer;
  seal: Seal;
}
