import { Agent } from 'undici';
import { SECOND } from '../core/clock.ts';
import { failureOf } from './failure.ts';
import { createReach, type ReachSettings } from './reach.ts';

/** One call of an endpoint: a POST, and what came of it. It decides nothing; it never follows a redirect. */
export interface WebhookCall {
  url: string;
  headers: Record<string, string>;
  body: string;
}

export type CallResult =
  | { kind: 'answered'; status: number; body: string; retryAfter: string | undefined }
  /** `why` is for the account, `detail` for the operator's log alone. */
  | { kind: 'unanswered'; why: string; detail?: string };

export interface WebhookCaller {
  /** Never rejects. Null: it was called off by `signal` before an answer came. */
  call(call: WebhookCall, signal: AbortSignal): Promise<CallResult | null>;
  close(): Promise<void>;
}

export interface CallerSettings extends Omit<ReachSettings, 'timeoutMs'> {
  userAgent: string;
  /** Ms for one call in all; 15 s (contract §7) unless told. */
  timeoutMs?: number;
}

const ANSWER_MS = 15 * SECOND;

/** The answer's body that is kept, and that is read at all: more than that is not worth a connection. */
const KEPT_BYTES = 1024;
const READ_BYTES = 64 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;

export function createWebhookCaller(settings: CallerSettings): WebhookCaller {
  const { timeoutMs = ANSWER_MS, userAgent } = settings;
  // As many connections as there are calls: how many that may be, the sender says for each webhook.
  const agent = new Agent({
    connect: createReach({ ...settings, timeoutMs }),
    maxHeaderSize: MAX_HEADER_BYTES,
    // One deadline over all of it, below.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  return {
    call: async ({ url, headers, body }, signal) => {
      const ended = new AbortController();
      const giveUp = () => ended.abort();
      const deadline = setTimeout(giveUp, timeoutMs);
      signal.addEventListener('abort', giveUp, { once: true });
      if (signal.aborted) giveUp();
      const target = new URL(url);
      try {
        const response = await agent.request({
          origin: target.origin,
          path: target.pathname + target.search,
          method: 'POST',
          headers: { 'content-type': 'application/json', 'user-agent': userAgent, ...headers },
          body,
          signal: ended.signal,
        });
        return {
          kind: 'answered',
          status: response.statusCode,
          body: await beginningOf(response.body),
          retryAfter: oneOf(response.headers['retry-after']),
        };
      } catch (error) {
        if (signal.aborted) return null;
        if (ended.signal.aborted)
          return { kind: 'unanswered', why: `no answer within ${timeoutMs / SECOND} s` };
        return {
          kind: 'unanswered',
          ...failureOf(error, target.hostname, settings.allowPrivateNetworks),
        };
      } finally {
        clearTimeout(deadline);
        signal.removeEventListener('abort', giveUp);
      }
    },
    close: () => agent.destroy(),
  };
}

/**
 * The first KiB as text. The rest is read and forgotten within bounds, so that the connection can be used
 * again. The answer counts even when its body does not come to its end.
 */
async function beginningOf(body: AsyncIterable<Buffer>): Promise<string> {
  const kept: Buffer[] = [];
  let read = 0;
  try {
    for await (const chunk of body) {
      if (read < KEPT_BYTES) kept.push(chunk.subarray(0, KEPT_BYTES - read));
      read += chunk.length;
      if (read > READ_BYTES) break;
    }
  } catch {
    // The status is the answer; a body that breaks off changes nothing about it.
  }
  // A character that the cut went through is left out.
  return new TextDecoder().decode(Buffer.concat(kept), { stream: true });
}

function oneOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
