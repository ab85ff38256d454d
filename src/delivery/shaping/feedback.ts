import type { ReplyEffect } from '../../config/reply-rules.ts';
import { HOUR, SECOND } from '../../core/clock.ts';
import { createLru } from '../../core/lru.ts';
import type { Runtime } from '../../core/runtime.ts';
import { type Classification, PHASES_BEFORE_MAIL } from '../../mail/classify/classify.ts';
import type { QueuedMessage } from '../../store/messages/queue.ts';
import { type AttemptResult, decidingSession, siteStateOf } from '../attempt-result.ts';
import type { Site, SlotReservation } from '../scheduling/site.ts';
import type { AttemptReport } from '../worker/protocol.ts';
import type { Restriction } from './limiter.ts';
import type { HostAnswers } from './profiles.ts';

/** What a session means for its site. */
export type SiteSignal =
  /** A reply that decides about the message. */
  | 'answered'
  /** No host could be reached. */
  | 'unreachable'
  /** The site asks to send less. */
  | 'throttled'
  /** The site asks to send less mail of this sender. */
  | 'sender-throttled';

/** What the report means for the site; null: nothing, because no host was contacted. */
export function signalOf(
  report: AttemptReport,
  { classification, address }: Pick<AttemptResult, 'classification' | 'address'>,
): SiteSignal | null {
  const state = siteStateOf(report);
  if (report.reply === null || report.conclusion === 'unanswered' || report.conclusion === 'refused-locally')
    return state;
  // The address is not used while the receiver refuses it: other addresses of the site are not slower.
  if (address === 'refused') return 'answered';
  const { action, bounceClass, scope } = classification;
  const asksForLess =
    bounceClass === 'rate-limited' ||
    (report.reply.code < 500 &&
      action === 'defer' &&
      (bounceClass === 'reputation-block' || report.reply.code === 421));
  if (scope === 'sender' && asksForLess)
    return PHASES_BEFORE_MAIL.has(report.phase) || isAboutAddress({ classification, address })
      ? 'throttled'
      : 'sender-throttled';
  return scope === 'site' && bounceClass === 'rate-limited' ? 'throttled' : state;
}

/** Whether the reply concerns our address, which all accounts share. */
function isAboutAddress({
  classification,
  address,
}: Pick<AttemptResult, 'classification' | 'address'>): boolean {
  return classification.isAboutAddress === true || address === 'throttled';
}

function restrictionOf(effect: ReplyEffect): Restriction {
  if (effect.kind === 'suspend') return { pauseMs: effect.ms, connections: 1 };
  if (effect.kind === 'connections') return { connections: effect.connections };
  return { perSecond: effect.messages / 60 };
}

/** Sites and rules whose replies are counted. */
const MAX_AUTOMATED = 1000;
/** Greylisted messages in memory; the oldest are forgotten first. */
const MAX_GREYLISTED = 20_000;
/** An acceptance after a longer time has another cause than greylisting. */
const MAX_GREYLIST_MS = 4 * HOUR;
const MIN_GREYLIST_MS = SECOND;

export type Feedback = ReturnType<typeof createFeedback>;

interface FeedbackCollaborators {
  hostAnswers: HostAnswers;
  /** Called with each reply of a server whose meaning no rule knows; `host`: the one that gave it. */
  onUnclassified(report: AttemptReport, host: string | null): void;
}

/**
 * Applies the replies of finished sessions to the limits of their sites. Remembers when 20,000 greylisted messages were
 * deferred first, which a restart forgets. Logs each suspension and each reduction of limits as a warning.
 */
export function createFeedback(
  { monotonic, log }: Pick<Runtime, 'monotonic' | 'log'>,
  { hostAnswers, onUnclassified }: FeedbackCollaborators,
) {
  /** When messages were greylisted first (monotonic), by seq. */
  const greylisted = createLru<{ at: number }>(MAX_GREYLISTED);
  /** Times of replies (monotonic), and the epoch of the site since its automation was last applied. */
  const automated = createLru<{ times: number[]; firedIn: number }>(MAX_AUTOMATED);

  /** Applies the signal to the limits and the suspension of the site. */
  function applySignal(
    signal: SiteSignal | null,
    { sessions }: AttemptReport,
    result: AttemptResult,
    reservation: SlotReservation,
  ): void {
    const { site, accountId } = reservation;
    const { action, retryAfterMs } = result.classification;
    const reply = result.reply.text;
    if (signal === 'unreachable') {
      // Hosts that have never replied may not be those of the site's provider.
      if (site.isShared && !sessions.some(({ host }) => hostAnswers.hasAnswered(host))) return;
      const waitMs = site.unreachable(reservation);
      if (waitMs > 0) log.warn({ site: site.key, waitMs }, 'site suspended: its hosts cannot be reached');
      return;
    }
    if (signal === null) return;
    site.answered(reservation, action === 'deliver');
    // Mail that waited for the address resumes slowly.
    if (result.address === 'recovered') site.restrict({ connections: 1 });
    if (signal === 'throttled') {
      const isAddress = isAboutAddress(result);
      const pauseMs = isAddress ? site.profile().addressPauseMs : 0;
      const waitMs = site.throttled(
        reservation,
        pauseMs === 0 ? retryAfterMs : Math.max(pauseMs, retryAfterMs ?? 0),
        isAddress,
      );
      const { connections, perSecond } = site.limits();
      if (waitMs > 0)
        log.warn(
          { site: site.key, waitMs, connections, perSecond, reply },
          'site asked to send less: no mail for a time, then less',
        );
    }
    if (signal === 'sender-throttled') {
      const waitMs = site.senderThrottled(reservation, retryAfterMs);
      if (waitMs > 0)
        log.warn(
          { site: site.key, accountId, waitMs, reply },
          'site asked to send less mail of one sender: none of its account for a time, then less',
        );
    }
  }

  /** Counts replies for the automation of their rule, which limits the site when there were enough of them. */
  function automate({ automation }: Classification, { site, limitEpoch }: SlotReservation): void {
    if (automation === undefined) return;
    const { after, within, then: effect } = automation;
    const key = `${site.key} ${JSON.stringify(automation)}`;
    const count = automated.get(key) ?? { times: [], firedIn: 0 };
    automated.set(key, count);
    // Sessions from before the automation was applied belong to the same event.
    if (limitEpoch < count.firedIn) return;
    const now = monotonic.now();
    count.times = [...count.times.filter((at) => now - at < within), now].slice(-after);
    if (count.times.length < after) return;
    count.times = [];
    count.firedIn = site.restrict(restrictionOf(effect));
    log.warn({ site: site.key, effect }, 'site limited by a rule for its replies');
  }

  /** Remembers after which wait greylisted mail is accepted. Returns how long to wait now; null: not known. */
  function learn({ action, greylisted: isGreylisted }: Classification, site: Site, message: QueuedMessage) {
    const { attempts } = message;
    const id = String(message.seq);
    const now = monotonic.now();
    // Almost always there is none.
    const first = greylisted.size === 0 ? undefined : greylisted.get(id);
    const elapsed = first === undefined ? null : now - first.at;
    const known = site.greylistMs();
    if (!isGreylisted) {
      if (elapsed === null) return null;
      greylisted.delete(id);
      if (action === 'deliver' && elapsed <= MAX_GREYLIST_MS && elapsed < (known ?? Number.POSITIVE_INFINITY))
        site.learnGreylisting(Math.max(Math.ceil(elapsed), MIN_GREYLIST_MS));
      return null;
    }
    // The beginning is known only of a message that was greylisted at its first attempt.
    if (first === undefined && attempts === 0) greylisted.set(id, { at: now });
    if (known === null) return null;
    if ((elapsed ?? 0) < known) return known - (elapsed ?? 0);
    // The known wait was not enough: the site has changed its rules.
    site.learnGreylisting(null);
    return null;
  }

  /** Returns the result, with the wait that the site is known to require from greylisted mail. */
  function apply(
    report: AttemptReport,
    result: AttemptResult,
    reservation: SlotReservation,
    message: QueuedMessage,
  ): AttemptResult {
    const { classification } = result;
    hostAnswers.record(report.sessions);
    applySignal(signalOf(report, result), report, result, reservation);
    automate(classification, reservation);
    const { action, bounceClass } = classification;
    if (result.source === 'smtp' && action !== 'deliver' && bounceClass === 'unclassified')
      onUnclassified(report, decidingSession(report)?.host ?? null);
    const greylistMs = learn(classification, reservation.site, message);
    return greylistMs === null ? result : { ...result, greylistMs };
  }

  return { apply };
}
