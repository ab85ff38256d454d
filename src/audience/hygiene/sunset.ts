import { DAY, HOUR, SECOND } from '../../core/clock.ts';
import { createLoop } from '../../core/concurrency/loop.ts';
import type { OnSuppressionChange, Recorder } from '../../events/record.ts';
import type { KnownContact } from '../../store/contacts/contacts.ts';
import type { SunsetRow } from '../../store/contacts/sunset.ts';
import type { Context } from '../../store/context.ts';
import { createPortions } from '../../store/maintenance/portions.ts';
import type { Tables } from '../../store/tables.ts';
import { addOptOut } from '../opt-out.ts';
import { countSelected, NOTHING_EXCLUDED, nextSelected, type Selection } from '../segments/evaluate.ts';
import type { Inactive, SegmentFilter } from '../segments/filter.ts';
import { matchesContact } from '../segments/match.ts';
import { enterSequences } from '../sequences/entries.ts';

/*
 * The sunset rule of an account: marketing mail ends to contacts that have done nothing with it for months. A contact that
 * matches is found first: `sunset_at` is set, and the event `sunset` triggers sequences, which may ask whether it still wants the
 * mail. What the contact does then removes the time. If it does nothing, marketing mail ends some days later as by an opt-out,
 * with the method `sunset`. Both happen to a share of the contacts on each day only. All state is in the rows: each run begins
 * with the first contact, also after a crash.
 */

/** Share of the contacts that the rule finds on a day, and whose mail it ends on a day. */
const DAILY_SHARE = 0.05;
/** The event that triggers sequences when a contact is found. */
export const SUNSET_EVENT = 'sunset';
export const MAX_NOTICE_DAYS = 90;
const BATCH_SIZE = 500;
const INTERVAL_MS = 6 * HOUR;
const RETRY_MS = 10 * SECOND;

export interface SunsetInput extends Inactive {
  enabled: boolean;
  noticeDays: number;
}

/** The rule of an account that has stored none. */
export const DEFAULT_RULE: SunsetInput = { enabled: false, months: 12, messages: 10, noticeDays: 30 };

/** The rule with what it does. */
export interface Sunset extends SunsetInput {
  /** The contacts that it finds: a filter for segments, campaigns and sequences. */
  filter: SegmentFilter;
  /** Contacts that match now. */
  matching: number;
  /** Contacts that it may find on a day, and whose mail it may end. */
  perDay: number;
  noticedToday: number;
  endedToday: number;
  ended: number;
}

/** Starts nothing; the loop runs each six hours, and after a change of a rule. */
export function createSunset(
  { tables, reader, writer, clock, log }: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'log'>,
  {
    recorder,
    onSuppressionChange,
  }: { recorder: Pick<Recorder, 'optedOut'>; onSuppressionChange: OnSuppressionChange },
) {
  const portions = createPortions({ writer, share: 'sunset' });
  let isStopping = false;

  const selection = (accountId: string, inactive: Inactive): Selection => ({
    ...NOTHING_EXCLUDED,
    accountId,
    filters: [JSON.stringify(sunsetFilter(inactive))],
    now: clock.now(),
  });

  /** Whether the rule may still find a contact, or end its mail, today. */
  function hasWork(accountId: string): SunsetRow | null {
    const rule = tables.sunset.get(accountId);
    if (rule?.enabled !== 1) return null;
    const { noticed_today: noticed, ended_today: ended } = onDay(rule, clock.now());
    const limit = perDay(tables, accountId);
    return noticed < limit || ended < limit ? rule : null;
  }

  async function apply(accountId: string): Promise<void> {
    const last = Number.MAX_SAFE_INTEGER;
    for (let after = 0; after < last; ) {
      const rule = hasWork(accountId);
      if (rule === null || isStopping) return;
      const range = { after, last };
      const found = await reader.query(
        accountId,
        nextSelected,
        selection(accountId, rule),
        range,
        BATCH_SIZE,
      );
      let at = 0;
      await portions.run((tx, rows) => {
        const batch = found.seqs.slice(at, at + rows);
        for (const seq of batch) applyTo(tx, accountId, seq);
        at += batch.length;
        return { rows: batch.length, isDone: at >= found.seqs.length };
      });
      after = found.upTo;
    }
  }

  /** Finds a contact, or ends its marketing mail, in a unit of work, unless the limit of the day is reached. */
  function applyTo(tx: Tables, accountId: string, seq: number): void {
    const now = clock.now();
    const stored = tx.sunset.get(accountId);
    const contact = tx.contacts.bySeq(seq);
    if (stored?.enabled !== 1 || contact?.account_id !== accountId || contact.email_hash === null) return;
    if (contact.paused_until !== null || !matchesContact(tx, contact, sunsetFilter(stored), now)) return;
    const rule = onDay(stored, now);
    const limit = perDay(tx, accountId);
    const before = rule.noticed_today + rule.ended_today;
    let foundAt = tx.engagement.get(seq)?.sunset_at ?? null;
    if (foundAt === null || foundAt < rule.enabled_at) {
      if (rule.noticed_today >= limit) return;
      rule.noticed_today++;
      foundAt = now;
      tx.engagement.setSunset(seq, now);
      const occurrence = `event:${SUNSET_EVENT}:${now}`;
      enterSequences(tx, contact, { kind: 'event', key: SUNSET_EVENT, occurrence }, now);
    }
    if (foundAt + rule.notice_days * DAY <= now && rule.ended_today < limit) {
      rule.ended_today++;
      rule.ended++;
      end(tx, { ...contact, email_hash: contact.email_hash }, rule, now);
    }
    if (rule.noticed_today + rule.ended_today > before) tx.sunset.put(rule);
  }

  function end(
    tx: Tables,
    contact: KnownContact & { email_hash: string },
    rule: SunsetRow,
    now: number,
  ): void {
    const { account_id: accountId, email_hash: identifier, email } = contact;
    const suppression = {
      account_id: accountId,
      recipient_hash: identifier,
      stream: 'mk',
      email,
      message_seq: null,
      created_at: now,
    } as const;
    const added = addOptOut(tx, suppression, {
      method: 'sunset',
      provenance: { by: 'sunset rule', ipAddress: null, userAgent: null, at: now },
      details: `${rule.messages} messages or more in ${rule.months} months or more without a sign of the recipient`,
    });
    if (!added) return;
    onSuppressionChange(tx, accountId, identifier);
    recorder.optedOut(tx, {
      accountId,
      domainId: null,
      fields: {
        method: 'sunset',
        scope: 'marketing',
        contactIdentifier: identifier,
        useCase: 'mk',
        ...(email === null ? {} : { recipient: email }),
      },
    });
  }

  async function round(): Promise<void> {
    for (const accountId of tables.sunset.enabled()) {
      if (isStopping) return;
      try {
        await apply(accountId);
      } catch (error) {
        // The rules of other accounts are still applied.
        log.error(
          { err: error, accountId },
          'sunset rule could not be applied; trying again in the next round',
        );
      }
    }
  }

  const loop = createLoop({
    name: 'contact-sunset',
    run: round,
    intervalMs: INTERVAL_MS,
    retryMs: RETRY_MS,
    log,
  });

  return {
    /** The rule of an account. `inactive`: counts contacts for these values in place of its own. */
    get: async (accountId: string, inactive: Partial<Inactive> = {}): Promise<Sunset> => {
      const stored = tables.sunset.get(accountId);
      const rule = stored === null ? DEFAULT_RULE : inputOf(stored);
      const of = { months: inactive.months ?? rule.months, messages: inactive.messages ?? rule.messages };
      const { count } = await reader.query(accountId, countSelected, selection(accountId, of), 0);
      const counts = stored === null ? null : onDay(stored, clock.now());
      return {
        ...rule,
        filter: sunsetFilter(of),
        matching: count,
        perDay: perDay(tables, accountId),
        noticedToday: counts?.noticed_today ?? 0,
        endedToday: counts?.ended_today ?? 0,
        ended: counts?.ended ?? 0,
      };
    },
    /** Stores the rule. Contacts that it found while it was on before are found again, with the whole time of notice. */
    put: async (accountId: string, { enabled, months, messages, noticeDays }: SunsetInput): Promise<void> => {
      await writer.run((tx) => {
        const now = clock.now();
        const before = tx.sunset.get(accountId) ?? { ...NO_COUNTS, enabled: 0, enabled_at: now };
        tx.sunset.put({
          ...before,
          account_id: accountId,
          enabled: enabled ? 1 : 0,
          months,
          messages,
          notice_days: noticeDays,
          enabled_at: enabled && before.enabled === 0 ? now : before.enabled_at,
          updated_at: now,
        });
      }, accountId);
      loop.wake();
    },
    /** What the loop runs. */
    round,
    start: (): void => loop.start(),
    stop: async (): Promise<void> => {
      isStopping = true;
      portions.stop();
      await loop.stop();
    },
  };
}

export type SunsetRules = ReturnType<typeof createSunset>;

const NO_COUNTS = { day: 0, noticed_today: 0, ended_today: 0, ended: 0 };

/** Contacts with consent that may receive marketing mail and do nothing with it. */
function sunsetFilter({ months, messages }: Inactive): SegmentFilter {
  return {
    all: [
      { field: 'globalStatus', op: 'is', value: 'active' },
      { field: 'consentMethod', op: 'exists' },
      { inactive: { months, messages } },
    ],
  };
}

function inputOf({ enabled, months, messages, notice_days: noticeDays }: SunsetRow): SunsetInput {
  return { enabled: enabled === 1, months, messages, noticeDays };
}

/** The rule with the counts of the day of `now`. */
function onDay(rule: SunsetRow, now: number): SunsetRow {
  const day = now - (now % DAY);
  return rule.day === day ? { ...rule } : { ...rule, day, noticed_today: 0, ended_today: 0 };
}

function perDay(tables: Tables, accountId: string): number {
  return Math.max(1, Math.ceil(tables.accountLimits.count('contacts', accountId) * DAILY_SHARE));
}
