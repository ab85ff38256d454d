import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type FileHandle, link, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { PassThrough, Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { createAccounts } from '../accounts/accounts.ts';
import { flush } from '../backup/files.ts';
import { programVersion } from '../config/version.ts';
import { DAY, iso } from '../core/clock.ts';
import { errorCode } from '../core/errors.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import { mac } from '../core/seal.ts';
import { ownTokenKey } from '../mail/tokens.ts';
import { instanceIn } from '../store/backup/identity.ts';
import type { Context } from '../store/context.ts';
import { databaseFileIn } from '../store/database/connection.ts';
import { formatBytes } from '../store/migrate/upgrade.ts';
import type { Tables } from '../store/tables.ts';
import { type ExportedAccount, openExportedAccount } from '../store/transfer/exported-account.ts';
import { TRANSFER_TYPES, type TransferRecord, type TransferValue } from '../store/transfer/kinds.ts';
import {
  type End,
  type FileContext,
  type FileSeal,
  FORMAT,
  fileSeal,
  type Header,
  MAX_LINE_BYTES,
  macKey,
  newKdf,
  totalOf,
  VERSION,
} from './format.ts';
import { withSecrets } from './secrets.ts';
import { tokenKeySealContext } from './token-accounts.ts';

type ExportContext = FileContext & Pick<Context, 'tables' | 'writer' | 'clock' | 'ids' | 'seal'>;

export interface ExportOptions {
  accountId: string;
  dataDir: string;
  hostname: string;
  passphrase: string;
  /** A new file, or a stream. */
  output: string | Writable;
  /** The account stays enabled, and this installation sends what is in the queue. */
  withoutQueue: boolean;
  /** Called every PROGRESS_RECORDS records with the number of records that are written. */
  onProgress?(done: number, total: number): void;
  signal?: AbortSignal;
}

export interface ExportResult {
  accountId: string;
  counts: Header['counts'];
  /** Size of the file. */
  bytes: number;
  /** Messages of the account in the queue of this installation. */
  queued: number;
  /** Whether the export disabled the account. */
  disabled: boolean;
}

/** Time for which bounces and complaints about a message are expected. */
export const REPORTS_EXPECTED_MS = 30 * DAY;
/** The write-ahead log may grow by this much: it cannot restart before the export ends. */
const MAX_LOG_GROWTH_BYTES = 4 * 2 ** 30;
/** Bytes of lines that are compressed together. */
const CHUNK_BYTES = 64 * 1024;
const PROGRESS_RECORDS = 1000;

/**
 * Writes the state of an account at one moment to a file; the daemon may be running. Without `withoutQueue` the account is
 * disabled first, so that only recipients change its data afterwards. Refuses (`INVALID_STATE`) while messages,
 * campaigns or erasures of the account are unfinished. Throws OperatorFault when the file cannot be written: then no file
 * remains, and the account has its previous status.
 */
export async function exportAccount(
  deps: ExportContext,
  options: ExportOptions,
): Promise<ExportResult | Refusal> {
  const { accountId, withoutQueue, passphrase } = options;
  const kdf = newKdf(deps.random);
  const seal = await fileSeal(passphrase, kdf, deps);
  const refusal = refusalOf(deps.tables, options);
  if (refusal !== null) return refusal;
  if (typeof options.output === 'string') requireNew(options.output);
  const accounts = createAccounts(deps);
  const disables = !withoutQueue && accounts.get(accountId)?.status === 'active';
  const enableAgain = async () => {
    if (disables) await accounts.setStatus(accountId, 'active');
  };
  if (disables) await accounts.setStatus(accountId, 'disabled');
  try {
    // A request in progress may have queued a message before the account was disabled.
    const late = refusalOf(deps.tables, options);
    if (late !== null) {
      await enableAgain();
      return late;
    }
    const written = await writeFile(deps, options, kdf, seal);
    const { messages: queued } = deps.tables.queue.counts({ accountId });
    return { accountId, ...written, queued, disabled: disables };
  } catch (error) {
    await enableAgain();
    throw error;
  }
}

function refusalOf(tables: Tables, { accountId, withoutQueue }: ExportOptions): Refusal | null {
  if (tables.accounts.get(accountId) === null)
    return refuse('ACCOUNT_NOT_FOUND', `There is no account ${accountId}`);
  if (tables.accountImports.get(accountId) !== null)
    return refuse(
      'INVALID_STATE',
      `The import of account ${accountId} is not complete: run "postrider account import" with its file again`,
    );
  const open = tables.campaignSends
    .open()
    .flatMap((seq) => tables.campaignSends.get(seq) ?? [])
    .find((send) => send.account_id === accountId);
  if (open !== undefined)
    return refuse(
      'INVALID_STATE',
      `Campaign ${open.campaign_id} is ${open.status}: wait until it is sent, or cancel it`,
    );
  const isErasing = tables.erasures
    .pending()
    .some((seq) => tables.erasures.get(seq)?.account_id === accountId);
  if (isErasing)
    return refuse(
      'INVALID_STATE',
      `People of account ${accountId} are being erased: try again when that is complete`,
    );
  const { messages } = tables.queue.counts({ accountId });
  if (messages > 0 && !withoutQueue)
    return refuse(
      'INVALID_STATE',
      `Account ${accountId} has ${messages} ${messages === 1 ? 'message' : 'messages'} in the queue: wait until they are sent, or let this daemon send them with --without-queue`,
    );
  return null;
}

async function writeFile(
  deps: ExportContext,
  options: ExportOptions,
  kdf: Header['kdf'],
  seal: FileSeal,
): Promise<Pick<ExportResult, 'counts' | 'bytes'>> {
  const { accountId, output, signal } = options;
  const now = deps.clock.now();
  const account = openExportedAccount(databaseFileIn(options.dataDir), {
    accountId,
    now,
    messagesSince: now - REPORTS_EXPECTED_MS,
  });
  try {
    const header: Header = {
      format: FORMAT,
      version: VERSION,
      program: programVersion(),
      schema: account.schema,
      createdAt: iso(now),
      hostname: options.hostname,
      instanceId: instanceIn(deps.tables)?.instanceId ?? null,
      accountId,
      kdf,
      tokenKey: seal.seal(tokenKeyOf(deps, accountId), tokenKeySealContext(accountId)).toString('base64'),
      counts: account.counts(),
    };
    let bytes = 0;
    const counted = new PassThrough();
    counted.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    const source = Readable.from(lines(deps, options, account, header, seal));
    const stop = signal === undefined ? {} : { signal };
    if (typeof output === 'string')
      await toFile(output, (file) =>
        pipeline(source, createGzip(), counted, (chunks: AsyncIterable<Buffer>) => save(file, chunks), stop),
      );
    else await pipeline(source, createGzip(), counted, output, { end: false, ...stop });
    return { counts: header.counts, bytes };
  } finally {
    account.close();
  }
}

/** The keys of the account's tokens: those that were imported with it, or those of this installation. */
function tokenKeyOf({ tables, seal }: ExportContext, accountId: string): Buffer {
  const imported = tables.tokenKeys.of(accountId);
  return imported === null
    ? ownTokenKey(seal, accountId)
    : seal.open(imported.key, tokenKeySealContext(accountId));
}

/** Throws OperatorFault when the file or its partial file exists. */
function requireNew(name: string): void {
  const existing = [name, `${name}.partial`].find((file) => existsSync(file));
  if (existing !== undefined)
    throw new OperatorFault(`${existing} already exists: specify another file or remove it`);
}

/** Writes `<name>.partial`, and links it to `name` when it is on disk. */
async function toFile(name: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  const partial = `${name}.partial`;
  try {
    const file = await open(partial, 'wx', 0o600);
    try {
      await write(file);
      await file.sync();
      // Unlike a rename, this fails when the file exists.
      await link(partial, name);
    } finally {
      await file.close();
      await rm(partial, { force: true });
    }
    await flush(dirname(name));
  } catch (error) {
    // Created by another process meanwhile.
    if (errorCode(error) === 'EEXIST') requireNew(name);
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw new OperatorFault(`${name} cannot be written: ${error.message}`, { cause: error });
  }
}

async function save(file: FileHandle, chunks: AsyncIterable<Buffer>): Promise<void> {
  for await (const chunk of chunks) await file.writeFile(chunk);
}

/** The lines of the file in portions. */
async function* lines(
  { seal: own }: ExportContext,
  { onProgress }: ExportOptions,
  account: ExportedAccount,
  header: Header,
  seal: FileSeal,
): AsyncGenerator<Buffer> {
  const digest = createHash('sha256');
  const total = totalOf(header.counts);
  let waiting: Buffer[] = [];
  let size = 0;
  let records = 0;
  const reseal = (secret: Buffer, context: string) => seal.seal(own.open(secret, context), context);
  const add = (value: object) => {
    const line = Buffer.from(`${JSON.stringify(value)}\n`);
    if (line.length > MAX_LINE_BYTES)
      throw new OperatorFault(
        `A record is larger than ${formatBytes(MAX_LINE_BYTES)} and cannot be exported`,
      );
    waiting.push(line);
    size += line.length;
    digest.update(line);
  };
  const take = () => {
    const chunk = Buffer.concat(waiting);
    waiting = [];
    size = 0;
    return chunk;
  };
  add(header);
  for (const type of TRANSFER_TYPES) {
    for (const record of account.records(type)) {
      add({ type, record: portable(withSecrets(type, record, reseal)) });
      if (++records % PROGRESS_RECORDS === 0) {
        onProgress?.(records, total);
        checkLogGrowth(account);
      }
      if (size >= CHUNK_BYTES) yield take();
    }
  }
  onProgress?.(records, total);
  const sha256 = digest.copy().digest();
  const end: End = {
    end: true,
    records,
    sha256: sha256.toString('hex'),
    mac: mac(macKey(seal), sha256).toString('hex'),
  };
  add(end);
  yield take();
}

function checkLogGrowth(account: ExportedAccount): void {
  const growth = account.logGrowth();
  if (growth > MAX_LOG_GROWTH_BYTES)
    throw new OperatorFault(
      `The write-ahead log has grown by ${formatBytes(growth)} during the export, which was stopped: export at a time with less load`,
    );
}

/** Converts bytes to base64. */
function portable(record: TransferRecord): object {
  const entries = Object.entries(record).map(([field, value]): [string, TransferValue | object[]] => {
    if (Array.isArray(value)) return [field, value.map(portable)];
    return [field, Buffer.isBuffer(value) ? value.toString('base64') : value];
  });
  return Object.fromEntries(entries);
}
