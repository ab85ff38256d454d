import { DAY } from '../../core/clock.ts';
import type { EgressWarmupRow } from '../../store/egress/egress-standings.ts';
import type { WarmupSetting } from '../routing/egress.ts';

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

export type WarmupShift = Pick<EgressWarmupRow, 'shift' | 'finished' | 'reason'>;

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
export const MIN_ATTEMPTS = 20;
export const MIN_COMPLAINTS = 3;

export interface WarmupLimits {
  /** Days. */
  stepBack: number;
  deferralPercent: number;
  complaintPercent: number;
}

/** Why a day's attempts require a step back; null: they do not. */
export function deferralFault(
  { attempts, throttled, refused }: { attempts: number; throttled: number; refused: number },
  { deferralPercent }: WarmupLimits,
): string | null {
  const bad = throttled + refused;
  if (attempts < MIN_ATTEMPTS || bad * 100 <= attempts * deferralPercent) return null;
  return `${bad} of ${attempts} messages throttled or refused (limit ${deferralPercent} %)`;
}

/** Why the complaints of two days require a step back; null: they do not. */
export function complaintFault(
  { delivered, complained }: { delivered: number; complained: number },
  { complaintPercent }: WarmupLimits,
): string | null {
  if (complained < MIN_COMPLAINTS || complained * 100 <= delivered * complaintPercent) return null;
  return `${complained} complaints about ${delivered} delivered messages (limit ${complaintPercent} %)`;
}
