import { setTimeout as sleep } from 'node:timers/promises';
import { eventLoopTurns } from '../../core/concurrency/slices.ts';
import type { Ids } from '../../core/ids.ts';
import { isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { emailIdentifier, phoneIdentifier } from '../../mail/identifier.ts';
import type { KnownContact } from '../../store/contacts/contacts.ts';
import type { HygieneKind } from '../../store/contacts/hygiene.ts';
import type { SubscriptionGroupRow } from '../../store/contacts/subscription-groups.ts';
import type { Context } from '../../store/context.ts';
import { partlyDone, unitAfter } from '../../store/database/failure.ts';
import type { MayAdd, Tables } from '../../store/tables.ts';
import type { Provenance } from '../consent.ts';
import type { Actor } from '../contacts.ts';
import { findSubscriptionGroup } from '../groups.ts';
import { type AddressRun, type HygieneCounts, NO_HYGIENE, withBatch } from '../hygiene/checks.ts';
import { apiOptOut, leaveGroup } from '../opt-out.ts';
import { addUnknownPerson, changePerson, identifiersOf, reread } from '../people.ts';
import type { ProfileChanges } from '../profile.ts';
import { joinGroup, type MembershipInput } from '../subscriptions.ts';
import type { ImportRecord, StreamPosition } from './records.ts';
import { type ImportMembership, type ImportRow, isReadable, type RowReader } from './rows.ts';

/*
 * Imports contacts from a stream. A batch of rows is one unit of work, and the next is read when it is durable, so memory
 * does not depend on the length of the stream. A row with the identifier of a known contact changes the fields that it
 * has. Imports end no opt-out and no suppression.
 */

export interface ImportCounts {
  rows: number;
  created: number;
  updated: number;
  /** Known contacts without a change. */
  unchanged: number;
  rejected: number;
  /** New members of the group. */
  subscribed: number;
  /** Contacts that opted out of the group: inactive members. */
  optedOut: number;
}

export interface RejectedRow {
  line: number;
  reason: string;
}

/** What an import does with addresses to which mail will fail or is not wanted: those of REJECTED_KINDS. */
export const HYGIENE_MODES = ['report', 'reject', 'off'] as const;
export type HygieneMode = (typeof HYGIENE_MODES)[number];

/** What the addresses of an import have. */
export interface ImportHygiene {
  counts: HygieneCounts;
  /** The first MAX_REJECTED. */
  findings: ImportFinding[];
}

export interface ImportFinding {
  line: number;
  kind: HygieneKind;
  /** The provider that a typo stands for, why there is no mail service, or the line of the first address of the mailbox. */
  detail: string | null;
}

export interface ImportJob {
  accountId: string;
  groupId: string | null;
  actor: Actor;
  reader: RowReader;
  records: AsyncIterable<ImportRecord[]>;
  /** Counts of earlier runs. */
  counts?: ImportCounts;
  /** Examines the addresses; absent: they are not. `found`: by earlier runs. */
  hygiene?: { run: AddressRun; rejects: boolean; found?: ImportHygiene | undefined };
  /** Called in each unit of work, after its rows. A refusal rolls them back and ends the import. */
  onBatch?(tables: Tables, batch: ImportBatch): Refusal | null;
  /** Called when a batch is durable. */
  afterBatch?(batch: ImportBatch): void;
  /** Counts and rejects as an import does, and rolls back each batch. */
  dryRun?: boolean;
  /** Asked before each batch; a refusal ends the import, and rows imported before remain. */
  storageRefusal?(): Refusal | null;
  /** Ends the import after the batch in progress. With the reason TURN_OVER it is not interrupted, but continues later. */
  signal: AbortSignal;
  /** Rows in a unit of work, for which other writes wait. Default: as many as take UNIT_MS, at most 100. */
  batchRows?: number;
  /** Pause after a batch as a share of its duration, for other writes; at most MAX_PAUSE_MS. Default: 0.25. */
  pauseShare?: number;
}

export interface ImportBatch {
  /** Position after the last of its rows. */
  position: StreamPosition;
  counts: ImportCounts;
  rejected: RejectedRow[];
  /** Null: the addresses are not examined. */
  hygiene: ImportHygiene | null;
}

export interface ImportResult {
  counts: ImportCounts;
  hygiene: ImportHygiene | null;
  /** The first MAX_REJECTED of this run. */
  rejected: RejectedRow[];
  /** False if the signal ended the import. */
  complete: boolean;
}

/** The reason of a signal that ends the turn of an import, see `ImportJob.signal`. */
export const TURN_OVER = 'the turn of the import is over';

/** Maximum number of rejected rows in a result. */
export const MAX_REJECTED = 100;
/** More are slower: SQLite walks through the pages that a unit of work has changed after each statement with a trigger. */
const MAX_BATCH_ROWS = 100;
/** Rows of the first batch, before it is known how long they take. */
const FIRST_BATCH_ROWS = 20;
/** Of a unit that was interrupted, by the garbage collector or another process, little is known. */
const MIN_BATCH_ROWS = 5;
/** How long the unit of work of a batch may take, ms: everything else waits for it. */
const UNIT_MS = 10;
const PAUSE_SHARE = 0.25;
/** A batch ends after this many characters, as one row may be as long as MAX_RECORD. */
const BATCH_CHARACTERS = 256 * 1024;
/** Characters that are parsed in one turn of the account: a few milliseconds. The last record may exceed them. */
const CHARACTERS_PER_TURN = 64 * 1024;
/** A process that was stopped (SIGSTOP) during a batch must not pause for as long as it was stopped. */
const MAX_PAUSE_MS = 1000;

/** Returned by the unit of work of a dry run, so that the writer rolls it back. */
const ROLL_BACK = refuse('INVALID_STATE', 'dry run');

export const NO_COUNTS: ImportCounts = {
  rows: 0,
  created: 0,
  updated: 0,
  unchanged: 0,
  rejected: 0,
  subscribed: 0,
  optedOut: 0,
};

/**
 * Stateless: `run` sets the import status of the group, except in a dry run. A contact above the limit of `mayAdd` is a
 * rejected row and does not end the import. Rejects with the error of the records, after which earlier batches remain.
 */
export function createImporter(
  { writer, clock, ids, monotonic }: Pick<Context, 'writer' | 'clock' | 'ids' | 'monotonic'>,
  mayAdd: MayAdd,
) {
  async function importRows(job: ImportJob): Promise<ImportResult | Refusal> {
    const { signal } = job;
    const earlierRows = job.counts?.rows ?? 0;
    let counts = job.counts ?? NO_COUNTS;
    const rejected: RejectedRow[] = [];
    let hygiene = job.hygiene === undefined ? null : (job.hygiene.found ?? NO_FINDINGS);
    let complete = true;
    let batchRows = job.batchRows ?? FIRST_BATCH_ROWS;
    for await (const { rows: read, position } of batches(job, () => batchRows)) {
      const examined = await examinedRows(job.hygiene, read, hygiene);
      const { rows } = examined;
      const began = performance.now();
      let tried: ImportBatch | null = null;
      const importedRows = job.dryRun === true ? 0 : counts.rows - earlierRows;
      const full = job.dryRun === true ? null : (job.storageRefusal?.() ?? null);
      if (full !== null) return afterRows(full, importedRows);
      const stored = await unitAfter(
        rowsImported(importedRows),
        writer.run((tx): ImportBatch | Refusal => {
          const unitBegan = monotonic.now();
          const done = applyBatch(tx, { ids, mayAdd }, job, rows, { ...job.actor, at: clock.now() });
          if (job.batchRows === undefined) batchRows = rowsInTime(rows.length, monotonic.now() - unitBegan);
          if (isRefusal(done)) return afterRows(done, importedRows);
          const result = {
            position,
            counts: sum(counts, done.counts),
            rejected: done.rejected,
            hygiene: examined.hygiene,
          };
          if (job.dryRun === true) {
            tried = result;
            return ROLL_BACK;
          }
          return job.onBatch?.(tx, result) ?? result;
        }, job.accountId),
      );
      const batch = stored === ROLL_BACK && tried !== null ? tried : stored;
      if (isRefusal(batch)) return batch;
      job.afterBatch?.(batch);
      counts = batch.counts;
      hygiene = batch.hygiene;
      rejected.push(...batch.rejected.slice(0, MAX_REJECTED - rejected.length));
      complete = !signal.aborted;
      if (!complete) break;
      await sleep(Math.min((performance.now() - began) * (job.pauseShare ?? PAUSE_SHARE), MAX_PAUSE_MS));
    }
    return { counts, rejected, hygiene, complete };
  }

  function setGroupStatus(job: ImportJob, status: 'running' | 'completed' | 'interrupted') {
    return writer.run((tx): Refusal | null => {
      if (job.groupId === null) return null;
      const group = findSubscriptionGroup(tx, job.accountId, job.groupId);
      if (isRefusal(group)) return group;
      tx.subscriptionGroups.setImportStatus(group.seq, status);
      return null;
    }, job.accountId);
  }

  return {
    /**
     * Refuses an unknown group, also one that is deleted during the import; rows imported before remain, and the
     * message states their number. Rejects with `PartlyDone` when the database fails after the first batch.
     */
    run: async (job: ImportJob): Promise<ImportResult | Refusal> => {
      if (job.dryRun === true) return importRows(job);
      const refusal = await setGroupStatus(job, 'running');
      if (refusal !== null) return refusal;
      const result = await importRows(job).catch(async (error: unknown) => {
        // The first error is reported: it states how far the import came. The second one has the same cause.
        await setGroupStatus(job, 'interrupted').catch(() => null);
        throw error;
      });
      const isComplete = !isRefusal(result) && result.complete;
      if (job.signal.reason !== TURN_OVER)
        await setGroupStatus(job, isComplete ? 'completed' : 'interrupted');
      return result;
    },
  };
}

export type Importer = ReturnType<typeof createImporter>;

/** A refusal in the course of an import: the rows before it remain. */
function afterRows(refusal: Refusal, rows: number): Refusal {
  const done = rowsImported(rows);
  return done === null
    ? refusal
    : refuse(refusal.code, `${refusal.message}. Before that, ${done}`, refusal.extras);
}

function rowsImported(rows: number): string | null {
  return partlyDone(rows, 'row', 'imported');
}

/** How many rows take UNIT_MS if so many took `ms`. */
function rowsInTime(rows: number, ms: number): number {
  return Math.max(MIN_BATCH_ROWS, Math.min(Math.floor((rows * UNIT_MS) / ms), MAX_BATCH_ROWS));
}

/** `maxRows`: rows of the next batch. */
async function* batches(
  { records, reader, accountId }: ImportJob,
  maxRows: () => number,
): AsyncGenerator<{ rows: ImportRow[]; position: StreamPosition }> {
  let rows: ImportRow[] = [];
  let characters = 0;
  let ofTurn = CHARACTERS_PER_TURN;
  let position: StreamPosition | null = null;
  for await (const some of records) {
    for (const record of some) {
      if (ofTurn >= CHARACTERS_PER_TURN) {
        await eventLoopTurns.next(accountId);
        ofTurn = 0;
      }
      ofTurn += record.text.length;
      rows.push(reader.read(record));
      characters += record.text.length;
      position = record.end;
      if (rows.length < maxRows() && characters < BATCH_CHARACTERS) continue;
      yield { rows, position };
      rows = [];
      characters = 0;
    }
  }
  if (position !== null && rows.length > 0) yield { rows, position };
}

const NO_FINDINGS: ImportHygiene = { counts: NO_HYGIENE, findings: [] };

/** Kinds for which `reject` rejects a row. */
const REJECTED_KINDS: Partial<Record<HygieneKind, string>> = {
  no_mail_service: 'email: the domain has no mail service',
  disposable: 'email: the domain has disposable addresses',
};

/** Examines the addresses of a batch; with `rejects`, rows of REJECTED_KINDS become unreadable. */
async function examinedRows(
  examining: ImportJob['hygiene'],
  rows: ImportRow[],
  before: ImportHygiene | null,
): Promise<{ rows: ImportRow[]; hygiene: ImportHygiene | null }> {
  if (examining === undefined || before === null) return { rows, hygiene: before };
  const addresses = rows.flatMap((row) =>
    isReadable(row) && typeof row.profile.email === 'string'
      ? [{ id: row.line, email: row.profile.email }]
      : [],
  );
  const batch = await examining.run.examine(addresses);
  const findings = addresses.flatMap(({ id: line }, n) =>
    (batch.findings[n] ?? []).map(
      ({ kind, detail, of }): ImportFinding => ({
        line,
        kind,
        detail: of === null ? detail : `line ${of}`,
      }),
    ),
  );
  const hygiene = {
    counts: withBatch(before.counts, batch),
    findings: [...before.findings, ...findings].slice(0, MAX_REJECTED),
  };
  if (!examining.rejects) return { rows, hygiene };
  const reasons = new Map(
    findings.flatMap(({ line, kind }) => {
      const reason = REJECTED_KINDS[kind];
      return reason === undefined ? [] : [[line, reason] as const];
    }),
  );
  return {
    rows: rows.map((row) => {
      const reason = reasons.get(row.line);
      return reason === undefined ? row : { line: row.line, reason };
    }),
    hygiene,
  };
}

/** What a new contact needs. */
interface Adding {
  ids: Ids;
  mayAdd: MayAdd;
}

function applyBatch(
  tables: Tables,
  adding: Adding,
  job: ImportJob,
  rows: ImportRow[],
  provenance: Provenance,
): { counts: ImportCounts; rejected: RejectedRow[] } | Refusal {
  const group = job.groupId === null ? null : findSubscriptionGroup(tables, job.accountId, job.groupId);
  if (isRefusal(group)) return group;
  const counts = { ...NO_COUNTS, rows: rows.length };
  const rejected: RejectedRow[] = [];
  for (const row of rows) {
    const imported = isReadable(row)
      ? importRow(tables, adding, job.accountId, row.profile, provenance)
      : row.reason;
    if (typeof imported === 'string') {
      counts.rejected++;
      rejected.push({ line: row.line, reason: imported });
      continue;
    }
    counts[imported.result]++;
    if (!isReadable(row)) continue;
    const { method, details } = row.profile.consent ?? {};
    // The row's evidence was recorded with the contact's consent.
    const consent = { method, details: details ?? undefined };
    const memberships = [
      ...(group === null ? [] : [subscribe(tables, group, imported, { consent }, provenance)]),
      ...(row.memberships ?? []).map((one) => follow(tables, job.accountId, one, imported, provenance)),
    ];
    for (const membership of memberships) {
      if (isRefusal(membership)) return membership;
      if (membership.isNew) counts.subscribed++;
      if (!membership.isActive) counts.optedOut++;
    }
  }
  return { counts, rejected };
}

/** Applies what the person has chosen for a group. An earlier opt-out remains. */
function follow(
  tables: Tables,
  accountId: string,
  { groupId, isActive, details }: ImportMembership,
  imported: ImportedRow,
  provenance: Provenance,
): { isNew: boolean; isActive: boolean } | Refusal {
  if (groupId === null) return { isNew: true, isActive };
  const group = findSubscriptionGroup(tables, accountId, groupId);
  if (isRefusal(group)) return group;
  const consent = isActive ? { method: 'imported' as const, details } : { details };
  const membership = subscribe(tables, group, imported, { isActive, consent }, provenance);
  if (membership.isNew || isActive) return membership;
  const [identifier] = identifiersOf(reread(tables, imported.seq));
  if (identifier !== undefined) leaveGroup(tables, group, identifier, apiOptOut(consent, provenance));
  return { isNew: false, isActive: false };
}

/** Adds the contact to the group; an existing membership is unchanged. */
function subscribe(
  tables: Tables,
  group: SubscriptionGroupRow,
  { seq, result }: ImportedRow,
  input: MembershipInput,
  provenance: Provenance,
): { isNew: boolean; isActive: boolean } {
  const known = result === 'created' ? null : tables.subscriptions.get(group.seq, seq);
  if (known !== null) return { isNew: false, isActive: known.is_active === 1 };
  const isActive = joinGroup(tables, group, reread(tables, seq), {
    ...input,
    defaultSource: 'import',
    defaultMethod: 'imported',
    provenance,
  });
  return { isNew: true, isActive };
}

interface ImportedRow {
  seq: number;
  result: 'created' | 'updated' | 'unchanged';
}

/** Imports a row; a string is the reason of its rejection. */
function importRow(
  tables: Tables,
  { ids, mayAdd }: Adding,
  accountId: string,
  profile: ProfileChanges,
  provenance: Provenance,
): ImportedRow | string {
  const { email, phone } = profile;
  const byEmail = find(tables, accountId, email, emailIdentifier);
  const byPhone = find(tables, accountId, phone, phoneIdentifier);
  if (byEmail !== null && byPhone !== null && byEmail.seq !== byPhone.seq)
    return 'email and phone are those of two different contacts';
  if (byEmail === null && byPhone !== null && byPhone.email !== null && typeof email === 'string')
    return 'the phone is that of a contact with another email address';
  const known = byEmail ?? byPhone;
  const defaultMethod = 'imported';
  if (known === null) {
    const seq = addUnknownPerson(tables, ids, profile, {
      accountId,
      source: 'import',
      defaultMethod,
      provenance,
      mayAdd,
    });
    return isRefusal(seq) ? seq.message : { seq, result: 'created' };
  }
  // The stored spelling of an address stays.
  const changes = byEmail === null ? profile : { ...profile, email: undefined };
  const changed = changePerson(tables, known, changes, { merge: true, defaultMethod, provenance });
  if (isRefusal(changed)) return changed.message;
  return { seq: known.seq, result: changed ? 'updated' : 'unchanged' };
}

function find(
  tables: Tables,
  accountId: string,
  value: string | null | undefined,
  identifier: (value: string) => string,
): KnownContact | null {
  return typeof value === 'string' ? tables.contacts.byIdentifier(accountId, identifier(value)) : null;
}

function sum(one: ImportCounts, two: ImportCounts): ImportCounts {
  const total = { ...one };
  for (const name of Object.keys(total) as (keyof ImportCounts)[]) total[name] += two[name];
  return total;
}
