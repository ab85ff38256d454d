import Table from 'cli-table3';
import { type AccountLimits, createAccountLimits } from '../accounts/limits.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import { createIds, type Ids } from '../core/ids.ts';
import { type Random, systemRandom } from '../core/random.ts';
import type { Seal } from '../core/seal.ts';
import { openDatabase } from '../store/database.ts';
import { openSeal } from '../store/master-key.ts';
import { createTables, type Tables } from '../store/tables.ts';
import { createWriter, type Writer } from '../store/writer.ts';

/**
 * What every command stands on: the configuration, the database (opened when first asked for), and how it
 * speaks. Data goes to stdout, everything else to stderr; a failure sets the exit status and is one line.
 */
export interface CliContext {
  config(): Config;
  /** The database of `data.dir`; works while the daemon runs. */
  open(): Promise<House>;
  print(text: string): void;
  printJson(value: unknown): void;
  /** Rows as a table, or as a JSON array; `empty` is said to people when there are none. */
  printRows(rows: readonly Record<string, unknown>[], options: { json: boolean; empty: string }): void;
  /** Says what failed; the exit status will be 1. */
  fail(message: string): void;
  /** Says what is wrong with the command line; the exit status will be 2. */
  usage(message: string): void;
  close(): Promise<void>;
}

export interface House {
  config: Config;
  tables: Tables;
  writer: Writer;
  clock: Clock;
  ids: Ids;
  random: Random;
  limits: AccountLimits;
  /** Reads or makes the master key; rejects when it is not this database's. */
  seal(): Promise<Seal>;
}

export const FAILED = 1;
export const USAGE = 2;

export function createContext(configFile: () => string | undefined): CliContext {
  let house: House | null = null;
  let closeHouse = async () => {};

  const config = () => {
    const file = configFile();
    return loadConfig(file === undefined ? {} : { file });
  };
  const complain = (message: string, status: number) => {
    console.error(`postrider: ${message}`);
    process.exitCode = status;
  };

  return {
    config,
    open: async () => {
      if (house !== null) return house;
      const settings = config();
      const db = openDatabase(settings.data.dir);
      const tables = createTables(db);
      const writer = createWriter(db, tables);
      closeHouse = async () => {
        await writer.close();
        db.close();
      };
      house = {
        config: settings,
        tables,
        writer,
        clock: systemClock,
        ids: createIds(systemClock, systemRandom),
        random: systemRandom,
        limits: createAccountLimits({ tables, defaults: settings.limits.account }),
        seal: () =>
          openSeal({
            file: settings.data.masterKeyFile,
            random: systemRandom,
            tables,
            writer,
            credentialsDirectory: process.env['CREDENTIALS_DIRECTORY'],
          }),
      };
      return house;
    },
    print: (text) => console.log(text),
    printJson: (value) => console.log(JSON.stringify(value, null, 2)),
    printRows: (rows, { json, empty }) => {
      if (json) console.log(JSON.stringify(rows, null, 2));
      else if (rows.length === 0) console.error(empty);
      else console.log(tableOf(rows));
    },
    fail: (message) => complain(message, FAILED),
    usage: (message) => complain(message, USAGE),
    close: () => closeHouse(),
  };
}

function tableOf(rows: readonly Record<string, unknown>[]): string {
  const head = Object.keys(rows[0] ?? {});
  const table = new Table({ head, style: { head: [], border: [], compact: true } });
  for (const row of rows) table.push(head.map((name) => cell(row[name])));
  return table.toString();
}

function cell(value: unknown): string {
  return typeof value === 'string'
    ? value
    : value === null || value === undefined
      ? ''
      : JSON.stringify(value);
}
