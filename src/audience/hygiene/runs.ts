import { setTimeout as sleep } from 'node:timers/promises';
import { SECOND } from '../../core/clock.ts';
import { createLoop } from '../../core/concurrency/loop.ts';
import { isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import type {
  FindingPosition,
  HygieneKind,
  HygieneRunRow,
  ListedFinding,
} from '../../store/contacts/hygiene.ts';
import type { Context } from '../../store/context.ts';
import { ReadRejected } from '../../store/database/failure.ts';
import { createPortions } from '../../store/maintenance/portions.ts';
import type { Page } from '../../store/rows/page.ts';
import { findSubscriptionGroup } from '../groups.ts';
import {
  type AddressChecks,
  type ExaminedAddress,
  type HygieneCounts,
  NO_HYGIENE,
  withBatch,
} from './checks.ts';

/*
 * Examinations of the addresses of an account's contacts, in the background. A run reads contacts in portions, examines
 * them, and stores what it found with its counts. One that a restart interrupts begins again.
 */

/** Runs at the same time, each of another account; others wait. */
const MAX_CONCURRENT_RUNS = 4;
/** Runs that are read to find one that can begin. */
const MAX_WAITING_READ = 100;
const PORTION_ROWS = 500;
/** Findings of a run that are stored; further ones are counted only. */
export const MAX_STORED_FINDINGS = 100_000;
/** How often runs are found that another process left, or that wait for storage; each new run wakes the loop. */
const INTERVAL_MS = 5 * SECOND;
const READ_RETRY_MS = SECOND;
const FIRST: FindingPosition = { kind: '', contactSeq: 0 };

export function createHygieneRuns(
  {
    tables,
    reader,
    writer,
    clock,
    ids,
    log,
  }: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids' | 'log'>,
  {
    checks,
    storageRefusal,
  }: {
    checks: AddressChecks;
    /** Why nothing more is stored for an account; null: it is. */
    storageRefusal(accountId: string): Refusal | null;
  },
) {
  const portions = createPortions({ writer, share: 'hygiene' });
  const stopping = new AbortController();
  /** Runs in progress by their ids. */
  const inProgress = new Map<string, Promise<void>>();

  /** Starts waiting runs while fewer than MAX_CONCURRENT_RUNS are in progress. */
  function startRuns(): void {
    for (const row of tables.hygiene.unfinished(MAX_WAITING_READ)) {
      if (inProgress.size >= MAX_CONCURRENT_RUNS) return;
      if (inProgress.has(row.hygiene_id) || storageRefusal(row.account_id) !== null) continue;
      inProgress.set(row.hygiene_id, runToEnd(row));
    }
  }

  async function runToEnd(row: HygieneRunRow): Promise<void> {
    const { hygiene_id: hygieneId } = row;
    try {
      await run(row);
      inProgress.delete(hygieneId);
      loop.wake();
    } catch (error) {
      // The loop starts it again.
      inProgress.delete(hygieneId);
      log.error({ err: error, hygieneId }, 'examination of contacts failed; trying again');
    }
  }

  async function run(row: HygieneRunRow): Promise<void> {
    const { hygiene_id: hygieneId, account_id: accountId, group_id: groupId } = row;
    for (const old of tables.hygiene.outdated(accountId)) await remove(old);
    await clear(hygieneId);
    const group = groupId === null ? null : findSubscriptionGroup(tables, accountId, groupId);
    if (isRefusal(group)) return void (await finish(hygieneId, 'cancelled'));
    const addresses = checks.begin(accountId);
    let counts = NO_HYGIENE;
    let stored = 0;
    for (let after = 0; !stopping.signal.aborted; ) {
      const rows = await read(accountId, group?.seq ?? null, after);
      if (rows === null) return;
      const last = rows.at(-1);
      if (last === undefined) return void (await finish(hygieneId, 'completed'));
      after = last.id;
      const batch = await addresses.examine(rows);
      counts = withBatch(counts, batch);
      const found = rows.flatMap(({ id }, n) =>
        (batch.findings[n] ?? []).map(({ kind, detail, of }) => ({
          hygiene_id: hygieneId,
          kind,
          contact_seq: id,
          detail,
          first_seq: of,
        })),
      );
      const kept = found.slice(0, MAX_STORED_FINDINGS - stored);
      stored += kept.length;
      const isRunning = await writer.run((tx) => {
        if (!tx.hygiene.advance(JSON.stringify(counts), hygieneId)) return false;
        for (const each of kept) tx.hygiene.addFinding(each);
        return true;
      }, accountId);
      if (!isRunning) return;
    }
  }

  /** A portion of the addresses; null: the daemon stops. */
  async function read(
    accountId: string,
    groupSeq: number | null,
    after: number,
  ): Promise<ExaminedAddress[] | null> {
    while (!stopping.signal.aborted) {
      try {
        return await reader.table(
          accountId,
          'hygiene',
          'addresses',
          accountId,
          groupSeq,
          after,
          PORTION_ROWS,
        );
      } catch (error) {
        if (!(error instanceof ReadRejected) || error.reason === 'too-broad') throw error;
        await sleep(READ_RETRY_MS, null, { ref: false });
      }
    }
    return null;
  }

  /** Removes the findings of a run. */
  async function clear(hygieneId: string): Promise<void> {
    await portions.run((tx, rows) => {
      const removed = tx.hygiene.removeFindings(hygieneId, rows);
      return { rows, isDone: removed < rows };
    });
  }

  async function remove(hygieneId: string): Promise<void> {
    await clear(hygieneId);
    await writer.run((tx) => tx.hygiene.remove(hygieneId));
  }

  async function finish(hygieneId: string, status: 'completed' | 'cancelled'): Promise<boolean> {
    const ended = await writer.run((tx) => tx.hygiene.finish(hygieneId, status, clock.now()));
    if (ended) log.info({ hygieneId, status }, 'examination of contacts ended');
    return ended;
  }

  const existing = (accountId: string, hygieneId: string): HygieneRunRow | Refusal =>
    tables.hygiene.get(accountId, hygieneId) ??
    refuse('NOT_FOUND', `There is no examination ${hygieneId}: only the newest ones are stored`);

  const loop = createLoop({ name: 'contact-hygiene', run: startRuns, intervalMs: INTERVAL_MS, log });

  return {
    /** Stores a run, which begins soon. Refused while another one of the account has not ended. */
    add: async (accountId: string, groupId: string | null): Promise<HygieneRunRow | Refusal> => {
      const added = await writer.run((tx): string | Refusal => {
        if (groupId !== null) {
          const group = findSubscriptionGroup(tx, accountId, groupId);
          if (isRefusal(group)) return group;
        }
        if (tx.hygiene.countUnfinished(accountId) > 0)
          return refuse(
            'LIMIT_REACHED',
            'An examination of this account has not ended: wait for it, or cancel it',
          );
        const hygieneId = ids.make('hygiene');
        tx.hygiene.add({
          hygiene_id: hygieneId,
          account_id: accountId,
          group_id: groupId,
          status: 'waiting',
          counts: JSON.stringify(NO_HYGIENE),
          created_at: clock.now(),
          finished_at: null,
        });
        return hygieneId;
      }, accountId);
      if (isRefusal(added)) return added;
      loop.wake();
      return existing(accountId, added);
    },
    /** Newest first. */
    list: (accountId: string): HygieneRunRow[] => tables.hygiene.list(accountId),
    get: existing,
    /** A page of the findings. `kind` null: of all kinds. */
    findings: async (
      accountId: string,
      hygieneId: string,
      { kind, after, limit }: { kind: HygieneKind | null; after: FindingPosition | null; limit: number },
    ): Promise<Page<ListedFinding> | Refusal> => {
      const row = existing(accountId, hygieneId);
      return isRefusal(row)
        ? row
        : reader.table(accountId, 'hygiene', 'findings', hygieneId, kind, after ?? FIRST, limit);
    },
    /** Ends a run; what it found before remains. Refuses one that has ended (`INVALID_STATE`). */
    cancel: async (accountId: string, hygieneId: string): Promise<HygieneRunRow | Refusal> => {
      const row = existing(accountId, hygieneId);
      if (isRefusal(row)) return row;
      if (!(await finish(hygieneId, 'cancelled')))
        return refuse('INVALID_STATE', `The examination has ended: ${row.status}`);
      return existing(accountId, hygieneId);
    },
    start: (): void => loop.start(),
    /** A run in progress begins again at the next start. */
    stop: async (): Promise<void> => {
      stopping.abort();
      portions.stop();
      await loop.stop();
      await Promise.all(inProgress.values());
    },
  };
}

export type HygieneRuns = ReturnType<typeof createHygieneRuns>;

/** The counts of a run. */
export function hygieneCountsOf({ counts }: Pick<HygieneRunRow, 'counts'>): HygieneCounts {
  // Sound: only this module writes the column.
  return JSON.parse(counts) as HygieneCounts;
}
