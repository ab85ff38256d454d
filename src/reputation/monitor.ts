import { DAY, iso, MINUTE, SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { checkReason } from '../core/reason.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { BLOCK_CLASSES } from '../events/counts.ts';
import type { EventFields, RateFigures } from '../events/event-types.ts';
import type { Recorder } from '../events/record.ts';
import type { Context } from '../store/context.ts';
import type { Stream } from '../store/domains/domains.ts';
import { type CountedMessages, OTHER_PROVIDER } from '../store/messages/hourly-counts.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { ReputationRow } from '../store/reputation/reputation-counts.ts';
import type { LimitLevel, RateSignal, SendingLimitRow } from '../store/sending-limits.ts';
import type { Tables } from '../store/tables.ts';
import {
  countsSince,
  judge,
  levelRank,
  NO_COUNTS,
  type RateCounts,
  STREAM_SAMPLE,
  stillApplies,
  type Verdict,
} from './judgement.ts';
import {
  configuredLimits,
  describeFigures,
  figuresOf,
  REMEDIES,
  RESUMED,
  type ReputationConfig,
} from './limits.ts';

/*
 * Automatic limits of streams: the marketing or transactional mail of an account, of one of its domains, and of a domain to one
 * mailbox provider. Their rates are those of today and yesterday (UTC), from counts that exist for the reputation.
 */

/** What is limited. */
interface LimitedStream {
  stream: Stream;
  /** '': all domains of the account. */
  domainId: string;
  /** '': all providers. */
  provider: string;
}

/** The counts of a stream since the last time at which a person has seen them. */
type StreamCounts = LimitedStream & {
  counts: RateCounts;
  /** Of the limit that the stream has or had; null: it has no row. */
  countsFrom: SendingLimitRow['counts_from'] | null;
};

/** The figures in the row of a limit. */
type StoredFigures = RateFigures & { reason: RateSignal };

const WINDOW_DAYS = 2;
const INTERVAL_MS = 2 * SECOND;
const RECHECK_INTERVAL_MS = MINUTE;
/** Accounts that are judged in one run: each reads at most the rows of two days (`reputation_counts`), in a reader thread. */
const MAX_PER_RUN = 50;
const MAX_DUE = 10_000;
const MAX_LIMITS_OF_ACCOUNT = 200;
const MAX_LISTED = 500;

const dayOf = (at: number) => at - (at % DAY);

/** Reads the counts of all streams of an account that may be limited or are. */
export const streamCounts = readQuery(
  'streamCounts',
  (tables: Tables, { accountId, now }: { accountId: string; now: number }): StreamCounts[] => {
    const known = new Map(tables.sendingLimits.ofAccount(accountId).map((row) => [keyOf(ofRow(row)), row]));
    const sums = new Map<string, StreamCounts>();
    const domains = { tx: new Set<string>(), mk: new Set<string>() };
    const from = dayOf(now) - (WINDOW_DAYS - 1) * DAY;
    for (let day = from; day <= now; day += DAY) {
      for (const row of tables.reputationCounts.ofDay(day, accountId)) {
        const stream = tables.domains.byId(row.domainId)?.use_case;
        if (stream === undefined) continue;
        domains[stream].add(row.domainId);
        for (const of of streamsOf(stream, row)) {
          const key = keyOf(of);
          const countsFrom = known.get(key)?.counts_from ?? null;
          if (countsFrom !== null && countsFrom >= day + DAY) continue;
          const sum = sums.get(key) ?? { ...of, counts: { ...NO_COUNTS }, countsFrom };
          addTo(sum.counts, row);
          sums.set(key, sum);
        }
      }
    }
    for (const [key, row] of known) {
      const sum = sums.get(key) ?? { ...ofRow(row), counts: { ...NO_COUNTS }, countsFrom: row.counts_from };
      // Sound: only `countsOfDay` is stored.
      const seen = row.seen_counts === null ? null : (JSON.parse(row.seen_counts) as RateCounts);
      sums.set(
        key,
        seen === null || row.counts_from < from ? sum : { ...sum, counts: countsSince(sum.counts, seen) },
      );
    }
    return [...sums].flatMap(([key, sum]) => {
      const isOnly = sum.domainId === '' && domains[sum.stream].size < 2;
      const mayReach = worstOf(sum.counts) >= STREAM_SAMPLE.events;
      // The limit of the only domain is that of the account.
      return known.has(key) || (mayReach && !isOnly) ? [sum] : [];
    });
  },
);

/** The counts of a day for one stream. */
function countsOfDay(tables: Tables, accountId: string, of: LimitedStream, day: number): RateCounts {
  const counts = { ...NO_COUNTS };
  for (const row of tables.reputationCounts.ofDay(day, accountId)) {
    const stream = tables.domains.byId(row.domainId)?.use_case;
    if (stream !== undefined && streamsOf(stream, row).some((one) => keyOf(one) === keyOf(of)))
      addTo(counts, row);
  }
  return counts;
}

/** The streams to which a row of counts belongs. */
function streamsOf(stream: Stream, { domainId, provider }: ReputationRow): LimitedStream[] {
  const all: LimitedStream[] = [
    { stream, domainId: '', provider: '' },
    { stream, domainId, provider: '' },
  ];
  return provider === OTHER_PROVIDER ? all : [...all, { stream, domainId, provider }];
}

function addTo(sum: RateCounts, row: ReputationRow): void {
  sum.delivered += row.delivered;
  sum.bounced += row.hardBounced + row.softBounced;
  sum.hardBounced += row.hardBounced;
  sum.blocked += row.blocked;
  sum.complained += row.complained;
  sum.unsubscribed += row.unsubscribed;
}

function worstOf({ hardBounced, blocked, complained, unsubscribed }: RateCounts): number {
  return Math.max(hardBounced, blocked, complained, unsubscribed);
}

function keyOf({ stream, domainId, provider }: LimitedStream): string {
  return `${stream} ${domainId} ${provider}`;
}

function ofRow({ stream, domain_id: domainId, provider }: SendingLimitRow): LimitedStream {
  return { stream, domainId, provider };
}

/** Whether a limit ended by itself. After a resumption by a person the counts begin with it. */
export function endedByItself({ level, since, counts_from }: SendingLimitRow): boolean {
  return level === null ? counts_from !== since : level === 'notice';
}

/** A limit as the API and the command line present it. */
export interface SendingLimit {
  limitId: string;
  accountId: string;
  level: LimitLevel;
  useCase: Stream;
  /** Null: all domains of the account. */
  domain: string | null;
  domainId: string | null;
  /** Null: all providers. */
  provider: string | null;
  reason: RateSignal;
  figures: RateFigures;
  /** Messages per minute; null: it is not slowed. */
  perMinute: number | null;
  /** ISO 8601. */
  since: string;
  /** A sentence with the figures, and what to do. */
  text: string;
  remedy: string;
}

/** Presents the limits in force, the newest first. `accountId` null: of all accounts. */
export function listLimits(tables: Tables, accountId: string | null): SendingLimit[] {
  const rows =
    accountId === null ? tables.sendingLimits.inForce(MAX_LISTED) : tables.sendingLimits.ofAccount(accountId);
  return rows.flatMap((row) => (row.level === null ? [] : [presentLimit(tables, row, row.level)]));
}

/** As the API presents it. `level`: of `row`, which is in force. */
export function presentLimit(tables: Tables, row: SendingLimitRow, level: LimitLevel): SendingLimit {
  const { reason, ...figures } = readFigures(row);
  const domain = row.domain_id === '' ? null : (tables.domains.byId(row.domain_id)?.name ?? null);
  const mail = `${row.stream === 'mk' ? 'Marketing' : 'Transactional'} mail of ${domain ?? 'the account'}`;
  const to = row.provider === '' ? '' : ` to ${row.provider}`;
  const state = {
    notice: 'has a high rate',
    slow: `is slowed to ${row.per_minute} messages per minute`,
    pause: 'is stopped',
  };
  return {
    limitId: row.limit_id,
    accountId: row.account_id,
    level,
    useCase: row.stream,
    domain,
    domainId: row.domain_id === '' ? null : row.domain_id,
    provider: row.provider === '' ? null : row.provider,
    reason,
    figures,
    perMinute: row.per_minute,
    since: iso(row.since),
    text: `${mail}${to} ${state[level]}: ${describeFigures(reason, figures)}.`,
    remedy: REMEDIES[reason],
  };
}

function readFigures({ figures }: SendingLimitRow): StoredFigures {
  // Sound: only this module writes them.
  return JSON.parse(figures) as StoredFigures;
}

/** Fields of an event that name what is limited. */
function eventFields(tables: Tables, { stream, domainId, provider }: LimitedStream) {
  const domain = domainId === '' ? undefined : tables.domains.byId(domainId)?.name;
  return {
    useCase: stream,
    ...(domain === undefined ? {} : { domain }),
    ...(provider === '' ? {} : { provider }),
  };
}

type ResumeContext = Pick<Context, 'clock' | 'writer'> & { recorder: Pick<Recorder, 'account'> };

/**
 * Ends a limit: the counts until now no longer limit the stream. `accountId` null: by the operator. Refuses an unknown limit, one
 * that is not in force, and an invalid reason.
 */
export async function resumeLimit(
  { clock, writer, recorder }: ResumeContext,
  accountId: string | null,
  limitId: string,
  { reason, by }: { reason: string; by: string },
): Promise<SendingLimit | Refusal> {
  const fault = checkReason(reason, RESUMED);
  if (fault !== null) return fault;
  return writer.run((tx): SendingLimit | Refusal => {
    const row = tx.sendingLimits.get(limitId);
    if (row === null || row.level === null || (accountId !== null && row.account_id !== accountId))
      return refuse('NOT_FOUND', `There is no limit ${limitId} in force`);
    const now = clock.now();
    const seen = countsOfDay(tx, row.account_id, ofRow(row), dayOf(now));
    tx.sendingLimits.put({
      ...row,
      level: null,
      per_minute: null,
      since: now,
      counts_from: now,
      seen_counts: JSON.stringify(seen),
    });
    recorder.account(tx, { accountId: row.account_id, domainId: row.domain_id || null }, 'sending_resumed', {
      limitId,
      ...eventFields(tx, ofRow(row)),
      by,
      reason: reason.trim(),
    });
    return presentLimit(tx, row, row.level);
  }, accountId ?? undefined);
}

export type SendingMonitor = ReturnType<typeof createSendingMonitor>;

/**
 * Judges the streams of accounts whose mail bounced, was blocked or was complained about, every two seconds, and once a minute
 * those with limits in force, also after a change of the settings. `start` begins a loop; limits are in the database, so that
 * they survive a restart.
 */
export function createSendingMonitor(
  context: Pick<Context, 'clock' | 'monotonic' | 'ids' | 'log' | 'tables' | 'reader' | 'writer'> & {
    config: ReputationConfig;
  },
  {
    recorder,
    onChange,
  }: {
    recorder: Pick<Recorder, 'account'>;
    /** Called after limits changed, and once per run. */
    onChange(): void;
  },
) {
  const { config, clock, monotonic, ids, log, tables, reader, writer } = context;
  /** Accounts to judge. */
  const due = new Set<string>();
  let recheckedAt = Number.NEGATIVE_INFINITY;

  async function run(): Promise<void> {
    if (monotonic.now() - recheckedAt >= RECHECK_INTERVAL_MS) {
      recheckedAt = monotonic.now();
      for (const accountId of tables.sendingLimits.accounts(MAX_DUE)) due.add(accountId);
    }
    for (const accountId of [...due].slice(0, MAX_PER_RUN)) {
      due.delete(accountId);
      try {
        await judgeAccount(accountId);
      } catch (error) {
        // Those after it are still judged; its next event, or the next check, judges it again.
        log.error({ err: error, accountId }, 'rates of an account could not be judged');
      }
    }
    onChange();
  }

  async function judgeAccount(accountId: string): Promise<void> {
    const now = clock.now();
    const streams = await reader.query(accountId, streamCounts, { accountId, now });
    const found = streams.filter((of) => of.countsFrom !== null || verdictOf(of.counts, of) !== null);
    if (found.length === 0) return;
    const changed = await writer.run((tx) => {
      const rows = new Map(tx.sendingLimits.ofAccount(accountId).map((row) => [keyOf(ofRow(row)), row]));
      return found.flatMap(
        (each) => apply(tx, accountId, each, rows.get(keyOf(each)) ?? null, rows.size) ?? [],
      );
    }, accountId);
    for (const { limitId, level } of changed)
      log.warn(
        { accountId, limitId, level },
        level === null ? 'automatic limit ended' : 'automatic limit in force',
      );
  }

  /** Changes the limit of a stream in a unit of work. Returns what changed; null: nothing. */
  function apply(
    tx: Tables,
    accountId: string,
    { counts, countsFrom, ...of }: StreamCounts,
    row: SendingLimitRow | null,
    size: number,
  ): { limitId: string; level: LimitLevel | null } | null {
    // The account or the domain may have been deleted, or a person may have resumed the stream, since the counts were read.
    if (tx.accounts.get(accountId) === null || (row?.counts_from ?? null) !== countsFrom) return null;
    if (of.domainId !== '' && tx.domains.byId(of.domainId) === null) return null;
    const verdict = verdictOf(counts, of);
    const before = row?.level ?? null;
    const level = nextLevel(before, row, verdict, counts);
    const windowFrom = dayOf(clock.now()) - (WINDOW_DAYS - 1) * DAY;
    if (level === before) {
      // All counts of the window are later: the row is not needed.
      if (row !== null && level === null && Math.max(row.counts_from, row.since) < windowFrom)
        tx.sendingLimits.remove(row.limit_id);
      return null;
    }
    if (row === null && size >= MAX_LIMITS_OF_ACCOUNT) return null;
    const limitId = row?.limit_id ?? ids.make('limit');
    const figures =
      verdict === null ? row?.figures : JSON.stringify({ reason: verdict.signal, ...figuresOf(verdict) });
    if (figures === undefined) return null;
    const perMinute = level === 'slow' ? slowRate(counts) : null;
    const next: SendingLimitRow = {
      limit_id: limitId,
      account_id: accountId,
      stream: of.stream,
      domain_id: of.domainId,
      provider: of.provider,
      level,
      figures,
      per_minute: perMinute,
      since: clock.now(),
      counts_from: row?.counts_from ?? 0,
      seen_counts: row?.seen_counts ?? null,
    };
    // One that has ended stays for some time: owners are notified of its end.
    tx.sendingLimits.put(next);
    recordChange(tx, next, before);
    return { limitId, level };
  }

  function recordChange(tx: Tables, row: SendingLimitRow, before: LimitLevel | null): void {
    const of = { accountId: row.account_id, domainId: row.domain_id || null };
    const named = eventFields(tx, ofRow(row));
    const { limit_id: limitId, level, per_minute: perMinute } = row;
    if (level === 'slow' || level === 'pause') {
      const { reason, ...figures } = readFigures(row);
      const fields: EventFields['sending_limited'] = {
        limitId,
        level,
        ...named,
        reason,
        figures,
        ...(perMinute === null ? {} : { perMinute }),
        remedy: REMEDIES[reason],
      };
      recorder.account(tx, of, 'sending_limited', fields);
    } else if (before === 'slow' || before === 'pause') {
      const reason =
        config.reputation.limits === 'enforce'
          ? 'The rate is low again'
          : 'Automatic limits were switched off';
      recorder.account(tx, of, 'sending_resumed', { limitId, ...named, reason });
    }
  }

  /** The verdict with the level that applies to the stream. */
  function verdictOf(counts: RateCounts, { stream, provider }: LimitedStream): Verdict | null {
    const { limits: mode, transactional } = config.reputation;
    if (mode === 'off') return null;
    const signals: RateSignal[] =
      provider === '' ? ['hard_bounces', 'complaints', 'unsubscribes'] : ['blocks'];
    const verdict = judge(counts, configuredLimits(config), STREAM_SAMPLE, signals);
    if (verdict === null) return null;
    if (mode === 'report') return { ...verdict, level: 'notice' };
    const mayPause = provider === '' && (stream === 'mk' || transactional === 'pause');
    return verdict.level === 'pause' && !mayPause ? { ...verdict, level: 'slow' } : verdict;
  }

  /** A stop ends when a person resumes the stream; lower levels end when the rate is clearly below their limit. */
  function nextLevel(
    before: LimitLevel | null,
    row: SendingLimitRow | null,
    verdict: Verdict | null,
    counts: RateCounts,
  ): LimitLevel | null {
    const wanted = verdict?.level ?? null;
    if (before === null || row === null) return wanted;
    if (config.reputation.limits !== 'enforce') return wanted;
    if (wanted !== null && levelRank(wanted) >= levelRank(before)) return wanted;
    if (before === 'pause') return before;
    const { reason, limit } = readFigures(row);
    return stillApplies(counts, reason, limit) ? before : wanted;
  }

  /** Half of the average of the window, at least the configured rate. */
  function slowRate({ delivered, bounced, blocked }: RateCounts): number {
    const minutes = (clock.now() - dayOf(clock.now()) + (WINDOW_DAYS - 1) * DAY) / MINUTE;
    return Math.max(config.reputation.perMinute, Math.ceil((delivered + bounced + blocked) / minutes / 2));
  }

  const loop = createLoop({ name: 'sending-monitor', run, intervalMs: INTERVAL_MS, log });

  return {
    /** Notes accounts whose rates may have risen, when their counts are on disk. */
    counted: (counts: readonly CountedMessages[]): void => {
      for (const { outcome, outcomeClass, accountId } of counts) {
        const isBad =
          outcome === 'bounced' ||
          outcome === 'complained' ||
          outcome === 'unsubscribed' ||
          (outcome === 'deferred' && BLOCK_CLASSES.has(outcomeClass));
        if (isBad && due.size < MAX_DUE) due.add(accountId);
      }
    },
    /** Judges the accounts that are due; `start` does so every two seconds. */
    run,
    start: loop.start,
    stop: loop.stop,
    resume: async (
      accountId: string | null,
      limitId: string,
      resumption: { reason: string; by: string },
    ): Promise<SendingLimit | Refusal> => {
      const resumed = await resumeLimit({ clock, writer, recorder }, accountId, limitId, resumption);
      if (!isRefusal(resumed)) {
        log.warn(
          { accountId: resumed.accountId, limitId, by: resumption.by },
          'automatic limit ended by a person',
        );
        onChange();
      }
      return resumed;
    },
  };
}
