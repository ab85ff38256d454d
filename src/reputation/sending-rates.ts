import { MINUTE, SECOND } from '../core/clock.ts';
import { createTokenBucket, type TokenBucket } from '../core/token-bucket.ts';
import { providerOf } from '../mail/providers.ts';
import type { Context } from '../store/context.ts';
import type { Stream } from '../store/domains/domains.ts';

/** The mail that a limit is about. */
interface LimitedMail {
  account_id: string;
  domain_id: string;
  use_case: Stream;
  destination: string;
}

/** Limits in memory: the newest; older ones slow nothing. */
const MAX_APPLIED = 5000;

export type SendingRates = ReturnType<typeof createSendingRates>;

/**
 * The automatic limits that slow or stop mail, as delivery applies them: a copy of the table, which `refresh` reads again.
 * A limit that slows has a rate. Stopped mail is held by its row in the queue
 * (sending/checks), and only must not be leased when it is accepted. Without limits a lookup costs nothing.
 */
export function createSendingRates({ tables, monotonic }: Pick<Context, 'tables' | 'monotonic'>) {
  /** By account, stream, domain and provider; null: stopped. */
  let limits = new Map<string, { perMinute: number; tokens: TokenBucket } | null>();

  /** The accounts and streams of `limits`. */
  let streams: ReadonlySet<string> = new Set();

  function refresh(): void {
    const next: typeof limits = new Map();
    for (const row of tables.sendingLimits.applied(MAX_APPLIED)) {
      const key = keyOf(row.account_id, row.stream, row.domain_id, row.provider);
      const perMinute = row.level === 'slow' ? row.per_minute : null;
      const known = limits.get(key);
      if (perMinute === null) next.set(key, null);
      else if (known?.perMinute === perMinute) next.set(key, known);
      else {
        const perSecond = (perMinute * SECOND) / MINUTE;
        // The queue is scanned once per second.
        const burst = Math.max(1, 2 * perSecond);
        const tokens = createTokenBucket(monotonic, { burst, perSecond });
        tokens.charge(burst - 1);
        next.set(key, { perMinute, tokens });
      }
    }
    limits = next;
    streams = new Set([...next.keys()].map((key) => key.split(' ', 2).join(' ')));
  }

  function of({ account_id: account, use_case: stream, domain_id: domain, destination }: LimitedMail) {
    const keys = [
      keyOf(account, stream, '', ''),
      keyOf(account, stream, domain, ''),
      keyOf(account, stream, domain, providerOf(destination)),
    ];
    return keys.flatMap((key) => limits.get(key) ?? []);
  }

  return {
    refresh,
    /** Milliseconds until the limits of a message allow it; 0: now. */
    waitMs: (mail: LimitedMail): number =>
      limits.size === 0 ? 0 : Math.max(0, ...of(mail).map(({ tokens }) => tokens.waitMs(1))),
    /** Counts a message toward its limits. */
    take: (mail: LimitedMail): void => {
      if (limits.size > 0) for (const { tokens } of of(mail)) tokens.charge(1);
    },
    /** The lowest rate of the limits of a message; null: it is not slowed. */
    perMinuteOf: (mail: LimitedMail): number | null => {
      const rates = limits.size === 0 ? [] : of(mail).map(({ perMinute }) => perMinute);
      return rates.length === 0 ? null : Math.min(...rates);
    },
    /** Whether mail of the account is slowed or stopped, so that new mail waits in the queue. */
    mayLimit: ({ account_id, use_case }: Pick<LimitedMail, 'account_id' | 'use_case'>): boolean =>
      streams.size > 0 && streams.has(`${account_id} ${use_case}`),
  };
}

function keyOf(account: string, stream: Stream, domain: string, provider: string): string {
  return `${account} ${stream} ${domain} ${provider}`;
}
