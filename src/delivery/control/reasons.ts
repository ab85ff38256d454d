import { type Clock, iso } from '../../core/clock.ts';
import type { HoldReason } from '../../store/messages/queue.ts';
import type { QueueControlRow } from '../../store/messages/queue-controls.ts';
import type { ListedInQueue } from '../../store/messages/queue-list.ts';
import type { AddressBlock } from '../address-health.ts';
import type { RouteFailure } from '../routes.ts';
import { type ControlIndex, describeControl } from './controls.ts';
import type { Inspection, MessageFacts, SiteFacts } from './inspection.ts';
import { localRemedy } from './remedies.ts';

export const WAIT_REASON_CODES = [
  'final',
  'sending',
  'held',
  'paused',
  'rejected',
  'scheduled',
  'deferred',
  'stopped',
  'parked',
  'no_route',
  'route_unknown',
  'site_suspended',
  'site_limited',
  'account_limited',
  'warmup',
  'address_unusable',
  'address_blocked',
  'site_busy',
  'site_rate',
  'sessions_used',
  'in_line',
] as const;

/** Why mail is not sent now. */
export interface WaitReason {
  code: (typeof WAIT_REASON_CODES)[number];
  /** One or more sentences. */
  text: string;
  /** ISO 8601: when this ends by itself; null: not by itself, or not known. */
  until: string | null;
  /** What the operator can do; null: nothing is needed. */
  remedy: string | null;
}

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

/** The reasons for a message in the queue, the deciding one first. `live` null: the daemon does not run. */
export function reasonsOf(
  queued: ListedInQueue,
  controls: ControlIndex,
  live: { inspection: Inspection; facts: MessageFacts } | null,
  clock: Clock,
): WaitReason[] {
  if (queued.lease !== null && (live !== null || queued.status === 'sending'))
    return [reason('sending', 'It is being sent now.')];
  const reasons: WaitReason[] = [];
  const control = controls.ofKey(queued);
  if (control !== null) reasons.push(controlReason(control));
  const pause = siteControl(controls, live?.facts ?? null);
  if (pause !== null) reasons.push(controlReason(pause));
  const hold = queued.hold_reason ?? (queued.paused === 1 ? 'campaign_paused' : null);
  if (hold !== null) reasons.push({ code: 'held', ...HOLDS[hold], until: null });
  else {
    // It decides: the next attempt waits for the address, too.
    const block = live?.facts.obstacle?.block;
    if (block !== undefined) reasons.push(blockReason(block));
    if (queued.ready === 0 && queued.due_at > clock.now()) reasons.push(dueReason(queued));
  }
  if (live !== null) {
    reasons.push(...liveReasons(queued, live, clock));
    if (reasons.length === 0 && live.facts.route === null)
      reasons.push(
        reason('route_unknown', 'Its mail hosts are being looked up in DNS, or will be when it is read.'),
      );
  }
  if (reasons.length === 0)
    reasons.push(
      live === null
        ? reason('in_line', 'It is due, but the daemon does not run.', null, 'Start the daemon.')
        : reason('in_line', 'It is due and is sent within a second or two.'),
    );
  return reasons;
}

function liveReasons(
  queued: ListedInQueue,
  { inspection, facts }: { inspection: Inspection; facts: MessageFacts },
  clock: Clock,
): WaitReason[] {
  const reasons: WaitReason[] = [];
  const until = (ms: number) => iso(clock.now() + ms);
  const stopped = inspection.stopped();
  if (stopped !== null)
    reasons.push(
      reason('stopped', `No mail is sent: ${stopped}.`, null, 'Run "postrider doctor"; see the log.'),
    );
  if (facts.parked !== null)
    reasons.push(
      reason(
        'parked',
        `Mail of this ${facts.parked.kind} cannot be prepared.`,
        until(facts.parked.ms),
        'See the log for the error, such as a key that cannot be read.',
      ),
    );
  const isDue = queued.ready === 1 || queued.due_at <= clock.now();
  if (!isDue) return reasons;
  if (facts.route?.kind === 'failure')
    reasons.push(
      reason('no_route', routeFailureText(queued.destination, facts.route), null, routeRemedy(facts.route)),
    );
  else {
    if (facts.site !== null) reasons.push(...siteReasons(facts.site, until));
    reasons.push(...limitReasons(queued, facts, until));
  }
  reasons.push(...sessionReasons(inspection.sessions(), facts.exhausted));
  return reasons;
}

/** Whether mail waits for the sessions that all destinations share. */
function sessionReasons(
  { used, limit }: ReturnType<Inspection['sessions']>,
  exhausted: MessageFacts['exhausted'],
): WaitReason[] {
  if (used < limit && exhausted === null) return [];
  const setting = 'delivery.connections';
  const share =
    exhausted === 'unanswered'
      ? `All sessions that sites without an answer may have are in use: half of ${limit} (${setting}).`
      : `Its account or its site uses its whole share of the ${limit} sessions (${setting}), of which ${used} are in use.`;
  return [
    reason(
      'sessions_used',
      used < limit ? share : `All ${limit} sessions are in use (${setting}).`,
      null,
      `Raise ${setting} if this lasts, and the limit of open files with it.`,
    ),
  ];
}

/** Whether mail waits for the limits of its account at the site, or for a source address. */
function limitReasons(
  { destination }: ListedInQueue,
  { accountLimitedMs, obstacle }: MessageFacts,
  until: (ms: number) => string,
): WaitReason[] {
  const reasons: WaitReason[] = [];
  if (accountLimitedMs > 0)
    reasons.push(
      reason(
        'account_limited',
        `The mail hosts of ${destination} asked to send less mail of this account.`,
        until(accountLimitedMs),
        'Read the last replies: complaints or content of this sender are usually the cause.',
      ),
    );
  if (obstacle !== null && obstacle.block === undefined)
    reasons.push(
      reason(
        obstacle.kind === 'warmup' ? 'warmup' : 'address_unusable',
        `It ${obstacle.text}.`,
        iso(obstacle.until),
        obstacle.kind === 'warmup'
          ? 'To send it today: another address in the pool, or "postrider warmup skip".'
          : 'Run "postrider doctor": it checks the addresses and proxies.',
      ),
    );
  return reasons;
}

function blockReason({ address, receiver, nextProbeAt, reply, delisting }: AddressBlock): WaitReason {
  return reason(
    'address_blocked',
    `${receiver} blocks mail from ${address}, and no other source address can send it: "${reply}". One message tries again at ${iso(nextProbeAt)}.`,
    iso(nextProbeAt),
    `Find and stop the cause. ${delisting} Then "postrider queue retry" tries the address immediately.`,
  );
}

/** Why a destination has no route, a sentence. */
export function routeFailureText(destination: string, { failure, route }: RouteFailure): string {
  const hop = route === null ? '' : ` through ${route.host}`;
  return `There is no route to ${destination}${hop}: ${failure.replaceAll('-', ' ')}.`;
}

function routeRemedy({ failure, route }: RouteFailure): string {
  if (route !== null)
    return `Check that the name ${route.host} of the next hop has an address in DNS: it comes from delivery.routes, "secondary" or a reroute.`;
  return localRemedy(failure) ?? 'Query the MX records of the domain with "dig MX".';
}

/** Why a site takes no mail now. */
export function siteReasons(site: SiteFacts, until: (ms: number) => string): WaitReason[] {
  if (site.suspendedMs > 0)
    return [
      reason(
        'site_suspended',
        `The mail hosts of the site ${site.site} could not be reached; one connection tries them at ${until(site.suspendedMs)}.`,
        until(site.suspendedMs),
        'If other sites are reachable, the cause is on the side of the site; otherwise run "postrider doctor". When it is repaired, "postrider queue retry" tries the site immediately.',
      ),
    ];
  if (site.limitedMs > 0)
    return [
      reason(
        'site_limited',
        `The mail hosts of the site ${site.site} asked to send less; it gets mail again at ${until(site.limitedMs)}.`,
        until(site.limitedMs),
        'Read the last replies; the rate adapts by itself.',
      ),
    ];
  const { used, allowed, limit } = site.connections;
  if (used < Math.min(allowed, limit)) return rateReasons(site, until);
  const reduced =
    allowed < limit
      ? ` The number grows as the site answers and accepts mail, and as other sites leave more of all open connections; its limit is ${limit}.`
      : '';
  return [
    reason(
      'site_busy',
      `All ${used} connections that the site ${site.site} may have are in use.${reduced}`,
      null,
      reduced === '' ? 'Raise "connections" of its shaping profile if the receiver permits it.' : null,
    ),
  ];
}

/** Whether the next message of the site waits for the rate. */
function rateReasons({ site, rateWaitMs }: SiteFacts, until: (ms: number) => string): WaitReason[] {
  if (rateWaitMs === 0) return [];
  return [
    reason(
      'site_rate',
      `The rate of the site ${site} allows its next message at ${until(rateWaitMs)}.`,
      until(rateWaitMs),
      'Raise "perSecond" of its shaping profile if the receiver permits it; a rate that it asked for adapts by itself.',
    ),
  ];
}

function dueReason({ status, due_at, attempts }: ListedInQueue): WaitReason {
  const at = iso(due_at);
  return status === 'queued' && attempts === 0
    ? reason('scheduled', `It is scheduled for ${at}.`, at)
    : reason(
        'deferred',
        `The last attempt was deferred; the next one is at ${at}.`,
        at,
        'To try it earlier: "postrider queue retry".',
      );
}

/**
 * Code `paused` or `rejected`; the remedy is the command that removes the control. `until` null: it does not end by
 * itself.
 */
export function controlReason(control: QueueControlRow): WaitReason {
  const text = describeControl(control);
  const flag = `--${control.scope} ${control.scope === 'site' ? `'${control.target}'` : control.target}`;
  return {
    code: control.action === 'pause' ? 'paused' : 'rejected',
    text: `${text.charAt(0).toUpperCase()}${text.slice(1)}.`,
    until: control.until === null ? null : iso(control.until),
    remedy: `To end this: "postrider queue resume ${flag}".`,
  };
}

/** The pause of the site or the pool. */
function siteControl(controls: ControlIndex, facts: MessageFacts | null): QueueControlRow | null {
  if (facts === null) return null;
  const { path, site } = facts;
  return site === null
    ? controls.ofSite({ key: '', pool: path.pool })
    : controls.ofSite({ key: site.site, pool: site.pool });
}

function reason(
  code: WaitReason['code'],
  text: string,
  until: string | null = null,
  remedy: string | null = null,
): WaitReason {
  return { code, text, until, remedy };
}
