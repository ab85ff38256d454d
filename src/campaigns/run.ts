import { type Clock, MINUTE, SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { isRefusal } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import { createHtmlReader } from '../sending/html-reader.ts';
import type { Pressure } from '../sending/pressure.ts';
import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import { MARKETING_PRIORITY, type QueueKey } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import { BATCH, type BatchMeans, isThrough, queueBatch } from './batch.ts';
import { createCampaignContents } from './content.ts';

/**
 * Sends campaigns: takes each one's members portion by portion into the queue, just ahead of delivery, so that a
 * million messages do not lie there waiting, transactional mail finds the house free, and a pause holds at once.
 * All it knows is in the database: it goes on after a crash where the last commit left off, and sees within a
 * second what another process changed.
 */
export interface CampaignRunner {
  start(): void;
  /** Something changed (committed): looks at once rather than in a second. */
  wake(): void;
  /** Ends after the unit of work under way. */
  stop(): Promise<void>;
}

export interface CampaignRunnerSettings extends Omit<BatchMeans, 'html'> {
  clock: Clock;
  log: Log;
  tables: Tables;
  writer: Writer;
  recorder: Recorder;
  pressure: Pick<Pressure, 'refusal' | 'room'>;
  announce(key: QueueKey): void;
}

/** A campaign's messages that may wait to be sent. */
const AHEAD = 2000;
/** What has waited longer waits for a site that is slow or down, and keeps nobody else's mail back. */
const STUCK_AFTER = 5 * MINUTE;
/** Messages called off, or let go again, in a unit of work. */
const AT_ONCE = 200;
/** Pauses, ms: between looks, while the queue is full, after a fault. */
const TICK = SECOND;
const FULL = SECOND / 10;
const AFTER_FAULT = 10 * SECOND;
/** Of the time that a unit of work took, how long everybody else has a turn after it. */
const PAUSE_SHARE = 0.5;

export function createCampaignRunner(settings: CampaignRunnerSettings): CampaignRunner {
  const { clock, log, tables, writer, recorder, pressure } = settings;
  const means = { ...settings, html: createHtmlReader() };
  const contents = createCampaignContents(means.html);
  /** Campaigns that failed, and when they are tried again. */
  const faulty = new Map<number, number>();
  const ending = new AbortController();
  let woken = false;
  let endRest = () => {};
  let loop: Promise<void> = Promise.resolve();

  async function run(): Promise<void> {
    while (!ending.signal.aborted) {
      woken = false;
      const wait = await round().catch((error: unknown) => {
        log.error({ err: error }, 'campaigns could not be looked at');
        return AFTER_FAULT;
      });
      if (wait > 0 && !woken && !ending.signal.aborted) await rest(wait);
    }
  }

  /** A turn for every campaign. */
  async function round(): Promise<number> {
    let wait = TICK;
    for (const seq of tables.campaignSends.open()) {
      if (ending.signal.aborted) break;
      wait = Math.min(wait, await look(seq));
    }
    return wait;
  }

  /** How long until it is worth looking again, ms. One campaign's fault is nobody else's. */
  async function look(seq: number): Promise<number> {
    if ((faulty.get(seq) ?? 0) > clock.now()) return TICK;
    const began = performance.now();
    try {
      faulty.delete(seq);
      const wait = await step(seq);
      if (wait === 0) await rest((performance.now() - began) * PAUSE_SHARE);
      return wait;
    } catch (error) {
      log.error({ err: error, campaign: seq }, 'a campaign could not go on; it is tried again');
      faulty.set(seq, clock.now() + AFTER_FAULT);
      return TICK;
    }
  }

  function rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      endRest = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** One unit of work at most. 0: there is more to do. */
  async function step(seq: number): Promise<number> {
    const send = tables.campaignSends.get(seq);
    if (send === null) return TICK;
    const now = clock.now();
    if (send.status === 'sending') return proceed(send, now);
    if (send.status === 'cancelled') return writer.run((all) => callOff(all, seq));
    if (send.status !== 'scheduled') return TICK;
    if (send.scheduled_at !== null && send.scheduled_at > now) return send.scheduled_at - now;
    await writer.run((all) => begin(all, seq, 'scheduled', clock.now()));
    return 0;
  }

  async function proceed(send: CampaignSend, now: number): Promise<number> {
    const seq = send.campaign_seq;
    // First what takes no more room: only by its going does the queue of a full house become shorter.
    if (await letGo(seq)) return 0;
    if (isThrough(send)) return finish(send);
    if (pressure.refusal() !== null) return TICK;
    if (send.started_at === null) {
      await writer.run((all) => begin(all, seq, 'sending', clock.now()));
      return 0;
    }
    if (send.next_at > now) return send.next_at - now;
    const ahead = AHEAD - tables.campaignSends.dueSince(seq, now - STUCK_AFTER, AHEAD);
    if (ahead < BATCH) return FULL;
    const room = Math.min(ahead, pressure.room());
    if (room < 1) return FULL;
    // The account's message limits: the campaign waits. A raised limit is seen within a second.
    const { left, moreAt } = settings.limits.allowance(tables, send.account_id, now);
    if (left < 1) return Math.max(FULL, Math.min(moreAt - now, TICK));
    const content = await contents.prepare(tables, send);
    const batch = await writer.run((all) => {
      const current = all.campaignSends.get(seq);
      if (current === null || current.status !== 'sending') return null;
      const done = queueBatch(all, current, room, content, means);
      if (!isRefusal(done)) return done;
      // A value of its own: a unit that returns a refusal leaves no trace.
      const reason = `${done.code}: ${done.message}`;
      pauseSend(all, current, reason, clock.now());
      return reason;
    });
    if (typeof batch === 'string') {
      log.warn({ campaignId: send.campaign_id, reason: batch }, 'a campaign was paused');
    } else if (batch !== null) {
      for (const destination of batch)
        settings.announce({ priority: MARKETING_PRIORITY, account_id: send.account_id, destination });
    }
    return 0;
  }

  /** Mail that was held while the campaign was paused is due again. True when there was some. */
  async function letGo(seq: number): Promise<boolean> {
    if (!tables.campaignSends.anyHeld(seq)) return false;
    const released = await writer.run((all) => {
      if (all.campaignSends.get(seq)?.status !== 'sending') return [];
      const now = clock.now();
      return all.campaignSends.release(seq, now, now + settings.expire.mk, AT_ONCE);
    });
    for (const key of released) settings.announce(key);
    return true;
  }

  /** Sent is a campaign when every member has been dealt with and no message waits for its first turn. */
  async function finish(send: CampaignSend): Promise<number> {
    const waits = (all: Tables) =>
      all.campaignSends.anyHeld(send.campaign_seq) ||
      all.campaignSends.anyInQueue(send.campaign_seq, { due: true });
    if (waits(tables)) return TICK / 2;
    await writer.run((all) => {
      const current = all.campaignSends.get(send.campaign_seq);
      // It may have been paused, and resumed, since.
      if (current?.status !== 'sending' || waits(all)) return;
      const now = clock.now();
      all.campaigns.setStatus(current.campaign_seq, 'sent', now);
      all.campaignSends.update({ ...current, open: 0, finished_at: now });
    });
    return 0;
  }

  /** A cancelled campaign's mail, as far as nobody is sending it. Returns ms until there may be more. */
  function callOff(all: Tables, seq: number): number {
    const send = all.campaignSends.get(seq);
    if (send?.status !== 'cancelled') return 0;
    const waiting = all.campaignSends.waiting(seq, AT_ONCE);
    for (const messageSeq of waiting) {
      const message = all.messages.bySeq(messageSeq);
      if (message !== null)
        recorder.message(all, message, 'email_failed', { fields: { reason: 'cancelled' } });
    }
    if (waiting.length === AT_ONCE) return 0;
    // What a worker has at this moment may come back to be tried again.
    if (all.campaignSends.anyInQueue(seq, { due: false })) return TICK;
    all.campaignSends.update({ ...send, open: 0 });
    return 0;
  }

  return {
    start: () => {
      loop = run();
    },
    wake: () => {
      woken = true;
      endRest();
    },
    stop: async () => {
      ending.abort();
      endRest();
      await loop;
    },
  };
}

/** In a unit of work: who is to get it is settled now. */
export function begin(tables: Tables, seq: number, from: 'scheduled' | 'sending', now: number): void {
  const send = tables.campaignSends.get(seq);
  if (send?.status !== from || send.started_at !== null) return;
  if (from === 'scheduled') tables.campaigns.setStatus(seq, 'sending', now);
  const group = tables.subscriptionGroups.get(send.account_id, send.subscription_group_id);
  tables.campaignSends.update({
    ...send,
    started_at: now,
    members: group?.active_subscribers ?? 0,
    // Without its group it is paused by the first portion, and can only be cancelled.
    last_seq: group === null ? Number.MAX_SAFE_INTEGER : tables.campaignSends.newestMember(group.seq),
  });
}

/** In a unit of work; `reason` null: by its account's wish. */
export function pauseSend(tables: Tables, send: CampaignSend, reason: string | null, now: number): void {
  tables.campaigns.setStatus(send.campaign_seq, 'paused', now);
  tables.campaignSends.update({ ...send, paused_reason: reason });
}
