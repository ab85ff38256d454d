import type { Config } from '../../config/schema.ts';
import { type Clock, DAY, SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { EgressWarmupRow } from '../../store/egress/egress-standings.ts';
import type { Tables } from '../../store/tables.ts';
import type { EgressEntry, EgressPools, WarmupSetting } from '../routing/egress.ts';
import { type EgressUsage, MAX_PROVIDERS } from './usage.ts';
import { complaintFault, dayOf, deferralFault, positionOf, type WarmupPosition } from './warmup.ts';

/** Where the warm-ups of all addresses stand, with their steps back, which the table `egress_warmup` stores. */
export interface EgressWarmup {
  position(entry: string, setting: WarmupSetting, provider: string): WarmupPosition;
  /**
   * Evaluates the attempts of today after a new one. Returns the row to store when the warm-up goes back; null: it does
   * not. It takes effect immediately.
   */
  evaluate(entry: EgressEntry, provider: string): EgressWarmupRow | null;
  /** A row that `evaluate` returned is on disk. */
  stored(): void;
  /** Reads changed rows and evaluates complaints. */
  refresh(): Promise<void>;
}

export interface EgressWarmupDeps {
  config: Config;
  clock: Clock;
  monotonic: Clock;
  log: Log;
  tables: Tables;
  writer: Writer;
  pools: EgressPools;
  usage: EgressUsage;
}

const COMPLAINT_INTERVAL_MS = 10 * SECOND;

/**
 * Reads the stored steps now. `refresh` reads them again unless rows of `evaluate` are not stored yet, and evaluates
 * the complaints of today and yesterday every 10 s; without a configured warm-up it does nothing.
 */
export function createEgressWarmup(deps: EgressWarmupDeps): EgressWarmup {
  const { config, clock, monotonic, log, tables, writer, pools, usage } = deps;
  let rows = load();
  /** Rows that `evaluate` returned and that are not stored yet: the table is behind. */
  let unstored = 0;
  let complaintsAt = Number.NEGATIVE_INFINITY;

  function load(): Map<string, EgressWarmupRow> {
    return new Map(tables.egressWarmup.all().map((row) => [keyOf(row.entry, row.provider), row]));
  }

  function rowOf(entry: string, { started }: WarmupSetting, provider: string): EgressWarmupRow | undefined {
    if (rows.size === 0) return undefined;
    const row = rows.get(keyOf(entry, provider));
    return row?.started === started ? row : undefined;
  }

  function position(entry: string, setting: WarmupSetting, provider: string): WarmupPosition {
    const shifts = [rowOf(entry, setting, ''), rowOf(entry, setting, provider)];
    return positionOf(setting, config.delivery.warmup.schedule, shifts, clock.now());
  }

  /** One step back a day at most. */
  function stepBack(entry: EgressEntry, provider: string, reason: string): EgressWarmupRow | null {
    const { name, warmup: setting } = entry;
    if (name === null || setting === undefined) return null;
    const before = rowOf(name, setting, provider);
    const now = clock.now();
    if (before !== undefined && before.reason !== '' && dayOf(before.changed_at) === dayOf(now)) return null;
    const { day, cap } = position(name, setting, provider);
    if (cap === null || day === 0) return null;
    // On the first days the next day repeats the first one.
    const shift = (before?.shift ?? 0) + Math.min(config.delivery.warmup.stepBack, day);
    const row = {
      entry: name,
      provider,
      started: setting.started,
      shift,
      finished: 0,
      changed_at: now,
      reason,
    } as const;
    rows.set(keyOf(name, provider), row);
    const next = position(name, setting, provider);
    log.warn(
      { entry: name, provider, reason, fromDay: day, toDay: next.day, cap: next.cap },
      'warm-up stepped back',
    );
    return row;
  }

  async function evaluateComplaints(): Promise<void> {
    const today = usage.today();
    const changed: EgressWarmupRow[] = [];
    for (const entry of pools.all()) {
      const { name } = entry;
      if (name === null || entry.warmup === undefined) continue;
      const before = new Map(
        tables.egressCounts.ofDay(today - DAY, name, MAX_PROVIDERS + 1).map((row) => [row.provider, row]),
      );
      for (const row of tables.egressCounts.ofDay(today, name, MAX_PROVIDERS + 1)) {
        const { provider } = row;
        const delivered = row.delivered + (before.get(provider)?.delivered ?? 0);
        const complained = row.complained + (before.get(provider)?.complained ?? 0);
        const reason = complaintFault({ delivered, complained }, config.delivery.warmup);
        const back = reason === null ? null : stepBack(entry, provider, reason);
        if (back !== null) changed.push(back);
      }
    }
    if (changed.length === 0) return;
    await writer.run((all) => {
      for (const row of changed) all.egressWarmup.put(row);
    });
  }

  return {
    position,
    evaluate: (entry, provider) => {
      if (entry.name === null || entry.warmup === undefined) return null;
      const { transactional, marketing, throttled, refused } = usage.of(entry.name, provider);
      const attempts = transactional + marketing;
      const reason = deferralFault({ attempts, throttled, refused }, config.delivery.warmup);
      const row = reason === null ? null : stepBack(entry, provider, reason);
      if (row !== null) unstored++;
      return row;
    },
    stored: () => {
      unstored--;
    },
    refresh: async () => {
      if (!pools.all().some(({ warmup }) => warmup !== undefined)) return;
      if (unstored === 0) rows = load();
      if (monotonic.now() - complaintsAt < COMPLAINT_INTERVAL_MS) return;
      complaintsAt = monotonic.now();
      await evaluateComplaints();
    },
  };
}

function keyOf(entry: string, provider: string): string {
  return `${entry} ${provider}`;
}
