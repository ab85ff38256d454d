import { setTimeout as sleep } from 'node:timers/promises';
import { searchKeys } from '../audience/search-key.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import { accountTag } from '../mail/tokens.ts';
import type { Context } from '../store/context.ts';
import { createPortions } from '../store/maintenance/portions.ts';
import type { Tables } from '../store/tables.ts';
import type { TransferRecord } from '../store/transfer/kinds.ts';
import { checkFile } from './check.ts';
import { type AccountFile, openAccountFile } from './file.ts';
import type { FileContext, Header } from './format.ts';
import { BYTE_COLUMNS, type Records, type TypedRecord } from './records.ts';
import { withSecrets } from './secrets.ts';
import { tokenKeySealContext } from './token-accounts.ts';

type ImportContext = FileContext & Pick<Context, 'tables' | 'writer' | 'clock' | 'seal'>;

export interface ImportOptions {
  file: string;
  passphrase: string;
  /** Checks the file without importing it. */
  dryRun: boolean;
  /** `webhooks.allowPrivateNetworks`. */
  allowPrivateNetworks: boolean;
  /** Records in one unit of work, at most. */
  portionRecords?: number;
  /** Bytes of the file. */
  onProgress?(step: 'check' | 'import', done: number, total: number): void;
  /** Ends the import after the portion in progress; it can be continued. */
  signal?: AbortSignal;
}

export interface AccountImportResult {
  header: Header;
  /** Whether it continued an earlier import. */
  resumed: boolean;
}

/** Time for which a portion may block the event loop and hold the write lock. */
const PORTION_MS = 5;
const PORTION_RECORDS = 500;
const MAX_PAUSE_MS = 1000;

/**
 * Imports an account; the daemon may be running. The whole file is checked first: a file that is damaged, invalid or in conflict
 * with this installation changes nothing. Then records are imported in portions, each with the position in the file; an
 * interrupted import continues there. The account is disabled until an operator enables it, which is refused
 * before the import is complete.
 */
export async function importAccount(
  deps: ImportContext,
  options: ImportOptions,
): Promise<AccountImportResult | Refusal> {
  const { tables } = deps;
  const file = await openAccountFile(options.file, options.passphrase, deps);
  try {
    const { accountId } = file.header;
    const before = tables.accountImports.get(accountId);
    const { conflicts, sha256 } = await checkFile(file, tables, {
      allowPrivateNetworks: options.allowPrivateNetworks,
      resumes: before !== null,
      onProgress: (done, total) => options.onProgress?.('check', done, total),
      ...signalOf(options),
    });
    if (before !== null && before.digest !== sha256)
      return refuse(
        'INVALID_STATE',
        `An import of account ${accountId} from another file is not complete: continue with that file, or remove what it imported with "postrider account import --cancel ${accountId}"`,
      );
    if (conflicts.length > 0)
      return refuse('INVALID_STATE', `Account ${accountId} cannot be imported: ${conflicts.join('; ')}`);
    if (!options.dryRun) await importRecords(deps, options, file, { sha256, done: before?.records ?? 0 });
    return { header: file.header, resumed: before !== null };
  } finally {
    await file.close();
  }
}

/**
 * Removes the rows of an incomplete import. Refuses (`INVALID_STATE`) an account that is complete.
 * Returns the number of rows.
 */
export async function cancelImport(
  { tables, writer }: Pick<ImportContext, 'tables' | 'writer'>,
  accountId: string,
): Promise<number | Refusal> {
  if (tables.accountImports.get(accountId) === null)
    return refuse('INVALID_STATE', `No import of account ${accountId} is in progress`);
  let removed = 0;
  const portions = createPortions({ writer, share: accountId });
  await portions.run(
    (tx, limit) => {
      const rows = tx.importedRecords.removeSome(tx, accountId, limit);
      return { rows, isDone: rows === 0 };
    },
    ({ rows }) => {
      removed += rows;
    },
  );
  return removed;
}

async function importRecords(
  deps: ImportContext,
  options: ImportOptions,
  file: AccountFile,
  { sha256, done }: { sha256: string; done: number },
): Promise<void> {
  const { writer, clock } = deps;
  const { accountId } = file.header;
  const portionRecords = options.portionRecords ?? PORTION_RECORDS;
  const startedAt = clock.now();
  const insert = createInserter(deps, file);
  /** Number of records in the preceding portions of the file. */
  let position = 0;
  let imported = done;

  /** Imports some of the records from `at` on; returns how many. */
  const importSome = (tx: Tables, records: readonly TypedRecord[], at: number): number => {
    const began = performance.now();
    let count = 0;
    for (const typed of records.slice(at, at + portionRecords)) {
      insert(tx, typed);
      count++;
      if (performance.now() - began >= PORTION_MS) break;
    }
    const now = clock.now();
    tx.accountImports.put({
      account_id: accountId,
      digest: sha256,
      records: imported + count,
      started_at: startedAt,
      updated_at: now,
    });
    return count;
  };

  const reading = file.records((read, total) => options.onProgress?.('import', read, total));
  for (;;) {
    const { done: isRead, value } = await reading.next();
    if (isRead === true) {
      if (value.sha256 !== sha256) throw incomplete(accountId, 'the file was changed');
      break;
    }
    // Skips records that were imported before an interruption.
    let at = Math.min(value.length, Math.max(0, imported - position));
    while (at < value.length) {
      options.signal?.throwIfAborted();
      const requested = performance.now();
      const first = at;
      let count: number;
      try {
        count = await writer.run((tx) => importSome(tx, value, first), accountId);
      } catch (error) {
        throw incomplete(accountId, error instanceof Error ? error.message : String(error), error);
      }
      at += count;
      imported += count;
      // Leaves the write lock to other processes for as long as the portion took.
      await sleep(Math.min(MAX_PAUSE_MS, performance.now() - requested));
    }
    position += value.length;
  }
  await writer.run((tx) => tx.accountImports.remove(accountId));
}

function incomplete(accountId: string, reason: string, cause?: unknown): OperatorFault {
  return new OperatorFault(
    `The import of account ${accountId} is not complete (${reason}): run the command again to continue, or remove what was imported with "postrider account import --cancel ${accountId}"`,
    { cause },
  );
}

function signalOf({ signal }: ImportOptions): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/** Returns a function that inserts a record, in a unit of work. */
function createInserter(
  { clock, seal }: ImportContext,
  file: AccountFile,
): (tables: Tables, typed: TypedRecord) => void {
  const { accountId } = file.header;
  const now = clock.now();
  const reseal = (secret: Buffer, context: string) => seal.seal(file.seal.open(secret, context), context);

  function contact(tables: Tables, record: Records['contact']): void {
    const { consents, subscriptions, engagement, campaigns, sequences, ...columns } = record;
    const row = { ...columns, account_id: accountId };
    const seq = tables.contacts.insert({ ...row, ...searchKeys(row) });
    for (const entry of consents) tables.consents.insert({ ...entry, contact_seq: seq });
    for (const { group_seq: id, ...membership } of subscriptions) {
      const group = tables.subscriptionGroups.get(accountId, id);
      if (group === null) throw new Error(`subscription group ${id} was not imported`);
      tables.subscriptions.insert({ ...membership, group_seq: group.seq, contact_seq: seq });
    }
    for (const times of engagement) tables.engagement.insert({ ...times, contact_seq: seq });
    for (const { campaign_seq: id, bits } of campaigns) {
      const campaign = tables.campaigns.get(accountId, id);
      if (campaign === null) throw new Error(`campaign ${id} was not imported`);
      tables.engagement.addOfCampaign(campaign.seq, seq, bits);
    }
    for (const { sequence_seq: id, ...person } of sequences) {
      const sequence = tables.sequences.get(accountId, id);
      if (sequence === null) throw new Error(`sequence ${id} was not imported`);
      tables.sequencePeople.insertImported({ ...person, sequence_seq: sequence.seq, contact_seq: seq });
    }
  }

  return (tables, typed) => {
    if (typed.type === 'contact') return contact(tables, typed.record);
    if (typed.type === 'moved_message')
      return tables.movedMessages.insert({ ...typed.record, account_id: accountId });
    const stored = withSecrets(typed.type, withBytes(typed.record), reseal);
    tables.importedRecords.insert(typed.type, stored, { accountId, now });
    if (typed.type !== 'account') return;
    tables.tokenKeys.insert({
      tag: accountTag(accountId).toString('hex'),
      account_id: accountId,
      key: seal.seal(file.tokenKey, tokenKeySealContext(accountId)),
    });
  };
}

/** Bytes instead of base64. */
function withBytes(record: TransferRecord): TransferRecord {
  const entries = Object.entries(record).map(([column, value]): [string, TransferRecord[string]] => {
    if (Array.isArray(value)) return [column, value.map(withBytes)];
    const isBytes = BYTE_COLUMNS.has(column) && typeof value === 'string';
    return [column, isBytes ? Buffer.from(value, 'base64') : value];
  });
  return Object.fromEntries(entries);
}
