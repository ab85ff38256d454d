import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../core/clock.ts';
import type { Ids } from '../../core/ids.ts';
import { isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { emailIdentifier, phoneIdentifier } from '../../mail/identifier.ts';
import type { KnownContact } from '../../store/contacts/contacts.ts';
import type { SubscriptionGroupRow } from '../../store/contacts/subscription-groups.ts';
import type { MayAdd, Tables } from '../../store/tables.ts';
import type { Writer } from '../../store/writer.ts';
import type { Provenance } from '../consent.ts';
import type { Actor } from '../contacts.ts';
import { findSubscriptionGroup } from '../groups.ts';
import { addUnknownPerson, changePerson, reread } from '../people.ts';
import type { ProfileChanges } from '../profile.ts';
import { joinGroup } from '../subscriptions.ts';
import type { ImportRecord, Place } from './records.ts';
import { type ImportRow, isReadable, type RowReader } from './rows.ts';

/**
 * Takes contacts in by the stream: a batch of rows is one unit of work, and the next is read when it is on
 * disk, so memory stays as it is however long the stream and whoever is slower waits for the other. A row that
 * names a known contact changes what it names and keeps the rest. Imports lift no opt-out and no suppression.
 */
export interface ImportCounts {
  rows: number;
  created: number;
  updated: number;
  /** Known, and nothing new was said of them. */
  unchanged: number;
  rejected: number;
  /** New members of the group. */
  subscribed: number;
  /** Left the group once, so they are in it as inactive members only. */
  optedOut: number;
}

export interface RejectedRow {
  line: number;
  reason: string;
}

export interface ImportJob {
  accountId: string;
  groupId: string | null;
  actor: Actor;
  reader: RowReader;
  records: AsyncIterable<ImportRecord[]>;
  /** What was counted before this run went on. */
  counts?: ImportCounts;
  /** Inside each unit of work, after its rows. */
  onBatch?(tables: Tables, batch: ImportBatch): void;
  /** When a batch is on disk. */
  afterBatch?(batch: ImportBatch): void;
  /** Counts and rejects as an import would, and rolls back each batch: nothing is stored. */
  dryRun?: boolean;
  /** Ends the import after the batch under way. */
  signal: AbortSignal;
  /** Rows in a unit of work: how long everybody else waits for their turn. */
  batchRows: number;
  /** Of the time that a batch took, how much to wait after it: others are to have a turn at all. */
  pauseShare: number;
}

export interface ImportBatch {
  /** Behind the last of its rows. */
  place: Place;
  counts: ImportCounts;
  rejected: RejectedRow[];
}

export interface ImportResult {
  counts: ImportCounts;
  /** The first hundred of this run. */
  rejected: RejectedRow[];
  /** False: the signal ended it. */
  complete: boolean;
}

export interface Importer {
  /** Refuses an unknown group, also one that is deleted meanwhile; then what was taken in before stays. */
  run(job: ImportJob): Promise<ImportResult | Refusal>;
}

/** Rejected rows in a result. */
export const KEPT_REJECTED = 100;
/** A batch ends after so many, whatever the number of its rows: one row may be as long as MAX_RECORD. */
const BATCH_CHARACTERS = 256 * 1024;

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

export function createImporter(deps: {
  writer: Writer;
  clock: Clock;
  ids: Ids;
  /** The limit on the number of an account's contacts. */
  mayAdd: MayAdd;
}): Importer {
  const { writer, clock } = deps;

  async function takeIn(job: ImportJob): Promise<ImportResult | Refusal> {
    const { reader, signal } = job;
    let counts = job.counts ?? NO_COUNTS;
    const rejected: RejectedRow[] = [];
    let complete = true;
    for await (const { rows, place } of batches(job.records, reader, job.batchRows)) {
      const began = performance.now();
      let tried: ImportBatch | null = null;
      const stored = await writer.run((all): ImportBatch | Refusal => {
        const done = applyBatch(all, deps, job, rows, { ...job.actor, at: clock.now() });
        if (isRefusal(done)) return done;
        const result = { place, counts: sum(counts, done.counts), rejected: done.rejected };
        if (job.dryRun === true) {
          tried = result;
          return ROLL_BACK;
        }
        job.onBatch?.(all, result);
        return result;
      });
      const batch = stored === ROLL_BACK && tried !== null ? tried : stored;
      if (isRefusal(batch)) return batch;
      job.afterBatch?.(batch);
      counts = batch.counts;
      rejected.push(...batch.rejected.slice(0, KEPT_REJECTED - rejected.length));
      complete = !signal.aborted;
      if (!complete) break;
      await sleep((performance.now() - began) * job.pauseShare);
    }
    return { counts, rejected, complete };
  }

  function setStatus(job: ImportJob, status: 'running' | 'completed' | 'interrupted') {
    return writer.run((all): Refusal | null => {
      if (job.groupId === null) return null;
      const group = findSubscriptionGroup(all, job.accountId, job.groupId);
      if (isRefusal(group)) return group;
      all.subscriptionGroups.setImportStatus(group.seq, status);
      return null;
    });
  }

  return {
    run: async (job) => {
      if (job.dryRun === true) return takeIn(job);
      const refusal = await setStatus(job, 'running');
      if (refusal !== null) return refusal;
      let complete = false;
      try {
        const result = await takeIn(job);
        complete = !isRefusal(result) && result.complete;
        return result;
      } finally {
        await setStatus(job, complete ? 'completed' : 'interrupted');
      }
    },
  };
}

async function* batches(
  records: AsyncIterable<ImportRecord[]>,
  reader: RowReader,
  batchRows: number,
): AsyncGenerator<{ rows: ImportRow[]; place: Place }> {
  let rows: ImportRow[] = [];
  let characters = 0;
  let place: Place | null = null;
  for await (const some of records) {
    for (const record of some) {
      rows.push(reader.read(record));
      characters += record.text.length;
      place = record.end;
      if (rows.length < batchRows && characters < BATCH_CHARACTERS) continue;
      yield { rows, place };
      rows = [];
      characters = 0;
    }
  }
  if (place !== null && rows.length > 0) yield { rows, place };
}

/** What a new contact needs beyond its row. */
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
    const taken = isReadable(row)
      ? takeRow(tables, adding, job.accountId, row.profile, provenance)
      : row.reason;
    if (typeof taken === 'string') {
      counts.rejected++;
      rejected.push({ line: row.line, reason: taken });
      continue;
    }
    counts[taken.became]++;
    if (group === null || !isReadable(row)) continue;
    const membership = subscribe(tables, group, taken, row.profile, provenance);
    if (membership.isNew) counts.subscribed++;
    if (!membership.isActive) counts.optedOut++;
  }
  return { counts, rejected };
}

/** A member stays as they are. */
function subscribe(
  tables: Tables,
  group: SubscriptionGroupRow,
  { seq, became }: Taken,
  { consent }: ProfileChanges,
  provenance: Provenance,
): { isNew: boolean; isActive: boolean } {
  const known = became === 'created' ? null : tables.subscriptions.get(group.seq, seq);
  if (known !== null) return { isNew: false, isActive: known.is_active === 1 };
  const isActive = joinGroup(tables, group, reread(tables, seq), {
    // Evidence went into the contact's own consent with the row.
    consent: { method: consent?.method, details: consent?.details ?? undefined },
    defaultSource: 'import',
    defaultMethod: 'imported',
    provenance,
  });
  return { isNew: true, isActive };
}

interface Taken {
  seq: number;
  became: 'created' | 'updated' | 'unchanged';
}

/** What became of a row, or why it was not taken. */
function takeRow(
  tables: Tables,
  { ids, mayAdd }: Adding,
  accountId: string,
  profile: ProfileChanges,
  provenance: Provenance,
): Taken | string {
  const { email, phone } = profile;
  const byEmail = find(tables, accountId, email, emailIdentifier);
  const byPhone = find(tables, accountId, phone, phoneIdentifier);
  if (byEmail !== null && byPhone !== null && byEmail.seq !== byPhone.seq)
    return 'email and phone are those of two different contacts';
  if (byEmail === null && byPhone !== null && byPhone.email !== null && typeof email === 'string')
    return 'the phone is that of a contact with another e-mail address';
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
    return isRefusal(seq) ? seq.message : { seq, became: 'created' };
  }
  // The known spelling of an address stays.
  const changes = byEmail === null ? profile : { ...profile, email: undefined };
  const changed = changePerson(tables, known, changes, { merge: true, defaultMethod, provenance });
  if (isRefusal(changed)) return changed.message;
  return { seq: known.seq, became: changed ? 'updated' : 'unchanged' };
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
