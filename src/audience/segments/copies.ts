import { SECOND } from '../../core/clock.ts';
import { createLoop } from '../../core/concurrency/loop.ts';
import type { Context } from '../../store/context.ts';
import { createPortions } from '../../store/maintenance/portions.ts';
import { NO_ACCOUNT } from '../../store/readers/reads.ts';
import { copyChunk } from './columns.ts';

/** Contacts of a chunk that changed, from which on it is copied again. */
const MIN_CHANGES = 128;
/** Contacts of a chunk, from which on it is copied. */
const MIN_CONTACTS = 512;
/** Campaigns that a run examines for rows of deleted ones. */
const CAMPAIGNS_PER_RUN = 100;
const INTERVAL_MS = 5 * SECOND;
const SHARE = 'segment-copies';

/**
 * Copies contacts by column in the background: chunks without a copy, and those of which many contacts changed. A reader thread
 * reads a chunk, and one unit of work stores it. Also deletes what deleted campaigns left in `campaign_contacts`. Starts
 * nothing; nothing depends on its progress except the time that segments take.
 */
export function createSegmentCopies({
  tables,
  reader,
  writer,
  log,
}: Pick<Context, 'tables' | 'reader' | 'writer' | 'log'>) {
  const removed = createPortions({ writer, share: SHARE });
  /** The last campaign that was examined; the next run continues after it. */
  let lastCampaign = 0;
  let isStopping = false;

  async function copy(chunk: number): Promise<void> {
    const { accounts, changes } = await reader.query(NO_ACCOUNT, copyChunk, chunk);
    const copies = accounts.map(({ accountId, copied, others, columns }) => ({
      account_id: accountId,
      copied: Buffer.from(copied),
      others: Buffer.from(others),
      columns: new Map(columns.map(({ name, data }) => [name, Buffer.from(data)])),
    }));
    await writer.run((tx) => tx.segmentColumns.replace(chunk, copies, changes), SHARE);
  }

  async function run(): Promise<void> {
    const { segmentColumns } = tables;
    const copied = new Set(segmentColumns.copiedChunks());
    const due = new Set(segmentColumns.changedChunks(MIN_CHANGES).filter((chunk) => copied.has(chunk)));
    for (let chunk = 0; chunk <= segmentColumns.lastChunk(); chunk++) if (!copied.has(chunk)) due.add(chunk);
    for (const chunk of due) {
      if (isStopping) return;
      if (!copied.has(chunk)) {
        if (segmentColumns.size(chunk) < MIN_CONTACTS) continue;
        await writer.run((tx) => tx.segmentColumns.noteChanges(chunk), SHARE);
      }
      await copy(chunk);
    }
    const { deleted, last } = tables.engagement.deletedCampaign(lastCampaign, CAMPAIGNS_PER_RUN);
    if (deleted !== null)
      await removed.run((tx, rows) => ({
        rows,
        isDone: tx.engagement.removeOfCampaign(deleted, rows) < rows,
      }));
    lastCampaign = last ?? 0;
  }

  const loop = createLoop({ name: SHARE, run, intervalMs: INTERVAL_MS, log });
  return {
    start: loop.start,
    /** For tests and benchmarks: one run. */
    run,
    stop: (): Promise<void> => {
      isStopping = true;
      removed.stop();
      return loop.stop();
    },
  };
}
