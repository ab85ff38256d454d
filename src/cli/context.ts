import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { type AccountLimits, createAccountLimits } from '../accounts/limits.ts';
import { adviceFor } from '../config/installations.ts';
import { CONFIG_FILES, loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { monotonicClock, systemClock } from '../core/clock.ts';
import { createIds } from '../core/ids.ts';
import { createLog } from '../core/log.ts';
import { isPresent } from '../core/operator-fault.ts';
import { systemRandom } from '../core/random.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import type { Seal } from '../core/seal.ts';
import { createResolver, type Resolver } from '../dns/resolver.ts';
import type { GenerateKey } from '../domains/key-queue.ts';
import type { Context } from '../store/context.ts';
import { DATABASE_FILE, type DaemonLock, openDatabase } from '../store/database/database.ts';
import { StoreFault } from '../store/database/failure.ts';
import { createWriter } from '../store/database/writer.ts';
import { openSeal } from '../store/master-key.ts';
import { formatBytes } from '../store/migrate/upgrade.ts';
import { createLocalReader } from '../store/readers/reads.ts';
import { openWithReserve, RESERVE_BYTES, releaseReserve, withReserve } from '../store/reserve.ts';
import { createTables } from '../store/tables.ts';
import {
  DEFAULT_WIDTH,
  escapeControlsInText,
  formatRecord,
  formatTable,
  type TableOptions,
} from './output/table.ts';
import { programName } from './program-name.ts';

/**
 * The configuration, the database (opened on first use) and the output of a command. Data is written to stdout, everything
 * else to stderr. A failure sets the exit status and is reported on one line, or with `--json` as one JSON object.
 */
export type CliContext = ReturnType<typeof createContext>;

/** What commands that read or change the database receive. Nothing is logged. */
export interface Opened
  extends Pick<
    Context,
    'clock' | 'config' | 'ids' | 'log' | 'monotonic' | 'random' | 'reader' | 'tables' | 'writer'
  > {
  limits: AccountLimits;
  /** Reads or creates the master key; rejects if it is not the key of this database. */
  openSeal(): Promise<Seal>;
  /** A new resolver of `dns.resolvers`. */
  createResolver(): Resolver;
  /** Generates DKIM keys; default: new RSA keys. */
  generateKey?: GenerateKey | undefined;
}

interface OpenOptions {
  create?: boolean;
  lock?: DaemonLock;
  account?: string | undefined;
}

/** Ends a command; its message is reported. */
class CommandFault extends Error {
  override readonly name = 'CommandFault';
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** Exit statuses; 0 is success. */
export const FAILED = 1;
export const USAGE = 2;
export const PARTIAL = 3;
/** Another daemon has taken over: the service must not be restarted. */
export const SUPERSEDED = 4;

/** Formats an error as one line of text, or as JSON. */
export function formatError(message: string, status: number, json: boolean): string {
  if (!json) return `postrider: ${escapeControlsInText(message)}`;
  const code = status === USAGE ? 'USAGE' : status === PARTIAL ? 'PARTIAL' : 'FAILED';
  return JSON.stringify({ success: false, error: { code, message } });
}

export interface CliContextOptions extends Pick<Opened, 'generateKey'> {
  /** Whether errors are written as JSON. */
  json?: boolean;
}

/**
 * Reads nothing yet: each call of `config` reads the file again and throws for an invalid one; `open` opens the
 * database once, until `close`. Each failure is reported on stderr and sets `process.exitCode`.
 */
export function createContext(
  configFile: () => string | undefined,
  { json = false, generateKey }: CliContextOptions = {},
) {
  let opened: Opened | null = null;
  let printsJson = false;
  const closing: (() => Promise<void> | void)[] = [];

  const config = () => {
    const file = configFile();
    return loadConfig(file === undefined ? {} : { file });
  };
  /** A message for a person, whose commands are those of the instance that the command is for. */
  const advised = (message: string): string => {
    const file = configFile() ?? process.env['POSTRIDER_CONFIG'];
    return file === undefined ? message : adviceFor(message, resolve(file));
  };
  /** Writes a note to stderr without changing the exit status; with `--json` as one JSON object. */
  const note = (message: string): void => {
    const text = advised(message);
    console.error(json ? JSON.stringify({ note: text }) : `postrider: ${escapeControlsInText(text)}`);
  };
  /** Removes the reserve of a full disk; false: there is none. */
  const releaseSpace = (dir: string): boolean => {
    const isReleased = releaseReserve(dir);
    if (isReleased)
      note(
        `The disk is full: the reserve of ${formatBytes(RESERVE_BYTES)} in ${dir} was released for this command. Free space; the daemon reserves it again then`,
      );
    return isReleased;
  };
  /** Reports a failure, and continues. */
  const report = (message: string, status: number): void => {
    console.error(formatError(advised(message), status, json));
    process.exitCode = status;
  };

  const fault = (message: string, status: number): never => {
    throw new CommandFault(message, status);
  };
  const refusedAs = ({ code, message }: Refusal, status?: number): never =>
    fault(message, status ?? (code === 'VALIDATION_ERROR' ? USAGE : FAILED));
  const printJson = (value: unknown): void => console.log(JSON.stringify(value, null, 2));

  function openOnce(create: boolean, lock: DaemonLock | undefined): Opened {
    if (opened !== null) return opened;
    const settings = config();
    if (create) refuseMovedData(settings);
    else requireData(settings);
    const release = () => releaseSpace(settings.data.dir);
    const opening = () =>
      openDatabase(settings.data.dir, {
        ...(lock === undefined ? {} : { lock }),
        onMigrated: ({ from, to, copy }) =>
          note(
            `Migrated the database in ${settings.data.dir} from schema ${from} to ${to}; the database before the migration: ${copy}`,
          ),
      });
    const db = openWithReserve(opening, release);
    const tables = createTables(db);
    const writer = withReserve(createWriter(db, tables), release);
    closing.push(() => void db.close(), writer.close);
    opened = {
      config: settings,
      tables,
      reader: createLocalReader(tables),
      writer,
      clock: systemClock,
      monotonic: monotonicClock,
      ids: createIds(systemClock, systemRandom),
      random: systemRandom,
      log: createLog({ level: 'silent', hashAddresses: true }, { write: () => {} }),
      limits: createAccountLimits({ tables, defaults: settings.limits.account }),
      generateKey,
      openSeal: () =>
        openSeal(
          { random: systemRandom, tables, writer },
          {
            file: settings.data.masterKeyFile,
            credentialsDirectory: process.env['CREDENTIALS_DIRECTORY'],
          },
        ),
      createResolver: () => {
        const resolver = createResolver({
          resolvers: settings.dns.resolvers,
          timeoutMs: settings.dns.timeoutMs,
          monotonic: monotonicClock,
          random: systemRandom,
        });
        closing.push(resolver.close);
        return resolver;
      },
    };
    return opened;
  }

  return {
    /** Runs a command, which prints its data as JSON if `asJson`. Reports the fault that `fail` or `usage` throws. */
    run: async (asJson: boolean, command: () => Promise<unknown>): Promise<void> => {
      printsJson = asJson;
      try {
        await command();
      } catch (error) {
        if (!(error instanceof CommandFault)) throw error;
        report(error.message, error.status);
      }
    },
    /** Whether data is printed as JSON. */
    get json() {
      return printsJson;
    },
    config,
    /** `data` of the configuration. Throws StoreFault when there is no database in it. */
    existingData: (): Config['data'] => {
      const settings = config();
      requireData(settings);
      return settings.data;
    },
    /**
     * The database of `data.dir`; works while the daemon runs. Throws StoreFault when there is none, unless `create`
     * is set. `lock`: that of a command that excludes the daemon. Fails unless `account`, if given, exists.
     */
    open: async ({ create = false, lock, account }: OpenOptions = {}): Promise<Opened> => {
      const found = openOnce(create, lock);
      if (account !== undefined && found.tables.accounts.get(account) === null)
        fault(`There is no account ${account}`, FAILED);
      return found;
    },
    /** Prints text for a person, with control characters escaped that data from elsewhere may contain. */
    print: (text: string): void => console.log(escapeControlsInText(text)),
    /** Prints text with styles of the terminal, in which the caller has removed other control characters. */
    printStyled: (text: string): void => console.log(text),
    printJson,
    /** Prints the value as JSON, or the text. */
    show: (value: unknown, text: () => string | readonly string[]): void => {
      if (printsJson) return printJson(value);
      const shown = text();
      console.log(escapeControlsInText(typeof shown === 'string' ? shown : shown.join('\n')));
    },
    /**
     * Prints rows as a table, with these fields or what the function returns as its columns, or as a JSON array; without rows
     * prints `empty` to stderr.
     */
    printRows: <Row extends object>(
      rows: readonly Row[],
      empty: string,
      columns?: readonly (keyof Row)[] | ((row: Row) => object),
    ): void => {
      if (printsJson) printJson(rows);
      else if (rows.length === 0) console.error(empty);
      else console.log(formatTable(columns === undefined ? rows : cellsOf(rows, columns), tableOptions()));
    },
    /** Prints an object as lines of name and value, or as JSON. */
    printRecord: (record: object): void => {
      if (printsJson) printJson(record);
      else console.log(formatRecord(record, tableOptions()));
    },
    /**
     * Asks on the terminal; true if the answer is yes. Without a terminal, reports that `--yes` is required and returns
     * false.
     */
    confirm: async (question: string): Promise<boolean> => {
      if (!process.stdin.isTTY) {
        report(`${question} Confirm with --yes.`, FAILED);
        return false;
      }
      const terminal = createInterface({ input: process.stdin, output: process.stderr });
      try {
        const answer = await terminal.question(`${question} [y/N] `);
        if (/^y(?:es)?$/i.test(answer.trim())) return true;
        report('Nothing was changed', FAILED);
        return false;
      } finally {
        terminal.close();
      }
    },
    note,
    // Methods, after whose calls the compiler knows that they do not return.
    /** Ends the command with a failure; the exit status will be 1. */
    fail(message: string): never {
      return fault(message, FAILED);
    },
    /** Ends the command with an error in the command line; the exit status will be 2. */
    usage(message: string): never {
      return fault(message, USAGE);
    },
    /**
     * The result, unless it is a refusal, which ends the command: with `status`, by default as a usage error for invalid input
     * and as a failure for anything else.
     */
    accepted: <Result>(result: Result | Refusal, status?: typeof FAILED | typeof USAGE): Result =>
      isRefusal(result) ? refusedAs(result, status) : result,
    report,
    /** Reports a partial success or a failed check, if `message` is given; the exit status will be 3. */
    partial: (message?: string): void => {
      if (message !== undefined) report(message, PARTIAL);
      process.exitCode = PARTIAL;
    },
    /**
     * Reports the failures of a command with several arguments: as a partial success if the others, `succeeded` of them, were
     * processed, else as a failure.
     */
    failSome: (messages: readonly string[], succeeded: number): void => {
      for (const message of messages) report(message, succeeded > 0 ? PARTIAL : FAILED);
    },
    /** `work` is called by `close`, the last one first. */
    onClose: (work: () => Promise<void> | void): void => void closing.push(work),
    close: async (): Promise<void> => {
      // All of them, also after one that fails: an open thread would keep the process.
      const failures: unknown[] = [];
      for (const close of closing.splice(0).toReversed()) {
        try {
          await close();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}

function cellsOf<Row extends object>(
  rows: readonly Row[],
  columns: readonly (keyof Row)[] | ((row: Row) => object),
): object[] {
  if (typeof columns === 'function') return rows.map(columns);
  return rows.map((row) => Object.fromEntries(columns.map((name) => [name, row[name]])));
}

/**
 * Without a configuration file data.dir is relative to the working directory. Throws StoreFault when a database would be
 * created although one exists there.
 */
export function refuseMovedData({ data, file }: Config): void {
  const earlier = resolve('data');
  if (file === null || earlier === data.dir || existsSync(join(data.dir, DATABASE_FILE))) return;
  if (!existsSync(join(earlier, DATABASE_FILE))) return;
  throw new StoreFault(
    `There is no database in ${data.dir}, but there is one in ${earlier}. To use it, set dir = "${earlier}" in [data] of ${file}; to create a new one, start in another directory`,
  );
}

/**
 * Throws StoreFault without a database: a command in the wrong directory must not create a second, empty one. Throws an
 * OperatorFault if this user may not read the directory.
 */
function requireData({ data, file }: Config): void {
  const remedy = `Run the command as the user of the daemon (with the package also as root). That user must own the directory: chown -R USER ${data.dir}`;
  if (isPresent(join(data.dir, DATABASE_FILE), remedy)) return;
  const source =
    file === null ? `no configuration file was found in ${CONFIG_FILES.join(' or ')}` : `data.dir of ${file}`;
  throw new StoreFault(
    `There is no database in ${data.dir} (${source}). Specify the configuration with --config FILE, or set up this machine with "${programName()} init"`,
  );
}

/** The width of the terminal, and whether it shows colors (NO_COLOR: https://no-color.org). */
export function tableOptions(): Pick<TableOptions, 'width' | 'color'> {
  const { isTTY, columns } = process.stdout;
  return {
    width: isTTY && columns > 0 ? columns : DEFAULT_WIDTH,
    color: isTTY && (process.env['NO_COLOR'] ?? '') === '',
  };
}
