import { randomUUID } from 'node:crypto';
import type { ApiClient, SendBody } from '../support/api-client.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import type { Ledger } from './ledger.ts';
import { pause } from './stage.ts';

/**
 * An ordinary client: sends at a steady rate, each message to a recipient of its own and with an Idempotency-Key
 * of its own. A refusal or a dead connection is answered by asking again with the same key. When it is told to
 * stop it gives up what was refused, and goes on asking where the outcome is unknown.
 */
export interface Traffic {
  /** How long each send took that the first request settled, ms, with the time at which it was due. */
  readonly latencies: { at: number; ms: number }[];
  /** Answers other than 200, by status; 0: no answer. */
  readonly refusals: Map<number, number>;
  /** Sends without an answer that settles them. */
  readonly unsettled: number;
  /** Begins no more sends. */
  stop(): void;
  /** Resolves once every send's outcome is known. */
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
  /** Gives up everything. */
  signal: AbortSignal;
}

/** Refusals that say: not now. 409 answers a key whose first request is still at work. */
export const TRANSIENT: ReadonlySet<number> = new Set([409, 429]);

const TICK_MS = 10;
/** Requests at once: a real client has a pool of connections, too. */
const AT_ONCE = 20;
const ANSWER_MS = 15_000;
const AGAIN_MS = 150;

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
        signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
      });
      if (answer.status === 200) ledger.accept(recipient, answer.data.messageId);
      return answer.status;
    } catch (error) {
      // fetch failed, or was given up: whether the message was accepted, the key will tell.
      if (error instanceof TypeError || (error instanceof DOMException && error.name !== 'SyntaxError'))
        return 0;
      throw error;
    }
  };
  const sendOne = async (recipient: string) => {
    const key = randomUUID();
    const at = Date.now();
    const asked = performance.now();
    let unknown = false;
    for (let tries = 1; !signal.aborted; tries++) {
      const status = await post(recipient, key);
      if (tries === 1) latencies.push({ at, ms: performance.now() - asked });
      if (status === 200) return;
      refusals.set(status, (refusals.get(status) ?? 0) + 1);
      // 500 does not say that nothing was stored, neither does no answer at all.
      unknown ||= status === 0 || status === 500;
      const mayChange = status === 0 || status >= 500 || TRANSIENT.has(status);
      if (!mayChange || (stopped && !unknown)) return;
      await pause(AGAIN_MS, signal);
    }
  };
  const tick = () => {
    const due = Math.min(count, Math.floor(((performance.now() - began) / 1000) * perSecond));
    for (; next < due; next++) {
      // A client without a free connection does not queue: what was due is left out.
      if (open.size >= AT_ONCE) continue;
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
