import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fchownSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { accountInputSchema, createAccounts } from '../../accounts/accounts.ts';
import { parsePostalAddress } from '../../accounts/postal-address.ts';
import { loadConfig } from '../../config/load.ts';
import { errorCode, errorText } from '../../core/errors.ts';
import { OperatorFault } from '../../core/operator-fault.ts';
import { isRefusal } from '../../core/refusal.ts';
import type { DomainRecords } from '../../domains/records.ts';
import { parseInput } from '../../http/validation/parse.ts';
import { DATABASE_FILE } from '../../store/database/database.ts';
import { type CliContext, createContext } from '../context.ts';
import { openDomains } from '../domains/open-domains.ts';
import { programName, quoted } from '../program-name.ts';
import { configToml } from './config-file.ts';
import type { InitPlan } from './plan.ts';
import type { ServiceUser } from './service-user.ts';

/** What `init` created. */
export interface Created {
  configFile: string;
  dataDir: string;
  /** As in the configuration. */
  apiListen: string;
  /** As in the configuration, or "off". */
  mxListen: string;
  /** Null: that of the route to the destination. */
  sourceAddress: string | null;
  account: { accountId: string; keys: Record<string, string> } | null;
  /** Messages can be sent only by an account with a company name and a postal address. */
  hasFooter: boolean;
  domain: { domainId: string; name: string; records: DomainRecords } | null;
}

export interface InstallationOptions {
  /** Absolute. */
  configFile: string;
  /** Owner of the data and group of the file; null: the current user. */
  owner: ServiceUser | null;
  /** Aborted by SIGINT and SIGTERM. */
  signal: AbortSignal;
}

/** Throws OperatorFault when the configuration file or the content of the data directory exists. */
export function refuseExisting(configFile: string, dataDir: string): void {
  if (existsSync(configFile)) {
    const used = configuredDataDir(configFile) ?? dataDir;
    throw new OperatorFault(
      `${configFile} exists: nothing was changed. Edit it and run "${programName()} config check", or set up another installation with --output FILE and --data DIR. ${startOver([configFile], used)}`,
    );
  }
  if (existsSync(dataDir) && !isEmpty(dataDir))
    throw new OperatorFault(
      `${dataDir} is not empty: nothing was changed. Use another directory (--data DIR). ${startOver([], dataDir)}`.trim(),
    );
}

/** What to delete before another `init`: the files, and the directory if it contains a database. */
function startOver(files: readonly string[], dataDir: string): string {
  const paths = [...files, ...(existsSync(join(dataDir, DATABASE_FILE)) ? [dataDir] : [])];
  return paths.length === 0
    ? ''
    : `To start over, which deletes all accounts, keys and mail of this installation, stop the daemon, run "rm -r ${paths.map(quoted).join(' ')}", and run init again`;
}

/** `data.dir` of an existing configuration; null: it is not valid, and names none. */
function configuredDataDir(file: string): string | null {
  try {
    return loadConfig({ file }).data.dir;
  } catch (error) {
    if (error instanceof OperatorFault) return null;
    throw error;
  }
}

/** Throws OperatorFault when the path is not a directory that this user may read. */
function isEmpty(dir: string): boolean {
  try {
    // The source tree contains the directory with an empty .gitkeep.
    return readdirSync(dir).every((name) => name === '.gitkeep');
  } catch (error) {
    const problem =
      errorCode(error) === 'ENOTDIR' ? 'is not a directory' : `cannot be read (${errorText(error)})`;
    throw new OperatorFault(`${dir} ${problem}: use another directory (--data DIR)`, { cause: error });
  }
}

/**
 * Creates the file, the data directory, the account and the domain, all or nothing: after a failure everything that was
 * created is removed again, and the error lists it. The file gets its name last, so that a daemon never starts with an
 * incomplete installation.
 */
export async function createInstallation(plan: InitPlan, options: InstallationOptions): Promise<Created> {
  const { configFile, owner, signal } = options;
  const dataDir = resolve(plan.dataDir);
  refuseExisting(configFile, dataDir);
  const undo: (() => void)[] = [];
  const removed: string[] = [];
  /** Creates a directory with its parents. */
  const createDir = (dir: string, mode: number) => {
    if (existsSync(dir)) return;
    createDir(dirname(dir), 0o755);
    mkdirSync(dir, { mode });
    undo.push(() => {
      rmdirSync(dir);
      removed.push(dir);
    });
  };
  try {
    const configDir = dirname(configFile);
    const isNew = !existsSync(configDir);
    createDir(configDir, 0o755);
    if (isNew && owner !== null) {
      // As the package creates it for the only daemon.
      chownSync(configDir, 0, owner.gid);
      chmodSync(configDir, 0o750);
    }
    createDir(dataDir, 0o700);
    undo.push(() => clear(dataDir));
    const draft = join(configDir, `.${basename(configFile)}.${process.pid}`);
    undo.push(() => rmSync(draft, { force: true }));
    writeConfig(draft, configToml(plan, configFile), owner);
    const context = createContext(() => draft);
    let content: Pick<Created, 'account' | 'domain'>;
    try {
      content = await fillDatabase(context, plan, signal);
    } finally {
      await context.close();
    }
    signal.throwIfAborted();
    if (owner !== null) changeOwner(dataDir, owner);
    // Unlike a rename, a link never replaces a file that was created meanwhile.
    linkSync(draft, configFile);
    undo.length = 0;
    rmSync(draft);
    syncDir(configDir);
    const hasFooter = typeof plan.account?.company === 'string' && plan.account.address !== null;
    const { apiListen, mxListen, sourceAddress } = plan;
    return { configFile, dataDir, apiListen, mxListen, sourceAddress, hasFooter, ...content };
  } catch (error) {
    const isNothingCreated = undo.length === 0;
    const failures = undoAll(undo);
    const list = removed.length === 0 ? '' : ` (${removed.join(', ')})`;
    const cleanup = isNothingCreated
      ? 'Nothing was created'
      : failures.length === 0
        ? `Everything that was created was removed again${list}`
        : `${failures.join('; ')}${list}`;
    const reason = signal.aborted ? 'interrupted' : errorText(error);
    throw new OperatorFault(`init failed: ${reason}. ${cleanup}`, { cause: error });
  }
}

/** Calls the functions in reverse order; returns the failures. */
function undoAll(undo: (() => void)[]): string[] {
  return undo.toReversed().flatMap((step) => {
    try {
      step();
      return [];
    } catch (error) {
      return [`Cleanup failed: ${errorText(error)}`];
    }
  });
}

/** Creates the database, the account and the domain. */
async function fillDatabase(
  context: CliContext,
  { account, domain }: InitPlan,
  signal: AbortSignal,
): Promise<Pick<Created, 'account' | 'domain'>> {
  const deps = await context.open({ create: true });
  // Creates the master key, which belongs to the installation.
  await deps.openSeal();
  if (account === null) return { account: null, domain: null };
  const input = parseInput(
    accountInputSchema,
    {
      name: account.name,
      companyName: account.company ?? undefined,
      companyAddress: account.address === null ? undefined : parsePostalAddress(account.address),
    },
    'account',
  );
  if (isRefusal(input)) throw new OperatorFault(input.message);
  const result = await createAccounts(deps).create(input);
  if (isRefusal(result)) throw new OperatorFault(result.message);
  const { accountId } = result.account;
  const created = { accountId, keys: result.keys };
  signal.throwIfAborted();
  if (domain === null) return { account: created, domain: null };
  const domains = await openDomains(context);
  const registration = await domains.register(accountId, {
    domain: domain.name,
    useCaseId: domain.useCase,
    groupId: undefined,
  });
  if (isRefusal(registration)) throw new OperatorFault(registration.message);
  const { domain_id: domainId } = registration.domain;
  await domains.provisionSecondary(domainId);
  const row = deps.tables.domains.byId(domainId) ?? registration.domain;
  return { account: created, domain: { domainId, name: row.name, records: domains.records(row) } };
}

/** Mode 0640: the daemon's group reads the settings, only their owner changes them. */
function writeConfig(file: string, text: string, owner: ServiceUser | null): void {
  const fd = openSync(file, 'wx', 0o640);
  try {
    if (owner !== null) fchownSync(fd, 0, owner.gid);
    writeSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  // The umask may have removed the group's permission.
  chmodSync(file, 0o640);
}

function changeOwner(dir: string, { uid, gid }: ServiceUser): void {
  for (const name of readdirSync(dir)) chownSync(join(dir, name), uid, gid);
  chownSync(dir, uid, gid);
}

function clear(dir: string): void {
  for (const name of readdirSync(dir)) rmSync(join(dir, name), { recursive: true });
}

function syncDir(dir: string): void {
  const fd = openSync(dir, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
