import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type FileHandle, link, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { PassThrough, Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
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
import { createPortions } from '../store/maintenance/portions.ts';
import { formatBytes } from '../store/migrate/upgrade.ts';
import type { Tables } from '../store/tables.ts';
import { type AccountMoveRow, CHANGE_KINDS, type MoveMarks } from '../store/transfer/account-moves.ts';
import { type ExportedAccount, openExportedAccount } from '../store/transfer/exported-account.ts';
import { TRANSFER_TYPES, type TransferRecord, type TransferValue } from '../store/transfer/kinds.ts';
import {
  CHANGED_KEYS,
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
  /**
   * whole: disables the account and writes everything. first: writes everything while the account is in use, and has the
   * database note what changes from then on. difference: disables the account and writes what changed after the first file.
   * late: writes the opt-outs and suppressions that arrived since the account was disabled.
   */
  part: Header['part'];
  /** This installation sends what is in the queue. */
  withoutQueue: boolean;
  /** How long requests in progress may take when the account is disabled; ms. */
  settleMs: number;
  /** How long to wait after that until the queue has no message; ms. */
  waitMs: number;
  /** Called when the account was disabled, with the messages in its queue. */
  onWaiting?(queued: number): void;
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
  /** Time in which requests were refused until the file was written; ms. 0 for a first file. */
  refusedMs: number;
}

/** Time for which bounces and complaints about a message are expected. */
export const REPORTS_EXPECTED_MS = 30 * DAY;
/** The write-ahead log may grow by this much: it cannot restart before the export ends. */
const MAX_LOG_GROWTH_BYTES = 4 * 2 ** 30;
/** Bytes of lines that are compressed together. */
const CHUNK_BYTES = 64 * 1024;
const PROGRESS_RECORDS = 1000;
const QUEUE_INTERVAL_MS = 50;
const MOVE_ID_BYTES = 16;

/**
 * Writes the state of an account at one moment to a file; the daemon may be running. Unless it is a first file, the account is
 * disabled before that, so that only recipients change its data afterwards. Refuses (`INVALID_STATE`) while messages,
 * campaigns or erasures of the account are unfinished. Throws OperatorFault when the file cannot be written: then no file
 * remains, and the account has its previous status. After an export that was killed it may be disabled: it can be exported
 * again, or enabled.
 */
export async function exportAccount(
  deps: ExportContext,
  options: ExportOptions,
): Promise<ExportResult | Refusal> {
  const { accountId, part, passphrase } = options;
  const kdf = newKdf(deps.random);
  const seal = await fileSeal(passphrase, kdf, deps);
  const refusal = refusalOf(deps.tables, options);
  if (refusal !== null) return refusal;
  if (typeof options.output === 'string') requireNew(options.output);
  const queued = () => deps.tables.queue.counts({ accountId }).messages;
  if (part === 'first') {
    const move = await beginMove(deps, accountId);
    const { marks, ...written } = await writeFile(deps, options, { kdf, seal, move });
    await deps.writer.run((tx) =>
      tx.accountMoves.setMarks({ account_id: accountId, move_id: move.move_id, ...marks }),
    );
    return { accountId, ...written, queued: queued(), disabled: false, refusedMs: 0 };
  }
  if (part === 'late') {
    const { marks: _, ...written } = await writeFile(deps, options, { kdf, seal, move: null });
    return { accountId, ...written, queued: queued(), disabled: false, refusedMs: 0 };
  }
  const accounts = createAccounts(deps);
  const disables = accounts.get(accountId)?.status === 'active';
  const enableAgain = async () => {
    if (disables) await accounts.setStatus(accountId, 'active');
  };
  const began = performance.now();
  // One that was disabled before holds its messages, and keeps holding them.
  if (disables) await accounts.move(accountId);
  await sleep(options.settleMs);
  try {
    await queueToEnd(options, queued);
    // A request in progress may have begun something before the account was disabled.
    const late = refusalOf(deps.tables, options) ?? queueRefusal(options, queued());
    if (late !== null) {
      await enableAgain();
      return late;
    }
    const move = part === 'difference' ? deps.tables.accountMoves.get(accountId) : null;
    const { marks: _, ...written } = await writeFile(deps, options, { kdf, seal, move });
    return {
      accountId,
      ...written,
      queued: queued(),
      disabled: disables,
      refusedMs: performance.now() - began,
    };
  } catch (error) {
    await enableAgain();
    throw error;
  }
}

/** Ends the notes of changes that a first file began. Refuses (`INVALID_STATE`) when there are none. */
export async function cancelMove(
  { tables, writer }: Pick<ExportContext, 'tables' | 'writer'>,
  accountId: string,
): Promise<null | Refusal> {
  if (tables.accountMoves.get(accountId) === null)
    return refuse('INVALID_STATE', `Account ${accountId} has no first file`);
  await endMove(writer, accountId);
  return null;
}

/** Removes the notes of changes. */
export async function endMove(writer: Context['writer'], accountId: string): Promise<void> {
  await writer.run((tx) => tx.accountMoves.end(accountId));
  await createPortions({ writer, share: accountId }).run((tx, limit) => {
    const rows = tx.accountMoves.removeChanges(accountId, limit);
    return { rows, isDone: rows === 0 };
  });
}

/** Changes are noted from here on: the first file is read afterwards. */
async function beginMove(
  { writer, clock, random }: ExportContext,
  accountId: string,
): Promise<AccountMoveRow> {
  await endMove(writer, accountId);
  const move: AccountMoveRow = {
    account_id: accountId,
    move_id: random.bytes(MOVE_ID_BYTES).toString('hex'),
    started_at: clock.now(),
    last_message: null,
    last_content: null,
  };
  await writer.run((tx) => tx.accountMoves.begin(move));
  return move;
}

/** Waits until the queue is empty, or the time has passed. */
async function queueToEnd(
  { withoutQueue, waitMs, onWaiting, signal }: ExportOptions,
  queued: () => number,
): Promise<void> {
  if (withoutQueue) return;
  const until = performance.now() + waitMs;
  for (let messages = queued(); messages > 0 && performance.now() < until; messages = queued()) {
    signal?.throwIfAborted();
    onWaiting?.(messages);
    await sleep(QUEUE_INTERVAL_MS);
  }
}

function refusalOf(tables: Tables, { accountId, part }: ExportOptions): Refusal | null {
  if (tables.accounts.get(accountId) === null)
    return refuse('ACCOUNT_NOT_FOUND', `There is no account ${accountId}`);
  if (tables.accountImports.get(accountId) !== null)
    return refuse(
      'INVALID_STATE',
      `The import of account ${accountId} is not complete: run "postrider account import" with its file again`,
    );
  if (part === 'late')
    return typeof tables.accounts.get(accountId)?.moved_at === 'number'
      ? null
      : refuse('INVALID_STATE', `Account ${accountId} was not moved away from this machine`);
  if (part === 'difference' && typeof tables.accountMoves.get(accountId)?.last_message !== 'number')
    return refuse(
      'INVALID_STATE',
      `Account ${accountId} has no complete first file: write one with --live, and import it on the other machine`,
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
  // A first file may have them: the difference removes them again.
  if (part === 'first') return null;
  const isErasing = tables.erasures
    .pending()
    .some((seq) => tables.erasures.get(seq)?.account_id === accountId);
  if (isErasing)
    return refuse(
      'INVALID_STATE',
      `People of account ${accountId} are being erased: try again when that is complete`,
    );
  return null;
}

function queueRefusal({ accountId, withoutQueue }: ExportOptions, messages: number): Refusal | null {
  if (messages === 0 || withoutQueue) return null;
  return refuse(
    'INVALID_STATE',
    `Account ${accountId} has ${messages} ${messages === 1 ? 'message' : 'messages'} in the queue: wait until they are sent, or let this daemon send them with --without-queue`,
  );
}

interface FileBasis {
  kdf: Header['kdf'];
  seal: FileSeal;
  /** Null: of a whole or a late file. */
  move: AccountMoveRow | null;
}

async function writeFile(
  deps: ExportContext,
  options: ExportOptions,
  { kdf, seal, move }: FileBasis,
): Promise<Pick<ExportResult, 'counts' | 'bytes'> & { marks: MoveMarks }> {
  const { accountId, output, part, signal } = options;
  const now = deps.clock.now();
  const { moved_at: movedAt = null } = deps.tables.accounts.get(accountId) ?? {};
  const account = openExportedAccount(databaseFileIn(options.dataDir), {
    accountId,
    now,
    messagesSince: now - REPORTS_EXPECTED_MS,
    after: part === 'difference' ? marksOf(move) : null,
    lateSince: part === 'late' ? movedAt : null,
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
      part,
      moveId: move?.move_id ?? null,
      movedAt: movedAt === null ? null : iso(movedAt),
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
    return { counts: header.counts, bytes, marks: account.marks() };
  } finally {
    account.close();
  }
}

function marksOf(move: AccountMoveRow | null): MoveMarks {
  const { last_message, last_content } = move ?? {};
  if (typeof last_message !== 'number' || typeof last_content !== 'number')
    throw new Error('the first file is not complete');
  return { last_message, last_content };
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
  if (header.part === 'difference') {
    for (const kind of CHANGE_KINDS) {
      for (const keys of inGroups(account.changes(kind), CHANGED_KEYS)) {
        add({ type: 'changed', record: { kind, keys } });
        if (size >= CHUNK_BYTES) yield take();
      }
    }
  }
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

function* inGroups(keys: Iterable<string>, size: number): Generator<string[]> {
  let group: string[] = [];
  for (const key of keys) {
    group.push(key);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
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
