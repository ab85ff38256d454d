import type { Config } from '../config/schema.ts';
import { DAY, SECOND } from '../core/clock.ts';
import { KNOWN_PROVIDERS } from '../mail/providers.ts';
import type { Context } from '../store/context.ts';
import { type EgressCounts, emptyCounts } from '../store/egress/egress-counts.ts';
import type { EgressWarmupRow } from '../store/egress/egress-health.ts';
import { OTHER_PROVIDER } from '../store/messages/hourly-counts.ts';
import type { Tables } from '../store/tables.ts';
import type { EgressEntry, EgressPools, WarmupSetting } from './egress-pools.ts';

/*
 * The warm-up of a source address: how many messages each mailbox provider receives from it on a day. Days are those of
 * UTC. Pure.
 */

/** Where the warm-up of an address at a provider is. */
export interface WarmupPosition {
  /** Day of the warm-up at this provider, from 1; 0: it has not begun. */
  day: number;
  /** Step of the schedule, from 1; null: the warm-up has not begun, or is finished. */
  step: number | null;
  /** Messages of this day; null: unlimited. */
  cap: number | null;
  /** Why the day differs from that of the calendar; null: it does not. */
  reason: string | null;
}

type WarmupShift = Pick<EgressWarmupRow, 'shift' | 'finished' | 'reason'>;

/** Epoch ms at which the day (UTC) of `at` begins. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY) * DAY;
}

/** Day of the warm-up by the calendar, from 1; 0 or less: it has not begun. */
export function calendarDay({ started }: Pick<WarmupSetting, 'started'>, at: number): number {
  return Math.floor((at - Date.parse(started)) / DAY) + 1;
}

/** Where the warm-up stands at `at`. `shifts`: for all providers, and for this one. */
export function positionOf(
  setting: WarmupSetting,
  schedule: readonly number[],
  shifts: readonly (WarmupShift | undefined)[],
  at: number,
): WarmupPosition {
  const known = shifts.filter((row) => row !== undefined);
  const reason = known.findLast((row) => row.reason !== '')?.reason ?? null;
  const calendar = calendarDay(setting, at);
  if (calendar < 1) return { day: 0, step: null, cap: 0, reason: `begins on ${setting.started}` };
  const day = Math.max(1, calendar - known.reduce((sum, { shift }) => sum + shift, 0));
  // A row of one provider decides whether the warm-up at it is finished.
  if (day > setting.days || known.at(-1)?.finished === 1) return { day, step: null, cap: null, reason };
  // A schedule with another number of steps than days is stretched or shortened; its last day is the last step.
  const step = Math.max(1, Math.ceil((day * schedule.length) / setting.days));
  return { day, step, cap: schedule[step - 1] ?? null, reason };
}

/**
 * How many messages of the day marketing mail leaves to transactional mail: as many as there were on the day before, at
 * most half of the limit.
 */
export function reservedForTransactional(
  cap: number,
  { transactional, transactionalBefore }: { transactional: number; transactionalBefore: number },
): number {
  return Math.max(0, Math.min(Math.floor(cap / 2), transactionalBefore) - transactional);
}

/** Attempts of a day before its shares count. */
const MIN_ATTEMPTS = 20;
const MIN_COMPLAINTS = 3;

type WarmupLimits = Config['delivery']['warmup'];

/** Why a day's attempts require a step back; null: they do not. */
export function deferralFault(
  { attempts, throttled, refused }: { attempts: number; throttled: number; refused: number },
  { deferralPercent }: Pick<WarmupLimits, 'deferralPercent'>,
): string | null {
  const bad = throttled + refused;
  if (attempts < MIN_ATTEMPTS || bad * 100 <= attempts * deferralPercent) return null;
  return `${bad} of ${attempts} messages throttled or refused (limit ${deferralPercent} %)`;
}

/** Why the complaints of two days require a step back; null: they do not. */
export function complaintFault(
  { delivered, complained }: { delivered: number; complained: number },
  { complaintPercent }: Pick<WarmupLimits, 'complaintPercent'>,
): string | null {
  if (complained < MIN_COMPLAINTS || complained * 100 <= delivered * complaintPercent) return null;
  return `${complained} complaints about ${delivered} delivered messages (limit ${complaintPercent} %)`;
}

/** What an address has sent to a provider on a day, and what is in flight. */
interface Usage extends EgressCounts {
  inFlight: number;
}

/** Providers of an entry and day with counts of their own: recipients' domains are chosen by callers. */
export const MAX_PROVIDERS = 1000;

interface EntryUsage {
  today: Map<string, Usage>;
  /** Transactional messages. */
  yesterday: Map<string, number>;
}

export type EgressUsage = ReturnType<typeof createEgressUsage>;

/**
 * The counts of today in memory, which the table `egress_counts` stores with the outcomes: after a crash only messages
 * that were in flight are missing. The owner adds to a `Usage` what it records. Reads the counts of an entry from the
 * database at its first use on a day (UTC), with those of the day before, and drops all of them when the day changes.
 */
export function createEgressUsage({ clock, tables }: Pick<Context, 'clock' | 'tables'>) {
  let day = Number.NaN;
  const entries = new Map<string, EntryUsage>();

  /** Epoch ms at which the current day begins. Reads the counts of a new day. */
  function today(): number {
    const now = dayOf(clock.now());
    if (now !== day) {
      day = now;
      entries.clear();
    }
    return day;
  }

  function load(entry: string): EntryUsage {
    const at = today();
    const known = entries.get(entry);
    if (known !== undefined) return known;
    const rows = tables.egressCounts.ofDay(at, entry, MAX_PROVIDERS + 1);
    const yesterday = tables.egressCounts.ofDay(at - DAY, entry, MAX_PROVIDERS + 1);
    const loaded = {
      today: new Map(rows.map(({ provider, ...counts }) => [provider, { ...counts, inFlight: 0 }])),
      yesterday: new Map(yesterday.map(({ provider, transactional }) => [provider, transactional])),
    };
    entries.set(entry, loaded);
    return loaded;
  }

  /** The provider that a message counts to: the shared one when the entry has too many others. */
  function countedAs({ name, warmup }: EgressEntry, provider: string): string {
    if (name === null) return provider;
    // Without a warm-up no decision depends on the counts of small providers.
    if (warmup === undefined) return KNOWN_PROVIDERS.has(provider) ? provider : OTHER_PROVIDER;
    const known = load(name).today;
    return known.has(provider) || known.size < MAX_PROVIDERS ? provider : OTHER_PROVIDER;
  }

  /** `provider`: as `countedAs` returns it. */
  function of(entry: string, provider: string): Usage {
    const known = load(entry).today;
    let usage = known.get(provider);
    if (usage === undefined) {
      usage = { ...emptyCounts(), inFlight: 0 };
      known.set(provider, usage);
    }
    return usage;
  }

  return {
    today,
    countedAs,
    of,
    /** Usage of an entry by provider. */
    all: (entry: string): ReadonlyMap<string, Usage> => load(entry).today,
    /** Transactional messages of the day before. */
    transactionalBefore: (entry: string, provider: string): number =>
      load(entry).yesterday.get(provider) ?? 0,
  };
}

const COMPLAINT_INTERVAL_MS = 10 * SECOND;
/** In the reason of a step that the operator ordered. */
export const BY_OPERATOR = 'by the operator';

/** Use of a warm-up on the current day. */
export interface WarmupUse {
  entry: string;
  provider: string;
  used: number;
  cap: number;
}

/** Where the warm-up of an entry at a provider stands at `at`, with its steps in the table `egress_warmup`. */
export function storedPosition(
  { config, tables }: Pick<Context, 'config'> & { tables: Pick<Tables, 'egressWarmup'> },
  entry: string,
  setting: WarmupSetting,
  provider: string,
  at: number,
): WarmupPosition {
  const shifts = ['', provider].map((each) => currentStep(tables, entry, setting, each));
  return positionOf(setting, config.delivery.warmup.schedule, shifts, at);
}

/** The row of an entry and a provider, unless it belongs to an earlier warm-up. */
function currentStep(
  { egressWarmup }: Pick<Tables, 'egressWarmup'>,
  entry: string,
  { started }: WarmupSetting,
  provider: string,
): EgressWarmupRow | undefined {
  const row = egressWarmup.get(entry, provider);
  return row?.started === started ? row : undefined;
}

/** The warm-ups of all addresses: where they stand, and what sets them back. */
export function createWarmup(
  { config, clock, monotonic, log, tables, writer }: WarmupContext,
  { pools, usage }: { pools: EgressPools; usage: EgressUsage },
) {
  let complaintsAt = Number.NEGATIVE_INFINITY;
  let changedAt = tables.egressWarmup.changedAt();

  const position = (entry: string, setting: WarmupSetting, provider: string) =>
    storedPosition({ config, tables }, entry, setting, provider, clock.now());

  /** Whether it went a step back today: it does so once a day at most. */
  function hasSteppedBack(tx: Tables, name: string, setting: WarmupSetting, provider: string): boolean {
    const step = currentStep(tx, name, setting, provider);
    return step !== undefined && step.reason !== '' && dayOf(step.changed_at) === dayOf(clock.now());
  }

  function stepBack(tx: Tables, { name, warmup: setting }: EgressEntry, provider: string, reason: string) {
    if (name === null || setting === undefined) return;
    if (hasSteppedBack(tx, name, setting, provider)) return;
    const before = currentStep(tx, name, setting, provider);
    const now = clock.now();
    const { day, cap } = position(name, setting, provider);
    if (cap === null || day === 0) return;
    // On the first days the next day repeats the first one.
    const shift = (before?.shift ?? 0) + Math.min(config.delivery.warmup.stepBack, day);
    const { started } = setting;
    tx.egressWarmup.put({ entry: name, provider, started, shift, finished: 0, changed_at: now, reason });
    const next = position(name, setting, provider);
    log.warn(
      { entry: name, provider, reason, fromDay: day, toDay: next.day, cap: next.cap },
      'warm-up stepped back',
    );
  }

  /** Steps back if too many attempts of today were throttled or refused. Call when an attempt was counted. */
  function evaluate(tx: Tables, entry: EgressEntry, provider: string): void {
    if (entry.name === null || entry.warmup === undefined) return;
    const { transactional, marketing, throttled, refused } = usage.of(entry.name, provider);
    const attempts = transactional + marketing;
    const reason = deferralFault({ attempts, throttled, refused }, config.delivery.warmup);
    if (reason !== null) stepBack(tx, entry, provider, reason);
  }

  /** The providers at which an entry has too many complaints today and yesterday, and was not set back for it, with the reason. */
  function complaintsOf({ name, warmup: setting }: EgressEntry): { provider: string; reason: string }[] {
    if (name === null || setting === undefined) return [];
    const [today = [], yesterday = []] = [usage.today(), usage.today() - DAY].map((day) =>
      tables.egressCounts.ofDay(day, name, MAX_PROVIDERS + 1),
    );
    const before = new Map(yesterday.map((row) => [row.provider, row]));
    return today.flatMap((row) => {
      const { provider } = row;
      const delivered = row.delivered + (before.get(provider)?.delivered ?? 0);
      const complained = row.complained + (before.get(provider)?.complained ?? 0);
      const reason = complaintFault({ delivered, complained }, config.delivery.warmup);
      return reason === null || hasSteppedBack(tables, name, setting, provider) ? [] : [{ provider, reason }];
    });
  }

  /** Evaluates the complaints of today and yesterday every 10 s. */
  async function refresh(): Promise<void> {
    if (monotonic.now() - complaintsAt < COMPLAINT_INTERVAL_MS) return;
    complaintsAt = monotonic.now();
    const faults = pools.all().flatMap((entry) => complaintsOf(entry).map((fault) => ({ entry, ...fault })));
    if (faults.length === 0) return;
    await writer.run((tx) => {
      for (const { entry, provider, reason } of faults) stepBack(tx, entry, provider, reason);
    });
  }

  /** Whether the operator has changed a warm-up since the last call, in this or another process. */
  function noticeChange(): boolean {
    const before = changedAt;
    changedAt = tables.egressWarmup.changedAt();
    if (changedAt === before) return false;
    const rows = tables.egressWarmup.all();
    return rows.some(({ changed_at, reason }) => changed_at > before && reason.includes(BY_OPERATOR));
  }

  /** Warm-ups with a limit today and mail, those with the most messages first. */
  function use(): WarmupUse[] {
    const all: WarmupUse[] = [];
    for (const { name, warmup: setting } of pools.all()) {
      if (name === null || setting === undefined) continue;
      for (const [provider, { transactional, marketing }] of usage.all(name)) {
        const { cap } = position(name, setting, provider);
        if (cap !== null) all.push({ entry: name, provider, used: transactional + marketing, cap });
      }
    }
    return all.sort((a, b) => b.used - a.used);
  }

  return { position, evaluate, refresh, noticeChange, use };
}

type WarmupContext = Pick<Context, 'config' | 'clock' | 'monotonic' | 'log' | 'tables' | 'writer'>;
