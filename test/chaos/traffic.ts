import { randomUUID } from 'node:crypto';
import type { ApiClient, SendBody } from '../support/api-client.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { pause } from './context.ts';
import type { Ledger } from './ledger.ts';

/**
 * An ordinary client: sends at a steady rate, each message to a different recipient and with a different Idempotency-Key.
 * After a refusal or a failed connection it sends again with the same key. After `stop` it drops sends that were refused
 * and repeats those whose outcome is unknown.
 */
export interface Traffic {
  /** The duration of the first request of each send, ms, with the time at which it began. */
  readonly latencies: { at: number; ms: number }[];
  /** Responses other than 200, by status; 0: no response. */
  readonly refusals: Map<number, number>;
  /** Sends without a conclusive response. */
  readonly unsettled: number;
  /** Starts no more sends. */
  stop(): void;
  /** Resolves when the outcome of each send is known. */
  settled(): Promise<void>;
}

export interface TrafficOptions {
  api: ApiClient;
  ledger: Ledger;
  from: string;
  perSecond: number;
  /** The recipient of the message with this number. */
  to: (n: number) => string;
  /** More fields of the request. */
  body?: SendBody;
  /** Ends with this many messages. */
  count?: number;
  /** Ends all sends. */
  signal: AbortSignal;
}

/** Temporary refusals. 409: the first request with the key is still in progress. */
export const TRANSIENT: ReadonlySet<number> = new Set([409, 429]);

const TICK_MS = 10;
/** Concurrent requests: a real client has a pool of connections, too. */
const MAX_CONCURRENT = 20;
const RESPONSE_TIMEOUT_MS = 15_000;
const RETRY_INTERVAL_MS = 150;

export function startTraffic(options: TrafficOptions): Traffic {
  const { api, ledger, from, perSecond, to, body = {}, count = Number.POSITIVE_INFINITY, signal } = options;
  const latencies: Traffic['latencies'] = [];
  const refusals = new Map<number, number>();
  const open = new Set<Promise<void>>();
  const began = performance.now();
  let stopped = false;
  let next = 0;

  const post = async (recipient: string, key: string): Promise<number> => {
    try {
      const answer = await api.call<{ messageId: string }>('POST', '/transactional/send', {
        body: { ...SHORT_MAIL, ...body, from, to: recipient },
        headers: { 'Idempotency-Key': key },
        signal: AbortSignal.any([signal, AbortSignal.timeout(RESPONSE_TIMEOUT_MS)]),
      });
      if (answer.status === 200) ledger.accept(recipient, answer.data.messageId);
      return answer.status;
    } catch (error) {
      // The request failed or timed out: a repetition with the key shows whether the message was accepted.
      if (error instanceof TypeError || (error instanceof DOMException && error.name !== 'SyntaxError'))
        return 0;
      throw error;
    }
  };
  const sendOne = async (recipient: string) => {
    const key = randomUUID();
    const at = Date.now();
    const requestedAt = performance.now();
    let unknown = false;
    for (let tries = 1; !signal.aborted; tries++) {
      const status = await post(recipient, key);
      if (tries === 1) latencies.push({ at, ms: performance.now() - requestedAt });
      if (status === 200) return;
      refusals.set(status, (refusals.get(status) ?? 0) + 1);
      // Neither 500 nor a missing response proves that nothing was stored.
      unknown ||= status === 0 || status === 500;
      const mayChange = status === 0 || status >= 500 || TRANSIENT.has(status);
      if (!mayChange || (stopped && !unknown)) return;
      await pause(RETRY_INTERVAL_MS, signal);
    }
  };
  const tick = () => {
    const due = Math.min(count, Math.floor(((performance.now() - began) / 1000) * perSecond));
    for (; next < due; next++) {
      // A client without a free connection does not queue: the send is skipped.
      if (open.size >= MAX_CONCURRENT) continue;
      const send = sendOne(to(next)).finally(() => open.delete(send));
      open.add(send);
    }
    if (stopped || signal.aborted || next >= count) clearInterval(timer);
  };
  const timer = setInterval(tick, TICK_MS);

  return {
    latencies,
    refusals,
    get unsettled() {
      return open.size;
    },
    stop: () => {
      stopped = true;
      clearInterval(timer);
    },
    settled: async () => {
      await Promise.all(open);
    },
  };
}

/** The value below which `share` of the values lie. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
