import { setTimeout as sleep } from 'node:timers/promises';
import { searchKeys } from '../audience/search-key.ts';
import { createNumberSet, type NumberSet } from '../core/number-set.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import { accountTag } from '../mail/tokens.ts';
import type { ContactRow } from '../store/contacts/contacts.ts';
import type { Context } from '../store/context.ts';
import type { Writer } from '../store/database/writer.ts';
import { createPortions } from '../store/maintenance/portions.ts';
import type { Tables } from '../store/tables.ts';
import type { AccountImportRow } from '../store/transfer/imported-records.ts';
import type { TransferRecord } from '../store/transfer/kinds.ts';
import { checkFile, type FileCheckResult, REFERRED_TYPES } from './check.ts';
import { endMove } from './export.ts';
import { type AccountFile, type FileItem, openAccountFile } from './file.ts';
import type { FileContext, Header } from './format.ts';
import { importLate } from './late.ts';
import { BYTE_COLUMNS, type Records } from './records.ts';
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
  /** Opt-outs and suppressions of a late file that were new. */
  added: number;
}

/** Time for which a portion may hold the write lock, while other processes write and while they do not. */
const PORTION_MS = 5;
const QUIET_PORTION_MS = 20;
const PORTION_RECORDS = 500;
const MAX_PAUSE_MS = 1000;
const SHORT_PAUSE_MS = 5;
/** Others write until none has committed for this time. */
const QUIET_AFTER_MS = 1000;

/**
 * Imports an account; the daemon may be running. The whole file is checked first: a file that is damaged, invalid or in conflict
 * with this installation changes nothing. Then records are imported in portions, each with the position in the file; an
 * interrupted import continues there. The account is disabled until an operator enables it, which is refused
 * before the import is complete: after a first file, before that of its difference.
 *
 * A file replaces the copy of an account that was exported from here and not enabled since. A difference is imported from
 * its beginning each time: it removes everything that it replaces first.
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
    const { moved_at: movedAt } = tables.accounts.get(accountId) ?? {};
    if (file.header.part === 'late') {
      if (movedAt !== null || before !== null)
        return refuse('INVALID_STATE', `Account ${accountId} is not at home on this machine`);
      return { header: file.header, resumed: false, added: await importLate(deps, file, options) };
    }
    const misfit = misfitOf(file.header, before);
    if (misfit !== null) return refuse('INVALID_STATE', misfit);
    const isCopy = typeof movedAt === 'number';
    const { conflicts, sha256, ids } = await checkFile(file, tables, {
      allowPrivateNetworks: options.allowPrivateNetworks,
      mayExist: before !== null || isCopy,
      onProgress: (done, total) => options.onProgress?.('check', done, total),
      ...signalOf(options),
    });
    const isDifference = file.header.part === 'difference';
    const resumes =
      before !== null && (isDifference || (before.move_id === null && before.digest === sha256));
    // What an incomplete import has written over a copy is replaced as the copy itself, or removed with `cancelImport`.
    if (before !== null && before.move_id === null && !resumes && !isCopy)
      return refuse(
        'INVALID_STATE',
        `An import of account ${accountId} from another file is not complete: continue with that file, or remove what it imported with "postrider account import --cancel ${accountId}"`,
      );
    if (conflicts.length > 0)
      return refuse('INVALID_STATE', `Account ${accountId} cannot be imported: ${conflicts.join('; ')}`);
    if (!options.dryRun)
      await importRecords(deps, options, file, {
        sha256,
        ids,
        done: resumes && !isDifference ? before.records : 0,
        // A newer file of the same account replaces an earlier one.
        replaces: before !== null && !resumes,
      });
    return { header: file.header, resumed: resumes && !isDifference, added: 0 };
  } finally {
    await file.close();
  }
}

/** Why a file does not follow what was imported before; null: it does. */
function misfitOf({ accountId, part, moveId }: Header, before: AccountImportRow | null): string | null {
  if (part !== 'difference')
    return part === 'first' && before !== null && before.move_id !== null && before.move_id === moveId
      ? `The first file of account ${accountId} is imported: import its difference`
      : null;
  if (before === null || before.move_id === null)
    return `This file has only what changed in account ${accountId}: import its first file before, or, if this one was imported completely, enable the account`;
  return before.move_id === moveId
    ? null
    : `This file does not belong to the first file of account ${accountId} that is imported`;
}

/**
 * Removes the rows of an incomplete import. Refuses (`INVALID_STATE`) an account that is complete, and one that was here before:
 * its messages need it. Returns the number of rows.
 */
export async function cancelImport(
  { tables, writer }: Pick<ImportContext, 'tables' | 'writer'>,
  accountId: string,
): Promise<number | Refusal> {
  if (tables.accountImports.get(accountId) === null)
    return refuse('INVALID_STATE', `No import of account ${accountId} is in progress`);
  if (typeof tables.accounts.get(accountId)?.moved_at === 'number')
    return refuse(
      'INVALID_STATE',
      `The import of account ${accountId} replaces its former copy on this machine: run "postrider account import" with its file again`,
    );
  let removed = 0;
  await endMove(writer, accountId);
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
  {
    sha256,
    ids,
    done,
    replaces,
  }: Pick<FileCheckResult, 'sha256' | 'ids'> & { done: number; replaces: boolean },
): Promise<void> {
  const { tables, writer, clock } = deps;
  const { accountId, part, moveId } = file.header;
  const isDifference = part === 'difference';
  const portionRecords = options.portionRecords ?? PORTION_RECORDS;
  const startedAt = clock.now();
  const insert = createInserter(deps, file);
  const pace = createPace(writer);
  const cleared = isDifference ? createNumberSet() : null;
  /** Number of records in the preceding portions of the file. */
  let position = 0;
  let imported = done;

  const scope = { accountId, now: startedAt };
  const progress = (records: number, completed: string | null) => ({
    account_id: accountId,
    digest: sha256,
    records,
    started_at: startedAt,
    updated_at: clock.now(),
    // While a difference is imported, the account still needs it.
    move_id: isDifference ? moveId : completed,
  });
  if (done === 0 && tables.accounts.get(accountId) !== null) {
    // Changes of the copy are not exported any more.
    if (!isDifference) await endMove(writer, accountId);
    await writer.run((tx) => {
      if (replaces) tx.accountImports.remove(accountId);
      tx.accountImports.put(progress(0, null));
    });
    await createPortions({ writer, share: accountId }).run((tx, limit) => {
      options.signal?.throwIfAborted();
      const rows = tx.importedRecords.clearSome(tx, accountId, { isDifference, limit });
      return { rows, isDone: rows === 0 };
    });
    await writer.run((tx) => {
      for (const type of REFERRED_TYPES)
        if (type !== 'domain_group') tx.importedRecords.removeAbsent(type, ids[type], scope);
    }, accountId);
  }

  /** Imports some of the records from `at` on; returns how many. */
  const importSome = (tx: Tables, records: readonly FileItem[], at: number) => {
    const began = performance.now();
    let count = 0;
    for (const typed of records.slice(at, at + portionRecords)) {
      insert(tx, typed, cleared);
      count++;
      if (performance.now() - began >= pace.portionMs()) break;
    }
    tx.accountImports.put(progress(imported + count, null));
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
      // Shorter while requests of the account are refused.
      const longest = isDifference ? SHORT_PAUSE_MS : MAX_PAUSE_MS;
      await sleep(Math.min(longest, pace.pauseMs(performance.now() - requested)));
    }
    position += value.length;
  }
  const gone = cleared?.values();
  await createPortions({ writer, share: accountId }).run((tx, limit) => {
    options.signal?.throwIfAborted();
    for (let rows = 0; rows < limit; rows++) {
      const next = gone?.next();
      if (next === undefined || next.done === true) return { rows, isDone: true };
      tx.importedRecords.removeContact(tx, next.value);
    }
    return { rows: limit, isDone: false };
  });
  await writer.run((tx) => {
    // Their domains are in other groups now.
    tx.importedRecords.removeAbsent('domain_group', ids.domain_group, scope);
    tx.importedRecords.releaseContents(accountId);
    if (part === 'first') tx.accountImports.put(progress(imported, moveId));
    else tx.accountImports.remove(accountId);
  }, accountId);
}

/**
 * How long portions and the pauses between them are. A pause leaves the write lock to other processes: it takes as long as the
 * portion and its commit where they write, and else a quarter of it, in which the first one of them gets the lock.
 */
function createPace(writer: Pick<Writer, 'versionOfOthers'>) {
  let version = writer.versionOfOthers();
  let quietFrom = performance.now() + QUIET_AFTER_MS;
  const isQuiet = () => performance.now() >= quietFrom;
  return {
    portionMs: (): number => (isQuiet() ? QUIET_PORTION_MS : PORTION_MS),
    /** Called after each portion, with the time from its request until it was on disk. */
    pauseMs: (tookMs: number): number => {
      const now = writer.versionOfOthers();
      if (now !== version) quietFrom = performance.now() + QUIET_AFTER_MS;
      version = now;
      return isQuiet() ? tookMs / 4 : tookMs;
    },
  };
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

/**
 * Contacts that a difference has cleared, and has not yet written again; null: the file is no difference. A unit of work changes
 * it, although it may be undone: the import ends then.
 */
type ClearedContacts = NumberSet | null;

/** Whether they agree in what an update of a contact does not write. */
function isSame(one: Omit<ContactRow, 'seq'>, two: Omit<ContactRow, 'seq'>): boolean {
  return one.user_id === two.user_id && one.created_at === two.created_at && one.added_by === two.added_by;
}

/** Returns a function that inserts a record, in a unit of work. */
function createInserter(
  { clock, seal }: ImportContext,
  file: AccountFile,
): (tables: Tables, typed: FileItem, cleared: ClearedContacts) => void {
  const { accountId } = file.header;
  const now = clock.now();
  const reseal = (secret: Buffer, context: string) => seal.seal(file.seal.open(secret, context), context);

  /**
   * Writes a contact over its row, if the difference has cleared it: an entry in the search index that stays the same costs
   * several times the rest. Returns its seq.
   */
  function putContact(tables: Tables, row: Omit<ContactRow, 'seq'>, cleared: ClearedContacts): number {
    let own: number | null = null;
    for (const key of cleared === null ? [] : [row.email_hash, row.phone_hash]) {
      const holder = key === null ? null : tables.contacts.byIdentifier(accountId, key);
      if (holder === null || cleared?.has(holder.seq) !== true) continue;
      cleared.delete(holder.seq);
      if (isSame(holder, row)) own = holder.seq;
      else tables.importedRecords.removeContact(tables, holder.seq);
    }
    if (own === null) return tables.contacts.insert(row);
    tables.contacts.update({ ...row, seq: own });
    tables.contacts.setConsent(own, row.consent_n, row.updated_at);
    return own;
  }

  function contact(tables: Tables, record: Records['contact'], cleared: ClearedContacts): void {
    const { consents, subscriptions, engagement, campaigns, sequences, ...columns } = record;
    const row = { ...columns, account_id: accountId };
    const seq = putContact(tables, { ...row, ...searchKeys(row) }, cleared);
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

  return (tables, typed, cleared) => {
    if (typed.type === 'changed') {
      const { kind, keys } = typed.record;
      for (const key of keys) {
        const seq = tables.importedRecords.clearChanged(tables, accountId, kind, key);
        if (seq !== null) cleared?.add(seq);
      }
      return;
    }
    if (typed.type === 'contact') return contact(tables, typed.record, cleared);
    if (typed.type === 'moved_message')
      return tables.movedMessages.insert({ ...typed.record, account_id: accountId });
    // It is stored already when the file replaces a copy.
    if (
      typed.type === 'media_content' &&
      tables.importedRecords.hasContent(accountId, Buffer.from(typed.record.hash, 'base64').toString('hex'))
    )
      return;
    const stored = withSecrets(typed.type, withBytes(typed.record), reseal);
    tables.importedRecords.put(typed.type, stored, { accountId, now });
    if (typed.type !== 'account') return;
    tables.tokenKeys.put({
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
