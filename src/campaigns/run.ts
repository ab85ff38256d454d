import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { AccountLimits } from '../accounts/limits.ts';
import { type PageLanguage, pageLanguageOf } from '../accounts/page-texts.ts';
import { marketingIneligibility } from '../audience/eligibility.ts';
import { countPortion, nextSelected } from '../audience/segments/evaluate.ts';
import { HOUR, MINUTE, SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { inSlices } from '../core/concurrency/slices.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import type { Delivery } from '../delivery/delivery.ts';
import { countCampaignQueued } from '../events/counts.ts';
import type { Recorder } from '../events/record.ts';
import { domainOf } from '../mail/address.ts';
import { hidingVariable } from '../mail/compliance.ts';
import type { Mailbox } from '../mail/content.ts';
import type { OwnContent, SharedContent } from '../mail/shared-content.ts';
import { packContent } from '../mail/stored-content.ts';
import { messagesAhead } from '../reputation/judgement.ts';
import { figuresOf, REMEDIES, type ReputationConfig } from '../reputation/limits.ts';
import { isSimulated, type StoreOptions, storeMessage } from '../sending/draft.ts';
import { type PackedShared, packShared } from '../sending/encode.ts';
import type { Pressure } from '../sending/pressure.ts';
import { createHtmlReader, type HtmlReader } from '../sending/render/html-reader.ts';
import { type PreparedTemplate, parseContentInSteps } from '../sending/render/render.ts';
import {
  type CopyRendering,
  fillCopy,
  type SharedRendering,
  sharedParts,
  sharePreparedInSteps,
} from '../sending/render/render-shared.ts';
import type { CampaignMember, CampaignSend, MemberRange } from '../store/campaigns/campaign-sends.ts';
import type { Context } from '../store/context.ts';
import { ReadRejected } from '../store/database/failure.ts';
import type { DomainRow } from '../store/domains/domains.ts';
import { MARKETING_PRIORITY, type QueueKey } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import { isLiquid, type LiquidContent, readLiquid } from '../templates/liquid.ts';
import type { TemplateThreads } from '../templates/thread/threads.ts';
import { type CampaignAudience, excludedAmong, rangeOfGroup, readAudience, selectionOf } from './audience.ts';
import { winnerOf } from './comparison.ts';
import { contactVariables, isContactField, mailboxOf } from './fields.ts';
import { type CampaignResults, campaignVerdict, resultsOf } from './guard.ts';
import {
  type RenderedMember,
  type RenderedMembers,
  renderedCopy,
  renderMembers,
  shareLiquid,
} from './liquid.ts';
import {
  type CampaignMail,
  campaignIn,
  mailOfVariant,
  type ReadyCampaign,
  recheckCampaign,
  storedMail,
} from './mail.ts';
import {
  type AssignedCopy,
  assignmentOf,
  type Decision,
  isComplete,
  isPassEnd,
  isRestNext,
  openVariants,
  testOf,
} from './variants.ts';

/** What the runner shares with other parts. */
export interface CampaignParts extends StoreOptions {
  recorder: Recorder;
  pressure: Pick<Pressure, 'refusal' | 'capacity'>;
  limits: Pick<AccountLimits, 'takeMessages' | 'allowance'>;
  /** How many marketing messages of a new account or domain may still leave today. Default: any number. */
  marketingLeft?: Delivery['marketingLeft'];
  /** Renders Liquid. */
  threads: TemplateThreads;
  announce(key: QueueKey): void;
  /** Messages of a campaign that may wait to be sent. Default: 2000. */
  maxAhead?: number;
  /** The automatic limits. Default: none. */
  guard?: ReputationConfig;
}

const MAX_AHEAD = 2000;
/** Messages that have waited longer are for sites that are slow or down: they do not count as waiting. */
const STUCK_MS = 5 * MINUTE;
/** Messages that are cancelled or released in one unit of work. */
const MESSAGE_BATCH_SIZE = 200;
const ROUND_INTERVAL_MS = SECOND;
const FULL_QUEUE_INTERVAL_MS = SECOND / 10;
/** While few messages may be under way, their results are looked up more often; each time that there are no new ones, less often. */
const FEW_AHEAD_INTERVAL_MS = SECOND / 50;
const FAULT_RETRY_MS = 10 * SECOND;
const TOO_BROAD =
  'QUERY_TOO_BROAD: A segment of the campaign takes too long to evaluate: change its filter to fewer conditions or shorter fields';
/** The pause after a unit of work, as a share of its duration: others get their turn. */
const PAUSE_SHARE = 0.5;

/**
 * Sends campaigns: moves the members of each one into the queue in batches, just ahead of delivery, so that the queue
 * of a large campaign stays short, transactional mail is not delayed, and a pause takes effect immediately. The state
 * is in the database: after a crash it continues from the last commit, and changes by other processes are noticed
 * within a second. Starts nothing; after `start` the loop keeps the process running. A campaign that fails is tried
 * again after 10 s, which is in memory only. All campaigns share one HTML reader and one cache of contents.
 */
export function createCampaignRunner(
  context: Pick<Context, 'clock' | 'ids' | 'log' | 'tables' | 'reader' | 'writer'>,
  parts: CampaignParts,
) {
  const { clock, ids, log, tables, reader, writer } = context;
  const { recorder, pressure, limits, announce, maxAhead = MAX_AHEAD } = parts;
  const htmlReader = createHtmlReader();
  const batchParts: BatchParts = { ...parts, clock, ids, log, htmlReader };
  const contents = createCampaignContents(htmlReader, parts.threads);
  const counts = createSideReads<number>(stepSoon);
  const selections = createSelections(context, stepSoon);
  /** Campaigns that failed, with the time of their next try. */
  const failed = new Map<number, number>();
  /** Campaigns that wait, with the time of their next step, `performance.now()`: one that is busy does not step the others. */
  const nextSteps = new Map<number, number>();
  /** Campaigns whose first results are awaited, with their number and the pause until the next look. */
  const awaited = new Map<number, { results: number; waitMs: number }>();
  let isWoken = false;
  let isStopping = false;

  /** The next round steps this campaign. */
  function stepSoon(seq: number): void {
    nextSteps.delete(seq);
    loop.wake();
  }

  /** One step of each campaign that does not wait. Returns ms until the next round. */
  async function round(): Promise<number> {
    if (isWoken) nextSteps.clear();
    isWoken = false;
    let waitMs = ROUND_INTERVAL_MS;
    const open = new Set(tables.campaignSends.open());
    for (const seq of nextSteps.keys()) if (!open.has(seq)) nextSteps.delete(seq);
    for (const seq of awaited.keys()) if (!open.has(seq)) awaited.delete(seq);
    for (const seq of open) {
      if (isStopping) break;
      let leftMs = (nextSteps.get(seq) ?? 0) - performance.now();
      if (leftMs <= 0) {
        // Changes by other processes are noticed within a second.
        leftMs = Math.min(await tryStep(seq), ROUND_INTERVAL_MS);
        nextSteps.set(seq, performance.now() + leftMs);
      }
      waitMs = Math.min(waitMs, leftMs);
    }
    return waitMs;
  }

  /** Ms until the results of a campaign are looked up again of which few messages are under way. */
  function awaitResults(seq: number, { delivered, bounced }: CampaignResults['all']): number {
    const results = delivered + bounced;
    const known = awaited.get(seq);
    const waitMs =
      known?.results === results ? Math.min(2 * known.waitMs, ROUND_INTERVAL_MS) : FEW_AHEAD_INTERVAL_MS;
    awaited.set(seq, { results, waitMs });
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
      if (error instanceof ReadRejected && error.reason === 'too-broad') {
        await pauseTooBroad(seq);
        return ROUND_INTERVAL_MS;
      }
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
    if (send.status === 'cancelled') return writer.run((tx) => cancelMessages(tx, seq), send.account_id);
    if (send.status !== 'scheduled' || isAccountDisabled(tables, send)) return ROUND_INTERVAL_MS;
    if (send.scheduled_at !== null && send.scheduled_at > now) return send.scheduled_at - now;
    return beginCounted(send, 'scheduled');
  }

  /** Pauses a campaign whose segment takes longer than `readers.budget` for a few thousand contacts: a person has to change it. */
  async function pauseTooBroad(seq: number): Promise<void> {
    const send = tables.campaignSends.get(seq);
    if (send === null) return;
    const reason = TOO_BROAD;
    await writer.run((tx) => {
      const current = tx.campaignSends.get(seq);
      if (current?.status === 'sending' || current?.status === 'scheduled')
        pauseSend(tx, current, { reason, figures: null }, clock.now());
    }, send.account_id);
    log.warn({ campaignId: send.campaign_id, reason }, 'campaign paused');
  }

  /** Begins a campaign once its audience is counted: that of a group is. */
  async function beginCounted(send: CampaignSend, from: 'scheduled' | 'sending'): Promise<number> {
    const audience = readAudience(send);
    const counted =
      audience === null ? { value: null } : counts.take(send, () => countAudience(send, audience));
    if (counted === null) return FULL_QUEUE_INTERVAL_MS;
    const { campaign_seq: seq, account_id: accountId } = send;
    await writer.run((tx) => begin(tx, seq, from, clock.now(), counted.value), accountId);
    return 0;
  }

  async function countAudience(send: CampaignSend, audience: CampaignAudience): Promise<number> {
    const selection = selectionOf(tables, send, audience, audience.groupIds, clock.now());
    let members = 0;
    for (let chunk: number | null = 0; chunk !== null; ) {
      const portion: { count: number; next: number | null } = await reader.query(
        send.account_id,
        countPortion,
        selection,
        chunk,
      );
      members += portion.count;
      chunk = portion.next;
    }
    return members;
  }

  async function proceed(send: CampaignSend, now: number): Promise<number> {
    const seq = send.campaign_seq;
    const guard = parts.guard?.reputation.limits === 'enforce' ? parts.guard : null;
    const results = guard === null ? null : resultsOf(tables, send, now);
    if (guard !== null && results !== null && (await stopIfNeeded(send, results, guard))) return 0;
    // Held messages first: they are in the queue already, and sending them makes it shorter.
    if (await releaseHeld(send)) return 0;
    if (isComplete(send)) return finish(send);
    if (isRestNext(send)) return beginRestWhenDue(send, now);
    if (pressure.refusal(send.account_id) !== null) return ROUND_INTERVAL_MS;
    if (send.started_at === null) return beginCounted(send, 'sending');
    if (send.next_at > now) return send.next_at - now;
    // Few messages are under way until the first results are known.
    const ahead = results === null ? maxAhead : Math.min(maxAhead, messagesAhead(results.all));
    const free = ahead - tables.campaignSends.dueSince(seq, now - STUCK_MS, ahead);
    if (free < MEMBER_BATCH_SIZE)
      return results !== null && ahead < maxAhead ? awaitResults(seq, results.all) : FULL_QUEUE_INTERVAL_MS;
    const capacity = Math.min(free, pressure.capacity());
    if (capacity < 1) return FULL_QUEUE_INTERVAL_MS;
    // The campaign waits for the account's message limits. A raised limit is noticed within a second.
    const { left, moreAt } = limits.allowance(tables, send.account_id, now);
    if (left < 1) return Math.max(FULL_QUEUE_INTERVAL_MS, Math.min(moreAt - now, ROUND_INTERVAL_MS));
    const audience = readAudience(send);
    const selected = audience === null ? null : selections.next(send, audience);
    if (selected === undefined) return FULL_QUEUE_INTERVAL_MS;
    const prepared: PreparedContents = new Map();
    for (const variant of openVariants(send))
      prepared.set(variant, await contents.prepare(tables, send, variant));
    const content = [...prepared.values()].find((one): one is CampaignContent => !isRefusal(one));
    // Messages of a stream that was stopped would only wait in the queue.
    if (content !== undefined && isStreamStopped(tables, send, content.mail)) return ROUND_INTERVAL_MS;
    const today = content === undefined ? capacity : leftToday(send, content.mail);
    if (today < 1) return ROUND_INTERVAL_MS;
    const limit = Math.min(capacity, left, today, paceOf(send.per_hour).batchSize);
    const rendered = await renderAhead(send, selected, prepared, limit);
    if (rendered?.size === 0) return ROUND_INTERVAL_MS;
    const batch = await writer.run((tx) => {
      const current = tx.campaignSends.get(seq);
      if (current === null || current.status !== 'sending' || isAccountDisabled(tx, current)) return null;
      // Another process changed the campaign in the meantime.
      if (current.at_seq !== send.at_seq || current.subscription_group_id !== send.subscription_group_id)
        return null;
      if (current.decision !== send.decision || current.in_rest !== send.in_rest) return null;
      const result = queueBatch(tx, current, selected, limit, prepared, {
        ...batchParts,
        rendered,
      });
      if (!isRefusal(result)) return result;
      // A string, because a unit of work that returns a refusal is rolled back.
      const reason = `${result.code}: ${result.message}`;
      pauseSend(tx, current, { reason, figures: null }, clock.now());
      return reason;
    }, send.account_id);
    if (typeof batch === 'string') {
      log.warn({ campaignId: send.campaign_id, reason: batch }, 'campaign paused');
    } else if (batch !== null) {
      for (const destination of batch)
        announce({ priority: MARKETING_PRIORITY, account_id: send.account_id, destination });
    }
    return 0;
  }

  /** Messages that the ramp of a new account or domain allows today, without those that wait already. */
  function leftToday(send: CampaignSend, { fromDomain }: CampaignMail): number {
    const domain = marketingDomain(tables, send, fromDomain);
    if (domain === undefined || parts.marketingLeft === undefined) return Number.POSITIVE_INFINITY;
    const left = parts.marketingLeft(domain);
    return left === Number.POSITIVE_INFINITY
      ? left
      : left - tables.campaignSends.dueSince(send.campaign_seq, 0, left);
  }

  /**
   * Renders the next members of a campaign in Liquid, at most `limit`; null: it is not in Liquid, or none of them has an address.
   * Empty: the threads are stopping.
   */
  async function renderAhead(
    send: CampaignSend,
    selected: SelectedMembers | null,
    prepared: PreparedContents,
    limit: number,
  ): Promise<RenderedMembers | null> {
    const inLiquid = [...prepared].flatMap(([variant, content]) => {
      if (isRefusal(content)) return [];
      const { wording } = content.mail;
      return isLiquid(wording) ? [{ variant, mail: { ...content.mail, wording } }] : [];
    });
    const group = tables.subscriptionGroups.get(send.account_id, send.subscription_group_id);
    if (inLiquid.length === 0 || group === null) return null;
    const { members } = nextMembers(tables, send, group.seq, selected);
    const recipients = members.filter(({ email }) => email !== null).slice(0, limit);
    const assigned = assignmentOf(send);
    let rendered: Map<number, RenderedMember> | null = null;
    for (const { variant, mail } of inLiquid) {
      const own = recipients.filter(({ seq }) => assigned(seq)?.variant === variant);
      if (own.length === 0) continue;
      const some = await renderMembers(parts.threads, send.account_id, mail, own);
      rendered = new Map([...(rendered ?? []), ...some]);
    }
    return rendered;
  }

  /**
   * Waits after the messages of a test, then decides its winner and begins the rest of the audience, in one unit of work. Returns ms
   * until the next step. The wait begins when no message of the test waits for its first attempt.
   */
  async function beginRestWhenDue(send: CampaignSend, now: number): Promise<number> {
    const { campaign_seq: seq, account_id: accountId } = send;
    if (send.decision === null && send.decide_at === null) {
      if (hasWaiting(tables, seq)) return ROUND_INTERVAL_MS / 2;
      await writer.run((tx) => {
        const current = tx.campaignSends.get(seq);
        if (current?.status !== 'sending' || current.decide_at !== null || !isRestNext(current)) return;
        const waitHours = testOf(current)?.waitHours ?? 0;
        tx.campaignSends.update({ ...current, decide_at: clock.now() + waitHours * HOUR });
      }, accountId);
      return 0;
    }
    if (send.decision === null && send.decide_at !== null && send.decide_at > now)
      return send.decide_at - now;
    await writer.run((tx) => {
      const current = tx.campaignSends.get(seq);
      if (current?.status === 'sending' && isRestNext(current)) beginRest(tx, current, clock.now());
    }, accountId);
    return 0;
  }

  /** Stops a campaign whose results show that it must not continue. Returns whether it was stopped. */
  async function stopIfNeeded(
    send: CampaignSend,
    results: CampaignResults,
    guard: ReputationConfig,
  ): Promise<boolean> {
    if (campaignVerdict(results, guard) === null) return false;
    const verdict = await writer.run((tx) => {
      const current = tx.campaignSends.get(send.campaign_seq);
      if (current?.status !== 'sending') return null;
      const found = campaignVerdict(resultsOf(tx, current, clock.now()), guard);
      if (found === null) return null;
      const figures = figuresOf(found);
      pauseSend(tx, current, { reason: found.signal, figures: JSON.stringify(figures) }, clock.now());
      recorder.account(tx, { accountId: current.account_id }, 'campaign_paused', {
        campaignId: current.campaign_id,
        campaignName: tx.campaigns.get(current.account_id, current.campaign_id)?.name ?? '',
        reason: found.signal,
        figures,
        remedy: REMEDIES[found.signal],
      });
      return { signal: found.signal, ...figures };
    }, send.account_id);
    if (verdict !== null) log.warn({ campaignId: send.campaign_id, ...verdict }, 'campaign stopped');
    return verdict !== null;
  }

  /** Makes messages due that were held while the campaign was paused. Returns whether there were any. */
  async function releaseHeld({ campaign_seq: seq, account_id: accountId }: CampaignSend): Promise<boolean> {
    if (!tables.campaignSends.anyHeld(seq)) return false;
    const released = await writer.run((tx) => {
      if (tx.campaignSends.get(seq)?.status !== 'sending') return [];
      const now = clock.now();
      return tx.campaignSends.release(
        seq,
        now,
        parts.expiry.acceptedAt() + parts.expire.mk,
        MESSAGE_BATCH_SIZE,
      );
    }, accountId);
    for (const key of released) announce(key);
    return true;
  }

  /** A campaign is sent when all members were processed and no message waits for its first attempt. */
  async function finish(send: CampaignSend): Promise<number> {
    if (hasWaiting(tables, send.campaign_seq)) return ROUND_INTERVAL_MS / 2;
    await writer.run((tx) => {
      const current = tx.campaignSends.get(send.campaign_seq);
      // The campaign can have been paused or cancelled in the meantime.
      if (current?.status !== 'sending' || hasWaiting(tx, send.campaign_seq)) return;
      const now = clock.now();
      tx.campaigns.setStatus(current.campaign_seq, 'sent', now);
      tx.campaignSends.update({ ...current, open: 0, finished_at: now });
    }, send.account_id);
    return 0;
  }

  /** Cancels messages that are not being sent. Returns ms until there can be more. */
  function cancelMessages(tx: Tables, seq: number): number {
    const send = tx.campaignSends.get(seq);
    if (send?.status !== 'cancelled') return 0;
    const waiting = tx.campaignSends.waiting(seq, MESSAGE_BATCH_SIZE);
    for (const messageSeq of waiting) {
      const message = tx.messages.bySeq(messageSeq);
      if (message !== null)
        recorder.message(tx, message, { kind: 'email_failed', fields: { reason: 'cancelled' } });
    }
    if (waiting.length === MESSAGE_BATCH_SIZE) return 0;
    // A message that is being sent can be deferred and return to the queue.
    if (tx.campaignSends.anyInQueue(seq, { due: false })) return ROUND_INTERVAL_MS;
    tx.campaignSends.update({ ...send, open: 0 });
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
    wake: (): void => {
      isWoken = true;
      loop.wake();
    },
    /** Resolves after the unit of work in progress. */
    stop: (): Promise<void> => {
      isStopping = true;
      return loop.stop();
    },
  };
}

export type CampaignRunner = ReturnType<typeof createCampaignRunner>;

/**
 * Starts a campaign in a unit of work: determines the members that receive it. `counted`: contacts of its audience; null: it
 * has none but a group.
 */
export function begin(
  tables: Tables,
  seq: number,
  from: 'scheduled' | 'sending',
  now: number,
  counted: number | null = null,
): void {
  const send = tables.campaignSends.get(seq);
  if (send?.status !== from || send.started_at !== null || isAccountDisabled(tables, send)) return;
  if (from === 'scheduled') tables.campaigns.setStatus(seq, 'sending', now);
  const audience = readAudience(send);
  if (audience !== null) {
    const range = rangeOfGroup(tables, send.account_id, audience.groupIds, 0) ?? { last_seq: 0 };
    return tables.campaignSends.update({ ...send, ...range, started_at: now, members: counted });
  }
  const group = tables.subscriptionGroups.get(send.account_id, send.subscription_group_id);
  tables.campaignSends.update({
    ...send,
    started_at: now,
    members: group?.active_subscribers ?? 0,
    // Without its group it is paused by the first batch and can only be cancelled.
    last_seq: group === null ? Number.MAX_SAFE_INTEGER : tables.campaignSends.newestMember(group.seq),
  });
}

/** Begins the rest of the audience after a test, with the winner: that which was chosen, or that of the counts until now. */
function beginRest(tables: Tables, send: CampaignSend, now: number): void {
  const rest: CampaignSend = {
    ...send,
    in_rest: 1,
    decision: send.decision ?? JSON.stringify(decide(tables, send, now)),
  };
  const audience = readAudience(send);
  if (audience === null) return tables.campaignSends.update({ ...rest, at_seq: 0 });
  const range = rangeOfGroup(tables, send.account_id, audience.groupIds, 0);
  if (range === null) countOthers(rest);
  tables.campaignSends.update({ ...rest, ...range });
}

function decide({ campaignVariants }: Tables, send: CampaignSend, at: number): Decision {
  const counts = campaignVariants.counts(send.campaign_seq);
  const winner = testOf(send)?.winner;
  if (winner === undefined || winner === 'none')
    throw new Error(`campaign ${send.campaign_id} has no test with a winner`);
  return { ...winnerOf(counts, winner), at, by: null, counts };
}

/** Whether a message of the campaign waits for its first attempt. */
function hasWaiting({ campaignSends }: Tables, seq: number): boolean {
  return campaignSends.anyHeld(seq) || campaignSends.anyInQueue(seq, { due: true });
}

/**
 * Whether the account of a campaign is disabled: the campaign waits until the account is enabled, and its state does not
 * change.
 */
function isAccountDisabled(tables: Tables, { account_id }: Pick<CampaignSend, 'account_id'>): boolean {
  return tables.accounts.get(account_id)?.status !== 'active';
}

function marketingDomain(
  { domains }: Pick<Tables, 'domains'>,
  { account_id }: Pick<CampaignSend, 'account_id'>,
  name: string,
): DomainRow | undefined {
  return domains.named(account_id, name).find(({ use_case }) => use_case === 'mk');
}

/** Whether the marketing mail of the campaign's domain was stopped automatically: the campaign waits until it is resumed. */
function isStreamStopped(
  { domains }: Tables,
  { account_id }: Pick<CampaignSend, 'account_id'>,
  { fromDomain }: Pick<CampaignMail, 'fromDomain'>,
): boolean {
  const domain = marketingDomain({ domains }, { account_id }, fromDomain);
  return domain !== undefined && domains.sendingStop(domain.domain_id) === 'sending_paused';
}

/** Pauses a campaign in a unit of work. `reason` null: by request of the account. `figures`: JSON, of an automatic stop. */
export function pauseSend(
  tables: Tables,
  send: CampaignSend,
  { reason, figures }: { reason: string | null; figures: string | null },
  now: number,
): void {
  tables.campaigns.setStatus(send.campaign_seq, 'paused', now);
  tables.campaignSends.update({ ...send, paused_reason: reason, paused_figures: figures });
}

type BatchParts = Omit<CampaignParts, 'recorder' | 'pressure' | 'announce'> &
  Pick<Context, 'clock' | 'ids' | 'log'> & {
    htmlReader: HtmlReader;
    /** Members of a campaign in Liquid, which are rendered ahead. */
    rendered?: RenderedMembers | null;
  };

/** Members in one unit of work: it takes some 10 ms, for which other work waits. */
export const MEMBER_BATCH_SIZE = 25;
/** A unit of work ends early after this number of characters, rendered or checked; it processes at least one member. */
const MAX_BATCH_CHARACTERS = 256 * 1024;
/** Characters for which a message that could not be rendered counts: its values can be long. */
const FAILED_RENDERING_CHARACTERS = MAX_BATCH_CHARACTERS / 4;
/** Characters for which a placeholder of the shared text counts. */
const PLACEHOLDER_CHARACTERS = 8;
/** Batches of a campaign with `perHour`, where that is neither fewer than one message nor more than a full batch each. */
const BATCHES_PER_HOUR = 240;

/**
 * The next batch of a campaign in one unit of work: checks the eligibility of the members after the cursor, stores their
 * messages and queue rows, and advances the cursor and the counts. After a crash no member is skipped and none receives the
 * campaign twice.
 *
 * Stores at most `capacity` messages within the account's message limits and returns their destinations. A refusal: the campaign
 * can no longer be sent, and nothing was stored. Ends before the first member in whose language `content`, which was prepared
 * ahead, is missing or outdated.
 */
function queueBatch(
  tables: Tables,
  send: CampaignSend,
  selected: SelectedMembers | null,
  capacity: number,
  prepared: PreparedContents,
  parts: BatchParts,
): ReadonlySet<string> | Refusal {
  const now = parts.clock.now();
  const copiers = new Map<number, ReturnType<typeof createCopier>>();
  const group = tables.subscriptionGroups.get(send.account_id, send.subscription_group_id);
  for (const [variant, content] of prepared) {
    const mail = isRefusal(content) ? mailOfVariant(storedMail(tables, send), variant) : content.mail;
    const ready = recheckCampaign(tables, send, parts.htmlReader, mail);
    if (isRefusal(ready)) return ready;
    if (isRefusal(content)) return NO_DESTINATIONS;
    copiers.set(variant, createCopier(tables, send, ready, content, now, parts));
  }
  if (group === null) return NO_DESTINATIONS;
  const copierOf = ({ variant }: AssignedCopy) => {
    const copier = copiers.get(variant);
    if (copier === undefined) throw new Error(`variant ${variant} was not prepared`);
    return copier;
  };
  const work = () => [...copiers.values()].reduce((sum, copier) => sum + copier.work(), 0);
  const assigned = assignmentOf(send);
  const pace = paceOf(send.per_hour);
  const allowed = parts.limits.allowance(tables, send.account_id, now).left;
  const limit = Math.min(capacity, pace.batchSize, allowed);
  const batch = nextMembers(tables, send, group.seq, selected);
  const excluded =
    selected === null
      ? NOBODY
      : excludedAmong(
          tables,
          send,
          selected.audience,
          batch.members.map(({ seq }) => seq),
        );
  const after = { ...send };
  const destinations = new Set<string>();
  /** Not simulated: statistics count them. */
  let counted = 0;
  /** Messages of a test by their variant. */
  const tested = new Map<number, number>();
  let stopped = false;
  for (const member of batch.members) {
    const copy = assigned(member.seq);
    if (copy === null) continue;
    const copier = copierOf(copy);
    stopped =
      work() >= MAX_BATCH_CHARACTERS || after.queued - send.queued >= limit || !copier.isReady(member);
    if (stopped) break;
    const before = after.at_seq;
    after.at_seq = member.seq;
    if (excluded.has(member.seq)) continue;
    const stored = copier.store(member);
    if (stored === null) {
      after.at_seq = before;
      stopped = true;
      break;
    }
    if ('skipped' in stored) {
      after[stored.skipped]++;
      continue;
    }
    const { address } = stored;
    after.queued++;
    destinations.add(domainOf(address));
    // A campaign of a test key reached nobody: segments and exclusions do not see it.
    if (send.simulated === 1) continue;
    const isCounted = !isSimulated(address, parts);
    const bits = isCounted ? copy.bits : 0;
    tables.engagement.addOfCampaign(send.campaign_seq, member.seq, bits);
    if (isCounted) counted++;
    if (bits > 0) tested.set(copy.variant, (tested.get(copy.variant) ?? 0) + 1);
  }
  for (const copier of copiers.values()) copier.finish();
  for (const [variant, messages] of tested)
    tables.campaignVariants.addQueued(messages, send.campaign_seq, variant + 1);
  if (!stopped) after.at_seq = Math.max(after.at_seq, batch.upTo);
  if (isPassEnd(after) && !beginNextGroup(tables, after, selected) && isComplete(after)) countOthers(after);
  const queued = after.queued - send.queued;
  after.next_at = now + Math.ceil(queued * pace.intervalMs);
  if (queued > 0) {
    const limited = parts.limits.takeMessages(tables, send.account_id, queued, now);
    // Thrown, so that the unit of work is rolled back: the messages are stored already.
    if (limited !== null) throw new Error(`${limited.message}, although the allowance was not used up`);
  }
  tables.campaignSends.update(after);
  countCampaignQueued(tables, send.campaign_id, counted, now);
  return destinations;
}

/** People that an audience selects, and up to which contact all were tested. */
interface SelectedMembers {
  audience: CampaignAudience;
  seqs: readonly number[];
  upTo: number;
}

/** The next members of the group whose turn is in this pass. `upTo`: the contact up to which there are no others. */
function nextMembers(
  tables: Tables,
  send: CampaignSend,
  groupSeq: number,
  selected: SelectedMembers | null,
): { members: CampaignMember[]; upTo: number } {
  const { at_seq: after, last_seq } = send;
  const last = last_seq ?? 0;
  if (selected === null && send.test === null) {
    const members = tables.campaignSends.members({ groupSeq, after, upTo: last, limit: MEMBER_BATCH_SIZE });
    return { members, upTo: members.length < MEMBER_BATCH_SIZE ? last : after };
  }
  const candidates = selected ?? nextCandidates(tables, { groupSeq, after, upTo: last, limit: CANDIDATES });
  const assigned = assignmentOf(send);
  const own = candidates.seqs.filter((seq) => assigned(seq) !== null);
  const seqs = own.slice(0, MEMBER_BATCH_SIZE);
  return {
    members: tables.campaignSends.membersAmong(JSON.stringify(seqs), groupSeq),
    upTo: seqs.length < own.length ? (seqs.at(-1) ?? after) : candidates.upTo,
  };
}

/** Members that are examined in one unit of work for whether they are in the share of a test. */
const CANDIDATES = 2500;

function nextCandidates({ campaignSends }: Tables, range: MemberRange): { seqs: number[]; upTo: number } {
  const seqs = campaignSends.memberSeqs(range);
  return { seqs, upTo: seqs.length < range.limit ? range.upTo : (seqs.at(-1) ?? range.upTo) };
}

/** Continues with the next group of the audience; returns whether there is one. */
function beginNextGroup(tables: Tables, send: CampaignSend, selected: SelectedMembers | null): boolean {
  if (selected === null) return false;
  const { groupIds } = selected.audience;
  const index = groupIds.indexOf(send.subscription_group_id) + 1;
  const range = rangeOfGroup(tables, send.account_id, groupIds, index);
  if (range !== null) Object.assign(send, range);
  return range !== null;
}

/** People that are selected ahead of their turn: a segment is evaluated for so many of them at a time. */
const SELECTED_AHEAD = 500;
/** When so many of them are left, the next ones are selected, so that the campaign need not wait for them. */
const READ_AHEAD = 250;
/** How long they may wait for their turn before they are selected again. */
const SELECTION_AGE_MS = 10 * SECOND;
/** Campaigns with selected people in memory. */
const MAX_SELECTIONS = 1000;

/**
 * Results of reads that can take long, by campaign: a step starts a read and returns, and a later step takes its result, so that
 * the other campaigns go on. One read of an account at a time. `onEnd` is called with the campaign.
 */
function createSideReads<Value extends object | number>(onEnd: (campaignSeq: number) => void) {
  const running = new Set<string>();
  const ended = new LRUCache<number, { value: Value } | { error: unknown }>({
    max: MAX_SELECTIONS,
    ttl: SELECTION_AGE_MS,
  });
  /** Starts a read unless the account has one, or its result was not taken. */
  function begin(
    { campaign_seq: seq, account_id: accountId }: CampaignSend,
    read: () => Promise<Value>,
  ): void {
    if (running.has(accountId) || ended.has(seq)) return;
    running.add(accountId);
    const end = (one: { value: Value } | { error: unknown }) => {
      running.delete(accountId);
      ended.set(seq, one);
      onEnd(seq);
    };
    read().then(
      (value) => end({ value }),
      (error: unknown) => end({ error }),
    );
  }

  return {
    begin,
    /** Null: the read runs, or waits for another one of the account. Throws its error. */
    take: (send: CampaignSend, read: () => Promise<Value>): { value: Value } | null => {
      const result = ended.get(send.campaign_seq);
      if (result === undefined) {
        begin(send, read);
        return null;
      }
      ended.delete(send.campaign_seq);
      if ('error' in result) throw result.error;
      return result;
    },
  };
}

/** Selects the next people of campaigns that have more than a group, in reader threads. */
function createSelections(
  { tables, reader, clock }: Pick<Context, 'tables' | 'reader' | 'clock'>,
  onEnd: (campaignSeq: number) => void,
) {
  interface Selected {
    groupId: string;
    after: number;
    at: number;
    found: SelectedMembers;
  }
  const known = new LRUCache<number, Selected>({ max: MAX_SELECTIONS });
  const reads = createSideReads<Selected>(onEnd);

  async function select(send: CampaignSend, audience: CampaignAudience, after: number): Promise<Selected> {
    const { account_id: accountId, subscription_group_id: groupId, last_seq } = send;
    const at = clock.now();
    // Who was sent a campaign of a test key is not stored: members of the groups before this one were.
    const groupsBefore =
      send.simulated === 1 ? audience.groupIds.slice(0, audience.groupIds.indexOf(groupId)) : [];
    const selection = selectionOf(tables, send, audience, [groupId], at, groupsBefore);
    const range = { after, last: last_seq ?? 0 };
    const selected = await reader.query(accountId, nextSelected, selection, range, SELECTED_AHEAD);
    return { groupId, after, at, found: { audience, ...selected } };
  }

  return {
    /** The selected people after the cursor; undefined: they are being read. */
    next: (send: CampaignSend, audience: CampaignAudience): SelectedMembers | undefined => {
      const { campaign_seq: seq, subscription_group_id: groupId, at_seq: after } = send;
      // The rest of an audience after a test begins again with its first contact.
      const isCurrent = (one: Selected | undefined) =>
        one?.groupId === groupId &&
        clock.now() - one.at < SELECTION_AGE_MS &&
        one.after <= after &&
        one.found.upTo > after;
      if (!isCurrent(known.get(seq))) {
        const read = reads.take(send, () => select(send, audience, after));
        if (read !== null) known.set(seq, read.value);
      }
      const last = known.get(seq);
      if (last === undefined || !isCurrent(last)) {
        // What was read ahead is outdated.
        reads.begin(send, () => select(send, audience, after));
        return undefined;
      }
      const { upTo } = last.found;
      const seqs = last.found.seqs.filter((one) => one > after);
      if (seqs.length <= READ_AHEAD && upTo < (send.last_seq ?? 0))
        reads.begin(send, () => select(send, audience, upTo));
      return { audience, seqs, upTo };
    },
  };
}

/**
 * Counts the members who left the group or were erased before it was their turn as not eligible, and those who returned to
 * the group as members, so that the counts of a complete campaign add up.
 */
function countOthers(send: CampaignSend): void {
  const processed = send.queued + send.without_email + send.not_eligible + send.not_renderable;
  send.not_eligible += Math.max(0, (send.members ?? 0) - processed);
  send.members = Math.max(send.members ?? 0, processed);
}

const NO_DESTINATIONS: ReadonlySet<string> = new Set();
const NOBODY: ReadonlySet<number> = new Set();

/**
 * The batch size of a campaign with `perHour`, and the interval for each message of a batch. With batches of n messages
 * and perHour - n + 1 intervals an hour, no period of an hour has more than perHour messages.
 */
export function paceOf(perHour: number | null): { batchSize: number; intervalMs: number } {
  if (perHour === null) return { batchSize: Number.POSITIVE_INFINITY, intervalMs: 0 };
  const batchSize = Math.min(MEMBER_BATCH_SIZE, Math.max(1, Math.floor(perHour / BATCHES_PER_HOUR)));
  return { batchSize, intervalMs: HOUR / (perHour - batchSize + 1) };
}

const NOT_RENDERED: RenderedMembers = new Map();

type Skipped = { skipped: 'without_email' | 'not_eligible' | 'not_renderable' };

/** Creates the messages of one batch. `now`: epoch ms. */
function createCopier(
  tables: Tables,
  send: CampaignSend,
  ready: ReadyCampaign,
  { mail, bodies, languages }: CampaignContent,
  now: number,
  parts: BatchParts,
) {
  const { domain, group, prepared } = ready;
  const optional = new Set(mail.optional);
  // With a variable that may hide the footer the HTML is rendered and parsed for each member.
  const isRaw = prepared.parts.some(
    ({ field, template }) => field === 'html' && hidingVariable(template) !== null,
  );
  let work = 0;
  /** The content for each language of members; undefined: it has to be prepared. */
  const known = new Map<PageLanguage | null, SharedBody | Refusal | undefined>();
  /** The rows with shared contents, each stored with its first copy, and their copies. */
  const rows = new Map<SharedBody, { id: number; copies: number }>();

  function bodyFor(member: CampaignMember): SharedBody | Refusal | undefined {
    const language = pageLanguageOf(member.language);
    if (known.has(language)) return known.get(language);
    const own = language === null ? ready : campaignIn(tables, ready, mail, language);
    const body = bodies.get(stateOf(own));
    if (body === undefined && language !== null) languages.add(language);
    known.set(language, body);
    return body;
  }

  function fill(member: CampaignMember): { own: CopyRendering; body: SharedBody } | Refusal | null {
    const body = bodyFor(member);
    if (body === undefined) throw new Error('the content for a member was not prepared');
    if (isRefusal(body)) return body;
    if (isLiquid(mail.wording)) {
      const own = renderedCopy(body.rendering, parts.rendered ?? NOT_RENDERED, member);
      return own === null || isRefusal(own) ? own : { own, body };
    }
    const variables = { ...mail.variables, ...contactVariables(member) };
    const own = fillCopy(body.rendering, variables, optional);
    return isRefusal(own) ? own : { own, body };
  }

  /** The row of a shared content, stored now if it is not. */
  function rowOf(body: SharedBody): { id: number; copies: number } {
    const stored = rows.get(body);
    if (stored !== undefined) return stored;
    const { packed, digest } = body;
    const key = { campaignSeq: send.campaign_seq, digest, accountId: send.account_id };
    const row = { id: tables.sharedContents.findOrInsert(key, packed, now), copies: 0 };
    rows.set(body, row);
    return row;
  }

  function workOf({ rendering }: SharedBody): number {
    const placeholders = rendering.parts.reduce((n, { template }) => n + template.holes.length, 0);
    const html = rendering.parts.find(({ field }) => field === 'html')?.template.length ?? 0;
    return placeholders * PLACEHOLDER_CHARACTERS + (isRaw ? 4 * Math.max(mail.wording.html.length, html) : 0);
  }

  /** Stores the part that differs for each member, and the shared content with the first one. */
  function storeContent(
    member: CampaignMember,
    { name }: Mailbox,
  ): { contentId: number; contentBytes: number; subject: string } | Refusal | null {
    const filled = fill(member);
    if (filled === null) return null;
    if (isRefusal(filled)) {
      work += FAILED_RENDERING_CHARACTERS + (isRaw ? 4 * mail.wording.html.length : 0);
      return filled;
    }
    const { subject, values } = filled.own;
    const row = rowOf(filled.body);
    row.copies++;
    const own: OwnContent = { name, values };
    const { body, size } = packContent(JSON.stringify(own));
    work += size + workOf(filled.body);
    const content = { body, size: size + filled.body.packed.size, sharedId: row.id };
    const contentId = tables.messages.insertContent(content, now, send.account_id);
    return { contentId, contentBytes: content.size, subject };
  }

  return {
    /** Characters read or written so far. */
    work: (): number => work,
    /** Call it after the last member. */
    finish: (): void => {
      for (const { id, copies } of rows.values()) tables.sharedContents.addCopies(id, copies);
    },
    /** Whether the content in the language of the member is prepared. */
    isReady: (member: CampaignMember): boolean => bodyFor(member) !== undefined,
    /** Returns the address of the message, or why there is none; null: the member was not rendered yet. */
    store: (member: CampaignMember): { address: string } | Skipped | null => {
      if (member.email === null || member.email_hash === null) return { skipped: 'without_email' };
      const { account_id, subscription_group_id } = send;
      // `members` returns active ones.
      const permission = {
        consent_n: member.consent_n,
        paused_until: member.paused_until,
        group_is_active: group.is_active,
        member_is_active: 1,
      } as const;
      if (
        marketingIneligibility(tables, account_id, member.email_hash, subscription_group_id, permission) !==
        null
      )
        return { skipped: 'not_eligible' };
      const mailbox = mailboxOf(member, member.email);
      const content = storeContent(member, mailbox);
      if (content === null) return null;
      if (isRefusal(content)) {
        const { message: reason } = content;
        parts.log.info(
          { campaignId: send.campaign_id, member: member.seq, reason },
          'campaign member skipped',
        );
        return { skipped: 'not_renderable' };
      }
      const messageId = parts.ids.make('msg');
      storeMessage(
        tables,
        {
          accountId: account_id,
          useCase: 'mk',
          domainId: domain.domain_id,
          jobId: send.job_id,
          campaignId: send.campaign_id,
          campaignSeq: send.campaign_seq,
          groupId: subscription_group_id,
          from: mail.from.address,
          recipient: { mailbox, role: 'to' },
          messageId,
          ...content,
          trackClicks: mail.trackClicks,
          trackOpens: mail.trackOpens,
          essential: false,
          labels: mail.labels ?? null,
          isSimulation: send.simulated === 1,
          now,
          dueAt: now,
        },
        parts,
      );
      return { address: member.email };
    },
  };
}

/** The contents of the variants that are sent now. A refusal: it cannot be sent. */
type PreparedContents = Map<number, CampaignContent | Refusal>;

interface CampaignContent {
  mail: CampaignMail;
  /** The contents by their state (`stateOf`): one for each language in which they differ. A refusal: it cannot be rendered. */
  bodies: ReadonlyMap<string, SharedBody | Refusal>;
  /** Languages of members that were met until now; the content in a language that is added is prepared for the next batch. */
  languages: Set<PageLanguage>;
}

/** The shared content as it is rendered and as it is stored. */
interface SharedBody extends PackedShared {
  rendering: SharedRendering;
}

/** Characters of all cached campaigns, of their source and their rendering. */
const MAX_CACHED_CHARACTERS = 32 * 1024 * 1024;
/** Campaigns whose languages are in memory, also when their contents are not. */
const MAX_WITH_LANGUAGES = 1000;

/**
 * Prepares the shared content of a campaign's copies, ahead of the units of work that store the copies. It is parsed,
 * rendered and deflated once for each variant and each language of the members, and again only when its input changes. Begins
 * with an empty cache by campaign and variant, bounded by MAX_CACHED_CHARACTERS; the content that was used least recently is
 * dropped. `prepare` works in turns of the account.
 */
function createCampaignContents(htmlReader: HtmlReader, threads: TemplateThreads) {
  const cache = new LRUCache<string, CampaignContent>({
    maxSize: MAX_CACHED_CHARACTERS,
    sizeCalculation: sizeOf,
  });

  const languagesOf = new LRUCache<string, Set<PageLanguage>>({ max: MAX_WITH_LANGUAGES });

  async function shareRead(
    wording: LiquidContent,
    prepared: PreparedTemplate,
    accountId: string,
  ): Promise<SharedRendering | Refusal> {
    const read = await readLiquid(threads, accountId, wording);
    return isRefusal(read) ? read : shareLiquid(read, prepared, accountId);
  }

  async function bodyOf(
    { prepared, group }: ReadyCampaign,
    mail: CampaignMail,
    accountId: string,
  ): Promise<SharedBody | Refusal> {
    const rendering = isLiquid(mail.wording)
      ? await shareRead(mail.wording, prepared, accountId)
      : await inSlices(sharePreparedInSteps(prepared, mail.variables, isContactField), accountId);
    return isRefusal(rendering)
      ? rendering
      : { rendering, ...(await packCampaign(rendering, group, mail, accountId)) };
  }

  return {
    /** Resolves with the current content, or with a refusal when the campaign cannot be sent. */
    prepare: async (
      tables: Tables,
      send: CampaignSend,
      variant: number,
    ): Promise<CampaignContent | Refusal> => {
      const key = `${send.campaign_seq} ${variant}`;
      const known = cache.get(key);
      const mail = known?.mail ?? mailOfVariant(storedMail(tables, send), variant);
      if (!isLiquid(mail.wording))
        await inSlices(parseContentInSteps(mail.wording, htmlReader), send.account_id);
      const ready = recheckCampaign(tables, send, htmlReader, mail);
      if (isRefusal(ready)) return ready;
      const languages = known?.languages ?? languagesOf.get(key) ?? new Set<PageLanguage>();
      languagesOf.set(key, languages);
      const inLanguages = [
        ready,
        ...[...languages].map((language) => campaignIn(tables, ready, mail, language)),
      ];
      const bodies = new Map<string, SharedBody | Refusal>();
      let isKnown = true;
      for (const own of inLanguages) {
        const state = stateOf(own);
        const body = bodies.get(state) ?? known?.bodies.get(state);
        isKnown &&= body !== undefined;
        bodies.set(state, body ?? (await bodyOf(own, mail, send.account_id)));
      }
      if (known !== undefined && isKnown) return known;
      const content: CampaignContent = { mail, bodies, languages };
      cache.set(key, content);
      return content;
    },
  };
}

/** Identifies the input of the copies that can change between two batches. Text values derive from those of html. */
function stateOf({ prepared, group }: ReadyCampaign): string {
  return JSON.stringify([prepared.service.html, group.subscription_group_id, group.name]);
}

function packCampaign(
  rendering: SharedRendering,
  group: ReadyCampaign['group'],
  mail: CampaignMail,
  accountId: string,
): Promise<PackedShared> {
  const { from, fromDomain, replyTo } = mail;
  const list = { id: group.subscription_group_id, name: group.name };
  const content: SharedContent = { from, fromDomain, replyTo, list, ...sharedParts(rendering) };
  return packShared(content, accountId);
}

function sizeOf({ mail, bodies }: CampaignContent): number {
  const { html, text } = mail.wording;
  const source = html.length + (text?.length ?? 0);
  return [...bodies].reduce(
    (size, [state, body]) => size + source + state.length + (isRefusal(body) ? 0 : body.packed.size),
    1,
  );
}
