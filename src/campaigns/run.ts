import { setTimeout as sleep } from 'node:timers/promises';
import { MINUTE, SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { isRefusal } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import { runTaking, type TakenMessage } from '../sending/draft.ts';
import type { Pressure } from '../sending/pressure.ts';
import { createHtmlReader } from '../sending/render/html-reader.ts';
import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { Writer } from '../store/database/writer.ts';
import { MARKETING_PRIORITY, type QueueKey } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import {
  type BatchDeps,
  createCampaignContents,
  isComplete,
  MEMBER_BATCH_SIZE,
  queueBatch,
} from './batch.ts';

export interface CampaignRunnerDeps extends Omit<BatchDeps, 'htmlReader'> {
  tables: Tables;
  writer: Writer;
  recorder: Recorder;
  pressure: Pick<Pressure, 'refusal' | 'capacity'>;
  announce(key: QueueKey): void;
  /** Messages of a campaign that may wait to be sent. Default: 2000. */
  maxAhead?: number;
}

const MAX_AHEAD = 2000;
/** Messages that have waited longer are for sites that are slow or down: they do not count as waiting. */
const STUCK_MS = 5 * MINUTE;
/** Messages that are cancelled or released in one unit of work. */
const MESSAGE_BATCH_SIZE = 200;
const ROUND_INTERVAL_MS = SECOND;
const FULL_QUEUE_INTERVAL_MS = SECOND / 10;
const FAULT_RETRY_MS = 10 * SECOND;
/** The pause after a unit of work, as a share of its duration: others get their turn. */
const PAUSE_SHARE = 0.5;

/**
 * Sends campaigns: moves the members of each one into the queue in batches, just ahead of delivery, so that the queue
 * of a large campaign stays short, transactional mail is not delayed, and a pause takes effect immediately. The state
 * is in the database: after a crash it continues from the last commit, and changes by other processes are noticed
 * within a second. Starts nothing; after `start` the loop keeps the process running. A campaign that fails is tried
 * again after 10 s, which is in memory only. All campaigns share one HTML reader and one cache of contents.
 */
export function createCampaignRunner(deps: CampaignRunnerDeps) {
  const { clock, log, tables, writer, recorder, pressure, maxAhead = MAX_AHEAD } = deps;
  const batchDeps = { ...deps, htmlReader: createHtmlReader() };
  const contents = createCampaignContents(batchDeps.htmlReader);
  /** Campaigns that failed, with the time of their next try. */
  const failed = new Map<number, number>();
  let isStopping = false;

  /** One step of each campaign. Returns ms until the next round. */
  async function round(): Promise<number> {
    let waitMs = ROUND_INTERVAL_MS;
    for (const seq of tables.campaignSends.open()) {
      if (isStopping) break;
      waitMs = Math.min(waitMs, await tryStep(seq));
    }
    return waitMs;
  }

  /** The failure of one campaign does not affect the others. */
  async function tryStep(seq: number): Promise<number> {
    if ((failed.get(seq) ?? 0) > clock.now()) return ROUND_INTERVAL_MS;
    const startedAt = performance.now();
    try {
      failed.delete(seq);
      const waitMs = await step(seq);
      if (waitMs === 0) await sleep((performance.now() - startedAt) * PAUSE_SHARE);
      return waitMs;
    } catch (error) {
      log.error({ err: error, campaignSeq: seq }, 'campaign could not continue; trying again later');
      failed.set(seq, clock.now() + FAULT_RETRY_MS);
      return ROUND_INTERVAL_MS;
    }
  }

  /** At most one unit of work. Returns ms until the next step; 0: there is more to do. */
  async function step(seq: number): Promise<number> {
    const send = tables.campaignSends.get(seq);
    if (send === null) return ROUND_INTERVAL_MS;
    const now = clock.now();
    if (send.status === 'sending')
      return isAccountDisabled(tables, send) ? ROUND_INTERVAL_MS : proceed(send, now);
    if (send.status === 'cancelled') return writer.run((all) => cancelMessages(all, seq), send.account_id);
    if (send.status !== 'scheduled' || isAccountDisabled(tables, send)) return ROUND_INTERVAL_MS;
    if (send.scheduled_at !== null && send.scheduled_at > now) return send.scheduled_at - now;
    await writer.run((all) => begin(all, seq, 'scheduled', clock.now()), send.account_id);
    return 0;
  }

  async function proceed(send: CampaignSend, now: number): Promise<number> {
    const seq = send.campaign_seq;
    // Held messages first: they are in the queue already, and sending them makes it shorter.
    if (await releaseHeld(send)) return 0;
    if (isComplete(send)) return finish(send);
    if (pressure.refusal(send.account_id) !== null) return ROUND_INTERVAL_MS;
    if (send.started_at === null) {
      await writer.run((all) => begin(all, seq, 'sending', clock.now()), send.account_id);
      return 0;
    }
    if (send.next_at > now) return send.next_at - now;
    const free = maxAhead - tables.campaignSends.dueSince(seq, now - STUCK_MS, maxAhead);
    if (free < MEMBER_BATCH_SIZE) return FULL_QUEUE_INTERVAL_MS;
    const capacity = Math.min(free, pressure.capacity());
    if (capacity < 1) return FULL_QUEUE_INTERVAL_MS;
    // The campaign waits for the account's message limits. A raised limit is noticed within a second.
    const { left, moreAt } = deps.limits.allowance(tables, send.account_id, now);
    if (left < 1) return Math.max(FULL_QUEUE_INTERVAL_MS, Math.min(moreAt - now, ROUND_INTERVAL_MS));
    const content = await contents.prepare(tables, send);
    const taken: TakenMessage[] = [];
    const batch = await runTaking(writer, send.account_id, taken, (all) => {
      const current = all.campaignSends.get(seq);
      if (current === null || current.status !== 'sending' || isAccountDisabled(all, current)) return null;
      const result = queueBatch(all, current, capacity, content, batchDeps, taken);
      if (!isRefusal(result)) return result;
      // A string, because a unit of work that returns a refusal is rolled back.
      const reason = `${result.code}: ${result.message}`;
      pauseSend(all, current, reason, clock.now());
      return reason;
    });
    for (const message of taken) message.committed();
    if (typeof batch === 'string') {
      log.warn({ campaignId: send.campaign_id, reason: batch }, 'campaign paused');
    } else if (batch !== null) {
      for (const destination of batch)
        deps.announce({ priority: MARKETING_PRIORITY, account_id: send.account_id, destination });
    }
    return 0;
  }

  /** Makes messages due that were held while the campaign was paused. Returns whether there were any. */
  async function releaseHeld({ campaign_seq: seq, account_id: accountId }: CampaignSend): Promise<boolean> {
    if (!tables.campaignSends.anyHeld(seq)) return false;
    const released = await writer.run((all) => {
      if (all.campaignSends.get(seq)?.status !== 'sending') return [];
      const now = clock.now();
      return all.campaignSends.release(
        seq,
        now,
        deps.expiry.acceptedAt() + deps.expire.mk,
        MESSAGE_BATCH_SIZE,
      );
    }, accountId);
    for (const key of released) deps.announce(key);
    return true;
  }

  /** A campaign is sent when all members were processed and no message waits for its first attempt. */
  async function finish(send: CampaignSend): Promise<number> {
    const hasWaiting = (all: Tables) =>
      all.campaignSends.anyHeld(send.campaign_seq) ||
      all.campaignSends.anyInQueue(send.campaign_seq, { due: true });
    if (hasWaiting(tables)) return ROUND_INTERVAL_MS / 2;
    await writer.run((all) => {
      const current = all.campaignSends.get(send.campaign_seq);
      // The campaign can have been paused or cancelled in the meantime.
      if (current?.status !== 'sending' || hasWaiting(all)) return;
      const now = clock.now();
      all.campaigns.setStatus(current.campaign_seq, 'sent', now);
      all.campaignSends.update({ ...current, open: 0, finished_at: now });
    }, send.account_id);
    return 0;
  }

  /** Cancels messages that are not being sent. Returns ms until there can be more. */
  function cancelMessages(all: Tables, seq: number): number {
    const send = all.campaignSends.get(seq);
    if (send?.status !== 'cancelled') return 0;
    const waiting = all.campaignSends.waiting(seq, MESSAGE_BATCH_SIZE);
    for (const messageSeq of waiting) {
      const message = all.messages.bySeq(messageSeq);
      if (message !== null)
        recorder.message(all, message, { kind: 'email_failed', fields: { reason: 'cancelled' } });
    }
    if (waiting.length === MESSAGE_BATCH_SIZE) return 0;
    // A message that is being sent can be deferred and return to the queue.
    if (all.campaignSends.anyInQueue(seq, { due: false })) return ROUND_INTERVAL_MS;
    all.campaignSends.update({ ...send, open: 0 });
    return 0;
  }

  const loop = createLoop({
    name: 'campaigns',
    run: round,
    intervalMs: ROUND_INTERVAL_MS,
    retryMs: FAULT_RETRY_MS,
    log,
    ref: true,
  });

  return {
    start: loop.start,
    /** Starts a round now, after a committed change of a campaign. */
    wake: loop.wake,
    /** Resolves after the unit of work in progress. */
    stop: (): Promise<void> => {
      isStopping = true;
      return loop.stop();
    },
  };
}

export type CampaignRunner = ReturnType<typeof createCampaignRunner>;

/** Starts a campaign in a unit of work: determines the members that receive it. */
export function begin(tables: Tables, seq: number, from: 'scheduled' | 'sending', now: number): void {
  const send = tables.campaignSends.get(seq);
  if (send?.status !== from || send.started_at !== null || isAccountDisabled(tables, send)) return;
  if (from === 'scheduled') tables.campaigns.setStatus(seq, 'sending', now);
  const group = tables.subscriptionGroups.get(send.account_id, send.subscription_group_id);
  tables.campaignSends.update({
    ...send,
    started_at: now,
    members: group?.active_subscribers ?? 0,
    // Without its group it is paused by the first batch and can only be cancelled.
    last_seq: group === null ? Number.MAX_SAFE_INTEGER : tables.campaignSends.newestMember(group.seq),
  });
}

/**
 * Whether the account of a campaign is disabled: the campaign waits until the account is enabled, and its state does not
 * change.
 */
function isAccountDisabled(tables: Tables, { account_id }: Pick<CampaignSend, 'account_id'>): boolean {
  return tables.accounts.get(account_id)?.status !== 'active';
}

/** Pauses a campaign in a unit of work. `reason` null: by request of the account. */
export function pauseSend(tables: Tables, send: CampaignSend, reason: string | null, now: number): void {
  tables.campaigns.setStatus(send.campaign_seq, 'paused', now);
  tables.campaignSends.update({ ...send, paused_reason: reason });
}
