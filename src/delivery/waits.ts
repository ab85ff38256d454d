import { HOUR, iso, MINUTE, SECOND } from '../core/clock.ts';
import { errorText } from '../core/errors.ts';
import { createLru } from '../core/lru.ts';
import type { Runtime } from '../core/runtime.ts';
import type { SendingRates } from '../reputation/sending-rates.ts';
import type { Context } from '../store/context.ts';
import {
  type HoldReason,
  isScheduled,
  MARKETING_PRIORITY,
  type QueuedMessage,
  type QueueKey,
  queueKeyText,
  TRANSACTIONAL_PRIORITY,
} from '../store/messages/queue.ts';
import type { QueueControlRow } from '../store/messages/queue-controls.ts';
import type { ListedInQueue } from '../store/messages/queue-list.ts';
import { type ControlIndex, type Controls, describeControl } from './control.ts';
import type { DeliveryPath } from './lanes.ts';
import { localRemedy } from './remedies.ts';
import type { RouteFailure, RouteResult } from './routes.ts';
import type { Shares } from './scheduling/shares.ts';
import type { Site } from './scheduling/site.ts';
import { MAX_SITES, MAX_SITES_OF_ACCOUNT, type Sites } from './scheduling/sites.ts';
import type { Targets } from './scheduling/targets.ts';
import type { Shaping } from './shaping/shaping.ts';
import type { Egress, EgressObstacle } from './source-address.ts';

/*
 * Why mail waits. REASONS is the table of all reasons, the deciding one first: how a message is found to wait for each, its
 * sentence and its remedy. `reasonsOf` explains a message by it, and `obstacle` the report of a retry. To add a reason, add an
 * entry, and to `WaitDetails` what it knows.
 *
 * A wait is in one of three places. The database has those that survive a restart: holds, the operator's controls, the time at
 * which a message is due. The sites and the source addresses have theirs (suspension, limits, rate, connections, blocks, quotas),
 * as each reply changes them. All others are rows of `createWaits`: keys of the queue, messages, domains and accounts that are
 * not tried for some time. `createInspection` is the only entrance for readers: explanations, `/readyz`, metrics, the doctor and
 * the console read all three through it.
 */

/** What a wait knows, by reason. */
interface WaitDetails {
  final: { status: string; at: number | null };
  sending: { isRunning: boolean };
  unrecorded: object;
  held: { hold: HoldReason };
  paused: { control: QueueControlRow };
  rejected: { control: QueueControlRow };
  scheduled: { until: number };
  /** `attempts`: those before. */
  deferred: { until: number; attempts: number };
  /** `cause`: a clause. */
  stopped: { cause: string };
  parked: { kind: 'message' | Parked['kind'] };
  /** Its row, or all rows of its queue key. */
  unreadable: { what: 'message' | 'key' };
  no_route: { destination: string; failure: RouteFailure };
  route_unknown: object;
  site_suspended: { site: string; destination: string; until: number };
  site_limited: { site: string; destination: string; until: number };
  account_limited: { destination: string };
  /** Its stream is slowed automatically. */
  sending_slowed: { perMinute: number };
  sites_full: object;
  /** `text`: what it waits for, a clause. */
  warmup: { text: string };
  ramp: { text: string };
  address_unusable: { text: string };
  address_blocked: { block: NonNullable<EgressObstacle['block']> };
  /** `kept`: connections that marketing mail leaves free; 0: of transactional mail. */
  site_busy: SiteFacts['connections'] & { site: string; kept: number };
  site_rate: { site: string; until: number };
  /** Of all destinations together; see `MessageFacts.exhausted`. */
  sessions_used: { used: number; limit: number; exhausted: MessageFacts['exhausted'] };
  bytes_used: object;
  in_line: { isRunning: boolean };
}

type WaitCode = keyof WaitDetails;

/** `until`: epoch ms at which it ends by itself; absent: not by itself, or not known. */
type Wait<Code extends WaitCode = WaitCode> = WaitDetails[Code] & { until?: number | undefined };

/** What is known about a message that is in the queue and not being sent. */
interface Situation {
  queued: ListedInQueue;
  controls: ControlIndex;
  hold: HoldReason | null;
  /** What the running daemon knows; null: it does not run. */
  live: MessageFacts | null;
  /** The same of a message that is due. */
  due: MessageFacts | null;
  /** The site of a due message, and why it takes no mail now. `kept`: see `WaitDetails.site_busy`. */
  site: (SiteFacts & { state: 'suspended' | 'limited' | 'busy' | 'slow' | null; kept: number }) | null;
  /** Epoch ms. */
  at(ms: number): number;
}

interface Reason<Code extends WaitCode> {
  /** Whether a message waits for it, and what is known about that; absent: it waits for nothing else. */
  find?: (situation: Situation) => Wait<Code> | null;
  /** Default: `clause`. */
  text?: string | ((wait: Wait<Code>) => string);
  /** What the operator can do; null: nothing is needed. */
  remedy: string | null | ((wait: Wait<Code>) => string | null);
  /** The rest of "it is due now, but ...", without the time of the next attempt; absent: it is sent all the same, or soon. */
  clause?: (wait: Wait<Code>) => string;
}

const REASONS: { readonly [Code in WaitCode]: Reason<Code> } = {
  final: {
    text: ({ status, at }) =>
      `It is ${status}${at === null ? '' : ` since ${iso(at)}`} and no longer in the queue.`,
    remedy: 'See "postrider message show" for its timeline.',
  },
  sending: {
    text: ({ isRunning }) =>
      isRunning
        ? 'It is being sent now.'
        : 'Its delivery has begun. A daemon that was stopped meanwhile sends it again after its next start, and it may arrive twice.',
    remedy: ({ isRunning }) => (isRunning ? null : 'Start the daemon, unless it runs.'),
  },
  unrecorded: {
    text: 'Its delivery has ended, but its outcome could not be recorded yet; this is tried again until it is.',
    remedy: 'Run "postrider doctor"; see the log for the error.',
  },
  rejected: {
    find: ({ controls, queued }) => controlWait(controls.ofKey(queued), 'bounce'),
    remedy: resumeCommand,
    clause: ({ control }) => describeControl(control),
  },
  paused: {
    find: ({ controls, queued, live }) =>
      controlWait(controls.ofKey(queued), 'pause') ??
      controlWait(live === null ? null : pauseOfSite(controls, live), 'pause'),
    remedy: resumeCommand,
    clause: ({ control }) => describeControl(control),
  },
  held: {
    find: ({ hold }) => (hold === null ? null : { hold }),
    text: ({ hold }) => HOLDS[hold].text,
    remedy: ({ hold }) => HOLDS[hold].remedy,
  },
  address_blocked: {
    // It decides about deferred messages: the next attempt waits for the address, too.
    find: ({ live, hold }) => {
      const block = hold === null ? live?.obstacle?.block : undefined;
      return block === undefined ? null : { block, until: block.nextProbeAt };
    },
    text: ({ block: { receiver, address, reply, nextProbeAt } }) =>
      `${receiver} blocks mail from ${address}, and no other source address can send it: "${reply}". One message tries again at ${iso(nextProbeAt)}.`,
    remedy: ({ block }) =>
      `Find and stop the cause. ${block.delisting} Then "postrider queue retry" tries the address immediately.`,
  },
  parked: {
    find: ({ live, at }) =>
      live === null || live.parked === null ? null : { kind: live.parked.kind, until: at(live.parked.ms) },
    remedy: 'See the log for the error, such as a key that cannot be read.',
    clause: ({ kind }) =>
      kind === 'message' ? 'it cannot be prepared' : `mail of this ${kind} cannot be prepared`,
  },
  scheduled: {
    find: (situation) => {
      const { queued } = situation;
      return isPutOff(situation) && isScheduled(queued) ? { until: queued.due_at } : null;
    },
    text: ({ until }) => `It is scheduled for ${iso(until)}.`,
    remedy: null,
  },
  deferred: {
    find: (situation) => {
      const { attempts, due_at: until } = situation.queued;
      return isPutOff(situation) && !isScheduled(situation.queued) ? { until, attempts } : null;
    },
    text: ({ until, attempts }) =>
      `${attempts === 0 ? 'It was put off before its first attempt' : 'The last attempt was deferred'}; the next one is at ${iso(until)}.`,
    remedy: ({ attempts }) => (attempts === 0 ? null : 'To try it earlier: "postrider queue retry".'),
  },
  stopped: {
    find: ({ live }) => (live === null || live.stopped === null ? null : { cause: live.stopped }),
    text: ({ cause }) => `No mail is sent: ${cause}.`,
    remedy: 'Run "postrider doctor"; see the log.',
    clause: ({ cause }) => cause,
  },
  unreadable: {
    find: ({ due, at }) =>
      due === null || due.unreadable === null
        ? null
        : { what: due.unreadable.what, until: at(due.unreadable.ms) },
    text: ({ what }) =>
      what === 'message'
        ? 'It could not be read or updated in the database, and is tried again.'
        : 'The queued mail of its account to its destination could not be read, and is tried again.',
    remedy: 'See the log for the error, such as a damaged row.',
  },
  no_route: {
    find: ({ due, queued: { destination } }) =>
      due?.route?.kind === 'failure' ? { destination, failure: due.route } : null,
    text: ({ destination, failure }) => routeFailureText(destination, failure),
    remedy: ({ failure: { failure, route } }) =>
      route === null
        ? (localRemedy(failure) ?? 'Query the MX records of the domain with "dig MX".')
        : `Check that the name ${route.host} of the next hop has an address in DNS: it comes from delivery.routes, "secondary" or a reroute.`,
  },
  sites_full: {
    find: ({ due }) => (due?.isWithoutSite === true ? {} : null),
    text: `Its mail hosts are not in memory, and cannot be added now: mail waits for ${MAX_SITES} sites, or for ${MAX_SITES_OF_ACCOUNT} because of mail of its account.`,
    remedy: 'Nothing, if the other mail is delivered: sites without mail give way within seconds.',
  },
  site_suspended: {
    find: ({ site, queued: { destination }, at }) =>
      site?.state === 'suspended' ? { site: site.site, destination, until: at(site.suspendedMs) } : null,
    text: ({ site, until }) =>
      `The mail hosts of the site ${site} could not be reached; one connection tries them at ${iso(until)}.`,
    remedy:
      'If other sites are reachable, the cause is on the side of the site; otherwise run "postrider doctor". When it is repaired, "postrider queue retry" tries the site immediately.',
    clause: ({ destination }) => haltReason(destination, true),
  },
  site_limited: {
    find: ({ site, queued: { destination }, at }) =>
      site?.state === 'limited' ? { site: site.site, destination, until: at(site.limitedMs) } : null,
    text: ({ site, until }) =>
      `The mail hosts of the site ${site} asked to send less; it gets mail again at ${iso(until)}.`,
    remedy: 'Read the last replies; the rate adapts by itself.',
    clause: ({ destination }) => haltReason(destination, false),
  },
  site_busy: {
    find: ({ site }) =>
      site?.state === 'busy' ? { site: site.site, ...site.connections, kept: site.kept } : null,
    text: ({ site, used, allowed, limit, kept }) =>
      `All ${used} connections that the site ${site} may have${kept > 0 ? ' for marketing mail' : ''} are in use.${
        kept > 0 ? ` It keeps ${kept} for transactional mail.` : ''
      }${
        allowed < limit
          ? ` The number grows as the site answers and accepts mail, and as other sites leave more of all open connections; its limit is ${limit}.`
          : ''
      }`,
    remedy: ({ allowed, limit }) =>
      allowed < limit ? null : 'Raise "connections" of its shaping profile if the receiver permits it.',
  },
  site_rate: {
    find: ({ site, at }) => (site?.state === 'slow' ? { site: site.site, until: at(site.rateWaitMs) } : null),
    text: ({ site, until }) => `The rate of the site ${site} allows its next message at ${iso(until)}.`,
    remedy:
      'Raise "perSecond" of its shaping profile if the receiver permits it; a rate that it asked for adapts by itself.',
  },
  account_limited: {
    find: ({ due, at, queued: { destination } }) => {
      if (due === null || due.route?.kind === 'failure') return null;
      if (due.accountLimitedMs > 0) return { destination, until: at(due.accountLimitedMs) };
      return due.isAccountBusy ? { destination } : null;
    },
    text: ({ destination, until }) =>
      `The mail hosts of ${destination} asked to send less mail of this account${
        until === undefined ? ', and what is sent of it now uses its limit up' : ''
      }.`,
    remedy: 'Read the last replies: complaints or content of this sender are usually the cause.',
    clause: ({ destination }) => `the mail hosts of ${destination} asked to send less mail of this account`,
  },
  sending_slowed: {
    find: ({ due }) => {
      const perMinute = due?.slowedTo ?? null;
      return perMinute === null ? null : { perMinute };
    },
    text: ({ perMinute }) =>
      `Mail of its stream is slowed to ${perMinute} messages per minute, because too much of it bounced, was blocked or was complained about.`,
    remedy:
      'See "postrider sending-limits list" for the figures; the limit ends when the rate is low again, or with "postrider sending-limits resume".',
  },
  warmup: {
    find: (situation) => addressWait('warmup', situation),
    text: ({ text }) => `It ${text}.`,
    remedy: 'To send it today: another address in the pool, or "postrider warmup skip".',
    clause: ({ text }) => text,
  },
  ramp: {
    find: (situation) => addressWait('ramp', situation),
    text: ({ text }) => `It ${text}.`,
    remedy: 'To send without this limit: "postrider account ramp --skip".',
    clause: ({ text }) => text,
  },
  address_unusable: {
    find: (situation) => addressWait('unusable', situation),
    text: ({ text }) => `It ${text}.`,
    remedy: 'Run "postrider doctor": it checks the addresses and proxies.',
    clause: ({ text }) => text,
  },
  bytes_used: {
    find: ({ due }) => (due?.exhausted === 'bytes' ? {} : null),
    text: 'It is large, and the messages that are being sent use the memory for their contents up (delivery.inFlightBytes).',
    remedy: 'Raise delivery.inFlightBytes if this lasts and the machine has the memory.',
  },
  sessions_used: {
    find: ({ due }) => {
      if (due === null || due.exhausted === 'bytes') return null;
      const { exhausted, sessions } = due;
      const { used, limit } = sessions;
      return used >= limit || exhausted !== null ? { used, limit, exhausted } : null;
    },
    text: ({ used, limit, exhausted }) => {
      if (used >= limit) return `All ${limit} sessions are in use (delivery.connections).`;
      return exhausted === 'unanswered'
        ? `All sessions that sites without an answer may have are in use: half of ${limit} (delivery.connections).`
        : `Its account or its site uses its whole share of the ${limit} sessions (delivery.connections), of which ${used} are in use.`;
    },
    remedy: 'Raise delivery.connections if this lasts, and the limit of open files with it.',
  },
  route_unknown: {
    text: 'Its mail hosts are being looked up in DNS, or will be when it is read.',
    remedy: null,
  },
  in_line: {
    text: ({ isRunning }) =>
      isRunning
        ? 'It is due and is sent within a second or two.'
        : 'It is due, but the daemon does not run, or does not answer.',
    remedy: ({ isRunning }) => (isRunning ? null : 'Start the daemon.'),
  },
};

const HOLDS: Record<HoldReason, { text: string; remedy: string }> = {
  campaign_paused: {
    text: 'Its campaign is paused.',
    remedy: 'Resume the campaign: "postrider campaign resume".',
  },
  account_disabled: {
    text: 'Its account is disabled.',
    remedy: 'Enable the account: "postrider account enable".',
  },
  domain_failed: {
    text: 'The verification of its sending domain has failed.',
    remedy: 'Correct the DNS records that "postrider domain verify" names.',
  },
  sending_paused: {
    text: 'The mail of its stream was stopped automatically, because too many messages bounced or were complained about.',
    remedy:
      'See "postrider sending-limits list" for the figures; "postrider sending-limits resume" continues.',
  },
  restored: {
    text: 'It has been held since a restore, because the original installation may have sent it.',
    remedy:
      'List held messages with "postrider restore held"; release them with "postrider restore release".',
  },
  being_released: {
    text: 'It was held and is being released.',
    remedy: 'Nothing: it is due within seconds.',
  },
};

function controlWait(
  control: QueueControlRow | null,
  action: QueueControlRow['action'],
): Wait<'paused' | 'rejected'> | null {
  return control?.action === action ? { control, until: control.until ?? undefined } : null;
}

/** The pause of the site or the pool. */
function pauseOfSite(controls: ControlIndex, { path, site }: MessageFacts): QueueControlRow | null {
  return controls.ofSite(site === null ? { key: '', pool: path.pool } : { key: site.site, pool: site.pool });
}

/** Milliseconds by which the due time of a message that waits for something may differ from the end of that. */
const SAME_END_MS = SECOND;

/** Whether a message is due later, and nothing else that is known lasts until then. */
function isPutOff({ queued, live, due, hold, at }: Situation): boolean {
  if (hold !== null || due !== null || isDue(queued, at(0))) return false;
  const { parked = null, obstacle = null } = live ?? {};
  const address = obstacle === null || obstacle.kind === 'blocked' ? 0 : obstacle.until;
  const until = Math.max(parked === null ? 0 : at(parked.ms), address);
  return until + SAME_END_MS < queued.due_at;
}

/** The wait for a source address of a message that is due, or due when that ends. */
function addressWait(kind: EgressObstacle['kind'], { queued, live, due, hold }: Situation) {
  const { obstacle = null, route = null } = live ?? {};
  if (obstacle === null || obstacle.kind !== kind || route?.kind === 'failure') return null;
  const { text, until } = obstacle;
  const isWaiting = due !== null || (hold === null && until + SAME_END_MS >= queued.due_at);
  return isWaiting ? { text, until } : null;
}

/** Why no mail is sent to a halted site, a clause. */
export function haltReason(destination: string, isSuspended: boolean): string {
  return isSuspended
    ? `the mail hosts of ${destination} cannot be reached`
    : `the mail hosts of ${destination} asked to send less mail`;
}

// Sound: the table has these keys only.
export const WAIT_REASON_CODES = Object.keys(REASONS) as [WaitCode, ...WaitCode[]];

/** Why mail is not sent now, as the API presents it. */
export interface WaitReason {
  code: WaitCode;
  /** One or more sentences. */
  text: string;
  /** ISO 8601: when this ends by itself; null: not by itself, or not known. */
  until: string | null;
  /** What the operator can do; null: nothing is needed. */
  remedy: string | null;
}

export function presentWait<Code extends WaitCode>(
  code: Code,
  wait: Wait<Code>,
): WaitReason & { code: Code } {
  const { text, remedy, clause } = REASONS[code];
  return {
    code,
    text: typeof text === 'string' ? text : (text?.(wait) ?? sentence(clause?.(wait) ?? '')),
    until: wait.until === undefined ? null : iso(wait.until),
    remedy: typeof remedy === 'function' ? remedy(wait) : remedy,
  };
}

function sentence(clause: string): string {
  return `${clause.charAt(0).toUpperCase()}${clause.slice(1)}.`;
}

function resumeCommand({ control: { scope, target } }: { control: QueueControlRow }): string {
  return `To end this: "postrider queue resume --${scope} ${scope === 'site' ? `'${target}'` : target}".`;
}

/** Why a destination has no route, a sentence. */
export function routeFailureText(destination: string, { failure, route }: RouteFailure): string {
  const hop = route === null ? '' : ` through ${route.host}`;
  return `There is no route to ${destination}${hop}: ${failure.replaceAll('-', ' ')}.`;
}

/** The reasons for a message in the queue, the deciding one first. `live` null: the daemon does not run. */
export function reasonsOf(
  queued: ListedInQueue,
  controls: ControlIndex,
  live: MessageFacts | null,
  now: number,
): WaitReason[] {
  const isRunning = live !== null;
  if (queued.lease !== null)
    return [
      live?.isUnrecorded === true ? presentWait('unrecorded', {}) : presentWait('sending', { isRunning }),
    ];
  const situation = situationOf(queued, controls, live, now);
  const reasons = WAIT_REASON_CODES.flatMap((code) => explain(code, situation)?.reason ?? []);
  if (reasons.length > 0) return reasons;
  const isLookedUp = live?.route === null && queued.simulated === 0;
  return [isLookedUp ? presentWait('route_unknown', {}) : presentWait('in_line', { isRunning })];
}

/** Null: the message does not wait for this reason. */
function explain<Code extends WaitCode>(
  code: Code,
  situation: Situation,
): { reason: WaitReason & { code: Code }; clause: string | null } | null {
  const { find, clause } = REASONS[code];
  const wait = find?.(situation) ?? null;
  return wait === null ? null : { reason: presentWait(code, wait), clause: clause?.(wait) ?? null };
}

function situationOf(
  queued: ListedInQueue,
  controls: ControlIndex,
  live: MessageFacts | null,
  now: number,
): Situation {
  const hold = queued.hold_reason ?? (queued.paused === 1 ? 'campaign_paused' : null);
  const at = (ms: number) => now + ms;
  const due = isDue(queued, now) ? live : null;
  const site = due === null || due.site === null ? null : siteFor(queued, due.site);
  return { queued, controls, hold, live, due, site, at };
}

const isDue = ({ ready, due_at }: ListedInQueue, now: number) => ready === 1 || due_at <= now;

function siteFor({ priority }: QueueKey, facts: SiteFacts): NonNullable<Situation['site']> {
  const { suspendedMs, limitedMs, rateWaitMs, connections, forMarketing } = facts;
  const allowed = Math.min(connections.allowed, connections.limit);
  const kept = priority === MARKETING_PRIORITY ? allowed - Math.min(forMarketing, allowed) : 0;
  const halt = suspendedMs > 0 ? 'suspended' : limitedMs > 0 ? 'limited' : null;
  const state = halt ?? (connections.used >= allowed - kept ? 'busy' : rateWaitMs > 0 ? 'slow' : null);
  return { ...facts, state, kept };
}

/** What the rows of `createWaits` know, by reason. */
interface RowDetails {
  /** A message whose row could not be read or updated. */
  message_failed: { queueKey: string };
  /** A queue key that cannot be read. */
  key_unreadable: null;
  /** A queue key whose site takes no mail of the account. */
  key_account_limited: null;
  /** A queue key whose stream is slowed automatically. */
  key_sending_slowed: null;
  /** A queue key whose mail waits for a source address; its messages stay ready in the queue. */
  key_without_address: { key: QueueKey; kind: EgressObstacle['kind']; text: string };
  /** A message that could not be prepared. */
  message_unprepared: null;
  /** The mail of a domain or an account cannot be prepared; `error`: the last one. */
  domain_parked: { error: string };
  account_parked: { error: string };
}

type RowReason = keyof RowDetails;

interface Row<Reason extends RowReason> {
  id: string | number;
  detail: RowDetails[Reason];
  /** Epoch ms at which its first wait began. */
  since: number;
  /** Monotonic ms. */
  until: number;
  waitMs: number;
  /** Whether `sweep` has seen its end. */
  isOver: boolean;
}

/**
 * How long rows wait: `firstMs`, doubled each time up to `maxMs`. Without `firstMs` the caller names the wait, which is at
 * most `maxMs`: an operator may have changed what the mail waits for. A row is remembered for `rememberMs` after its wait,
 * so that the next one is longer. With `MAX_ROWS` rows the oldest one gives way, or with `isKept` a new one is refused: keys
 * that are visited in turn would otherwise all be forgotten before their next visit.
 */
const ROWS: {
  readonly [R in RowReason]: { firstMs?: number; maxMs: number; rememberMs: number; isKept?: true };
} = {
  message_failed: { firstMs: SECOND, maxMs: 600 * SECOND, rememberMs: 1200 * SECOND },
  key_unreadable: { firstMs: 2 * SECOND, maxMs: 300 * SECOND, rememberMs: 300 * SECOND, isKept: true },
  key_account_limited: { maxMs: 5 * SECOND, rememberMs: 0, isKept: true },
  key_sending_slowed: { maxMs: 5 * SECOND, rememberMs: 0, isKept: true },
  key_without_address: { maxMs: 5 * SECOND, rememberMs: 60 * SECOND, isKept: true },
  message_unprepared: { maxMs: HOUR, rememberMs: 0 },
  domain_parked: { firstMs: MINUTE, maxMs: 30 * MINUTE, rememberMs: Number.POSITIVE_INFINITY },
  account_parked: { firstMs: MINUTE, maxMs: 30 * MINUTE, rememberMs: Number.POSITIVE_INFINITY },
};

/** The rows of domains and accounts that are parked. */
const PARKED = { domain: 'domain_parked', account: 'account_parked' } as const;

// Sound: the table has these keys only.
const ROW_REASONS = Object.keys(ROWS) as RowReason[];
/** Of each reason. */
const MAX_ROWS = 10_000;
const DOMAIN_FAILURES = 3;
/** An account is parked when this many messages of at least `ACCOUNT_DOMAINS` domains failed and none succeeded. */
const ACCOUNT_FAILURES = 12;
const ACCOUNT_DOMAINS = 3;
const MAX_LISTED = 100;

export interface MailOrigin {
  domain_id: string;
  account_id: string;
}

export interface Parked {
  kind: 'domain' | 'account';
  id: string;
  /** ISO 8601. */
  since: string;
  reason: string;
}

export type Waits = ReturnType<typeof createWaits>;

/** Nothing waits at first: a restart ends all waits. Starts no timer: call `sweep` about once per second. */
export function createWaits({ clock, monotonic, log }: Pick<Runtime, 'clock' | 'monotonic' | 'log'>) {
  const rows: { readonly [R in RowReason]: Map<string | number, Row<R>> } = {
    message_failed: new Map(),
    key_unreadable: new Map(),
    key_account_limited: new Map(),
    key_sending_slowed: new Map(),
    key_without_address: new Map(),
    message_unprepared: new Map(),
    domain_parked: new Map(),
    account_parked: new Map(),
  };
  /** Messages that wait, by queue key. */
  const messages = new Map<string, number>();
  /** Failures in a row to prepare mail of domains and accounts. */
  const failures = {
    domain: createLru<{ count: number; domains: Set<string> }>(MAX_ROWS),
    account: createLru<{ count: number; domains: Set<string> }>(MAX_ROWS),
  };

  /** Begins a wait, or the next one of the same row. Returns how long it is. `ms`: for reasons without `firstMs`. */
  function begin<R extends RowReason>(reason: R, id: string | number, detail: RowDetails[R], ms = 0): number {
    const { firstMs, maxMs, isKept = false } = ROWS[reason];
    const before = rows[reason].get(id);
    const wanted = firstMs === undefined ? ms : before === undefined ? firstMs : before.waitMs * 2;
    const waitMs = Math.min(wanted, maxMs);
    if (isKept && before === undefined && rows[reason].size >= MAX_ROWS) return waitMs;
    end(reason, id);
    const since = before?.since ?? clock.now();
    rows[reason].set(id, { id, detail, since, until: monotonic.now() + waitMs, waitMs, isOver: false });
    countMessage(detail, 1);
    for (const oldest of rows[reason].keys()) {
      if (rows[reason].size <= MAX_ROWS) break;
      end(reason, oldest);
    }
    return waitMs;
  }

  /** Milliseconds for which the row waits; 0: it does not. */
  function msOf(reason: RowReason, id: string | number): number {
    // Called for every message and key that is read: almost always there is no row.
    if (rows[reason].size === 0) return 0;
    return Math.max(0, (rows[reason].get(id)?.until ?? 0) - monotonic.now());
  }

  /** Forgets the row. Returns whether there was one. */
  function end(reason: RowReason, id: string | number): boolean {
    const row = rows[reason].get(id);
    if (row === undefined) return false;
    rows[reason].delete(id);
    if (!row.isOver) countMessage(row.detail, -1);
    return true;
  }

  /** Counts the messages that wait of each queue key. */
  function countMessage(detail: RowDetails[RowReason], by: 1 | -1): void {
    if (detail === null || !('queueKey' in detail)) return;
    const sum = (messages.get(detail.queueKey) ?? 0) + by;
    if (sum > 0) messages.set(detail.queueKey, sum);
    else messages.delete(detail.queueKey);
  }

  /** Rows that wait, and those that are remembered; the oldest first. */
  const list = <R extends RowReason>(reason: R): Row<R>[] => [...rows[reason].values()];

  /** Ends what is over, and forgets what need not be remembered. */
  function sweep(): void {
    const now = monotonic.now();
    for (const reason of ROW_REASONS) {
      for (const row of rows[reason].values()) {
        if (row.until > now) continue;
        if (!row.isOver) countMessage(row.detail, -1);
        row.isOver = true;
        if (row.until + ROWS[reason].rememberMs <= now) rows[reason].delete(row.id);
      }
    }
  }

  /**
   * Mail of the domain and the account could not be prepared (an unreadable key, a damaged row). After several failures in
   * a row their mail stays in the queue for a while, so that it does not slow other accounts; then one message is tried,
   * and the first that can be prepared releases them.
   */
  function prepareFailed({ domain_id: domainId, account_id: accountId }: MailOrigin, error: unknown): void {
    countFailure('domain', domainId, domainId, errorText(error));
    countFailure('account', accountId, domainId, errorText(error));
  }

  function countFailure(kind: Parked['kind'], id: string, domainId: string, error: string): void {
    const failed = failures[kind].get(id) ?? { count: 0, domains: new Set() };
    failed.count++;
    if (failed.domains.size < ACCOUNT_DOMAINS) failed.domains.add(domainId);
    failures[kind].set(id, failed);
    const reason = PARKED[kind];
    const row = rows[reason].get(id);
    if (row !== undefined) row.detail.error = error;
    const isEnough =
      kind === 'domain'
        ? failed.count >= DOMAIN_FAILURES
        : failed.count >= ACCOUNT_FAILURES && failed.domains.size >= ACCOUNT_DOMAINS;
    // Messages that were taken before the parking fail one by one: they count once.
    if (!isEnough || msOf(reason, id) > 0) return;
    const waitMs = begin(reason, id, { error });
    log.error({ [`${kind}Id`]: id, reason: error, waitMs }, `${kind} parked: its mail cannot be prepared`);
  }

  function prepared({ seq, domain_id: domainId, account_id: accountId }: MailOrigin & { seq: number }): void {
    end('message_unprepared', seq);
    forgetFailures('domain', domainId);
    forgetFailures('account', accountId);
  }

  function forgetFailures(kind: Parked['kind'], id: string): void {
    // Called for every message: almost always there is no entry.
    if (failures[kind].size === 0 && rows[PARKED[kind]].size === 0) return;
    failures[kind].delete(id);
    if (end(PARKED[kind], id)) log.info({ [`${kind}Id`]: id }, `${kind} released: its mail is sent again`);
  }

  /** How long mail of the domain or the account of a message may not be taken; null: it may. */
  function parkedOf({ domain_id, account_id }: MailOrigin): { kind: Parked['kind']; ms: number } | null {
    const domainMs = msOf('domain_parked', domain_id);
    const accountMs = msOf('account_parked', account_id);
    const ms = Math.max(domainMs, accountMs);
    return ms > 0 ? { kind: domainMs > 0 ? 'domain' : 'account', ms } : null;
  }

  /** Accounts and domains whose mail cannot be prepared, at most `MAX_LISTED`. */
  function parked(): Parked[] {
    const of = (kind: Parked['kind']) =>
      list(PARKED[kind]).map(({ id, since, detail }) => ({
        kind,
        id: String(id),
        since: iso(since),
        reason: detail.error,
      }));
    return [...of('account'), ...of('domain')].slice(0, MAX_LISTED);
  }

  return {
    begin,
    msOf,
    end,
    list,
    /** Number of rows that wait or are remembered. */
    count: (reason: RowReason): number => rows[reason].size,
    /** Messages of a queue key that wait because their rows could not be read or updated. */
    failedMessages: (keyText: string): number => messages.get(keyText) ?? 0,
    sweep,
    prepareFailed,
    prepared,
    parkedOf,
    parked,
  };
}

/** What only the running daemon knows about queued mail. `message` begins the lookup of a route that is not known. */
export type Inspection = Pick<ReturnType<typeof createInspection>, 'message'>;

export interface MessageFacts {
  path: DeliveryPath;
  /** Null: it is being looked up; that of a simulated message is not. */
  route: RouteResult | null;
  site: SiteFacts | null;
  /** Ms for which the site takes no mail of the account, because it asked to send less of it; 0: it does. */
  accountLimitedMs: number;
  /** Messages per minute to which its stream is slowed automatically; null: it is not. */
  slowedTo: number | null;
  /** The source address that it waits for; null: it waits for none. */
  obstacle: EgressObstacle | null;
  /** It is due later because it cannot be prepared, or its domain or account is parked; null: neither is. */
  parked: { kind: 'message' | Parked['kind']; ms: number } | null;
  /** There is no other site for its account or for all; see `Sites.mayCreate`. */
  isWithoutSite: boolean;
  /** The site takes less mail of the account, and what is sent of it now uses this up. */
  isAccountBusy: boolean;
  /** The message or its queue key could not be read or updated; null: it could. */
  unreadable: { what: 'message' | 'key'; ms: number } | null;
  /** It was sent, but its outcome could not be recorded yet. */
  isUnrecorded: boolean;
  /**
   * The share that is used up: sessions of its account or site, sessions of sites without an answer, or bytes; null: none is.
   */
  exhausted: ReturnType<Shares['exhausted']>;
  /** What stops all mail, a clause; null: nothing does. */
  stopped: string | null;
  /** Of all destinations. */
  sessions: { used: number; limit: number };
}

export interface SiteFacts {
  site: string;
  pool: string;
  /** Ms until it is probed; 0: it is not suspended. */
  suspendedMs: number;
  /** Ms until it gets mail again, because it asked to send less; 0: it gets mail. */
  limitedMs: number;
  pause: QueueControlRow | null;
  /** Ms until its rate (`perSecond`, or what it asked for) allows the next message; 0: now. */
  rateWaitMs: number;
  /** `limit`: of its profile. `allowed`: now; fewer after an outage, and after the site asked to send less. */
  connections: { used: number; allowed: number; limit: number };
  /** Of the allowed ones, those that marketing mail may use. */
  forMarketing: number;
  /** Messages in memory that wait for a connection, transactional and marketing. */
  readAhead: { transactional: number; marketing: number };
  /** Pairs of account and destination with mail that wait for their turn. */
  waitingKeys: number;
}

interface InspectionParts {
  waits: Pick<Waits, 'parkedOf' | 'msOf' | 'parked' | 'count' | 'list'>;
  rates: Pick<SendingRates, 'perMinuteOf'>;
  sites: Sites;
  targets: Pick<Targets, 'locate' | 'egressObstacle'>;
  controls: Pick<Controls, 'ofKey' | 'ofSite' | 'list'>;
  shares: Pick<Shares, 'exhausted' | 'sessions'>;
  /** Sessions at most. */
  connections: number;
  shaping: Pick<Shaping, 'limits' | 'slow'>;
  egress: Pick<Egress, 'problems' | 'blocks'>;
  /** Whether the outcome of a message could not be recorded yet, and why no outcome can be recorded, a clause. */
  recording: { isUnrecorded(seq: number): boolean; unrecorded(): string | null };
  /** Why the queue is not read, a clause; null: it is. */
  stalled(): string | null;
}

const MAX_LISTED_SITES = 200;

/**
 * Keeps no state: each call reads the waits. Only `message` and `obstacle` read the database: the path of the message, and
 * the counts of a source address at their first use on a day.
 */
export function createInspection(
  { clock, tables }: Pick<Context, 'clock' | 'tables'>,
  parts: InspectionParts,
) {
  const { waits, rates, sites, targets, controls, shares, connections } = parts;
  const { shaping, egress, recording } = parts;

  const factsOf = (site: Site): SiteFacts => ({
    site: site.key,
    pool: site.pool,
    suspendedMs: Math.ceil(site.suspendedMs()),
    limitedMs: Math.ceil(site.limitedMs()),
    pause: controls.ofSite(site),
    rateWaitMs: Math.ceil(site.rateWaitMs()),
    connections: { ...site.connections(TRANSACTIONAL_PRIORITY), limit: site.profile().connections },
    forMarketing: site.connections(MARKETING_PRIORITY).allowed,
    readAhead: {
      transactional: site.backlogSize(TRANSACTIONAL_PRIORITY),
      marketing: site.backlogSize(MARKETING_PRIORITY),
    },
    waitingKeys: site.waitingCount(),
  });

  /** The path, the route and the site of a message, and what stops it there. */
  function message(queued: QueuedMessage): MessageFacts {
    const { path, route, site } = targets.locate(queued);
    const unreadable = unreadableOf(queued);
    const content_bytes = unreadable === null ? sizeOf(queued) : 0;
    return {
      path,
      route,
      site: site === null ? null : factsOf(site),
      accountLimitedMs: site === null ? 0 : Math.ceil(site.accountLimitedMs(queued.account_id)),
      slowedTo: rates.perMinuteOf(queued),
      obstacle: targets.egressObstacle(queued),
      parked: waits.parkedOf(queued) ?? unpreparedOf(queued),
      isWithoutSite: route?.kind === 'hosts' && site === null && !sites.mayCreate(queued.account_id),
      isAccountBusy: site?.isAccountBusy(queued.account_id) === true,
      unreadable,
      isUnrecorded: recording.isUnrecorded(queued.seq),
      exhausted: site === null ? null : shares.exhausted(site, { ...queued, content_bytes }),
      stopped: stopped(),
      sessions: sessions(),
    };
  }

  /** Bytes of its content; 0 when its row cannot be read, which is logged when its turn comes. */
  function sizeOf({ seq }: QueuedMessage): number {
    try {
      return tables.queue.ready(seq)?.content_bytes ?? 0;
    } catch {
      return 0;
    }
  }

  /** A message that is due again is prepared again. */
  function unpreparedOf({ seq, due_at }: QueuedMessage): MessageFacts['parked'] {
    const ms = due_at > clock.now() ? waits.msOf('message_unprepared', seq) : 0;
    return ms > 0 ? { kind: 'message', ms } : null;
  }

  /** Whether the message, or the mail of its queue key, could not be read or updated. */
  function unreadableOf(queued: QueuedMessage): MessageFacts['unreadable'] {
    const messageMs = waits.msOf('message_failed', queued.seq);
    if (messageMs > 0) return { what: 'message', ms: messageMs };
    const keyMs = waits.msOf('key_unreadable', queueKeyText(queued));
    return keyMs > 0 ? { what: 'key', ms: keyMs } : null;
  }

  /** Why a due message is not sent, a clause; null: no obstacle is known. */
  function obstacle(queued: QueuedMessage): string | null {
    const now = clock.now();
    const listed = { ...queued, ready: 1, paused: 0, hold_reason: null } as const;
    const situation = situationOf(listed, controls, message(queued), now);
    for (const code of WAIT_REASON_CODES) {
      const { reason, clause = null } = explain(code, situation) ?? {};
      if (reason === undefined || clause === null) continue;
      // The description of a control has its end.
      const hasEnd = code === 'paused' || code === 'rejected' || reason.until === null;
      return hasEnd ? clause : `${clause}; next attempt at ${reason.until}`;
    }
    return null;
  }

  const stopped = (): string | null => recording.unrecorded() ?? parts.stalled();
  const sessions = () => ({ used: shares.sessions(), limit: connections });

  return {
    message,
    obstacle,
    /** Sites in memory with mail, those with the most connections first, at most `MAX_LISTED_SITES`. */
    sites: (): SiteFacts[] =>
      [...sites.all()]
        .toSorted(
          (a, b) =>
            b.connections(TRANSACTIONAL_PRIORITY).used - a.connections(TRANSACTIONAL_PRIORITY).used ||
            b.waitingCount() - a.waitingCount(),
        )
        .slice(0, MAX_LISTED_SITES)
        .map(factsOf),
    siteCount: (): number => [...sites.all()].length,
    /** Sites that get no mail because their hosts cannot be reached, with the time until they are probed. */
    suspendedSites: (): { site: string; ms: number }[] =>
      [...sites.all()].flatMap((site) =>
        site.isSuspended() ? [{ site: site.key, ms: site.suspendedMs() }] : [],
      ),
    /** The limits in force at the sites in memory. */
    siteLimits: shaping.limits,
    /** Sites that asked to send less and have had one connection for hours, at most 20. */
    slowSites: shaping.slow,
    /** What stops all mail, a clause; null: nothing does. */
    stopped,
    /** Why the queue is not read, and why no outcome can be recorded, likewise. */
    stalled: parts.stalled,
    unrecorded: recording.unrecorded,
    sessions,
    /** The operator's controls in force. */
    controls: controls.list,
    /** Domains and accounts whose mail cannot be prepared, at most 100. */
    parked: waits.parked,
    parkedCount: (kind: Parked['kind']): number => waits.count(PARKED[kind]),
    /** Number of queue keys that cannot be read now; they are retried later. */
    unreadableKeys: (): number => waits.count('key_unreadable'),
    /** Source addresses that cannot be used or are refused by a provider, at most 100. */
    egressProblems: egress.problems,
    /** Blocked source addresses, at most 100. */
    addressBlocks: egress.blocks,
    /** Keys of the queue whose mail waits for the quota of a warm-up, or the ramp of a new sender. */
    keysInWarmup: (): QueueKey[] =>
      waits
        .list('key_without_address')
        .flatMap(({ detail: { key, kind } }) => (kind === 'warmup' || kind === 'ramp' ? [key] : [])),
  };
}
