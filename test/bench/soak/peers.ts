import { setTimeout as sleep } from 'node:timers/promises';
import { type Sink, type SinkOptions, startSink } from '../../support/smtp-sink.ts';
import { serveParent } from '../benchmark-process.ts';
import { type FaultName, PEERS, type PeerKind, REPORTED_EVERY } from './faults.ts';

/**
 * The destinations of the soak test, a separate process: one programmable SMTP sink for each peer, which fails in its way
 * while its fault is active. Counts per recipient how often its mail was accepted; no fault concerns the reply to the final
 * dot, after which a repetition would be permitted (RFC 5321 §4.5.3.2.6).
 */
export type PeersRequest =
  | { kind: 'counts' }
  /** Faults that are active from now on. */
  | { kind: 'faults'; active: readonly FaultName[] }
  /** Envelope senders of every REPORTED_EVERY-th accepted message since the last request. */
  | { kind: 'reportable' }
  /** Closes connections that wait for a reply which never comes. */
  | { kind: 'release' }
  | { kind: 'received' };

export interface PeersResponse {
  port: number;
  /** Accepted messages, and how many of them were repetitions. */
  messages: number;
  repeated: number;
  /** Replies and connections that the faults changed, by fault. */
  injected: Partial<Record<FaultName, number>>;
  reportable?: [recipient: string, envelopeSender: string][];
  /** Base64; byte n is the number of times that mail to recipient n was accepted. */
  received?: string;
}

/** The first allocation; the number of recipients is not known here. */
const INITIAL_RECIPIENTS = 1 << 16;
/** Waits of a slow peer, below the timeouts of RFC 5321 §4.5.3.2. */
const SLOW_GREETING_MS = 10_000;
const SLOW_REPLY_MS = 2000;
/** Every n-th connection to the stalling peer gets no greeting at all. */
const SILENT_EVERY = 4;

const active = new Set<FaultName>();
const injected: Partial<Record<FaultName, number>> = {};
let received = new Uint8Array(INITIAL_RECIPIENTS);
let messages = 0;
let repeated = 0;
let reportable: [string, string][] = [];

const count = (fault: FaultName) => {
  injected[fault] = (injected[fault] ?? 0) + 1;
};

/** Accepts a message for `r<number>@domain`. */
function accept(recipient: string, from: string): void {
  const number = Number(/^r(\d+)@/.exec(recipient)?.[1]);
  if (!Number.isSafeInteger(number)) throw new Error(`mail to an unexpected recipient: ${recipient}`);
  if (number >= received.length) {
    const larger = new Uint8Array(2 * number);
    larger.set(received);
    received = larger;
  }
  const times = received[number] ?? 0;
  messages++;
  if (times > 0) repeated++;
  if (times < 255) received[number] = times + 1;
  if (number % REPORTED_EVERY === 0 && times === 0) reportable.push([recipient, from]);
}

/** The answer of a fault while it is active; undefined: the usual one. */
const during =
  <Given>(fault: FaultName, answer: Given) =>
  (): Given | undefined => {
    if (!active.has(fault)) return undefined;
    count(fault);
    return answer;
  };

let connections = 0;
const BEHAVIORS: Record<PeerKind, SinkOptions> = {
  healthy: {},
  outages: {
    script: {
      greeting: during('outage', { reply: '421 4.3.2 service not available', close: true as const }),
      mail: during('outage', { reply: '421 4.3.2 shutting down', close: true as const }),
    },
  },
  stalls: {
    script: {
      greeting: () => {
        if (!active.has('stall')) return undefined;
        count('stall');
        return connections++ % SILENT_EVERY === 0
          ? 'silent'
          : { reply: '220 slow ESMTP', delayMs: SLOW_GREETING_MS };
      },
      rcpt: during('stall', { reply: '250 2.1.5 recipient ok', delayMs: SLOW_REPLY_MS }),
    },
  },
  defers: { script: { rcpt: during('deferral', '451 4.3.0 temporary failure, try again later') } },
  resets: { script: { greeting: during('reset', 'reset'), data: during('reset', 'reset') } },
  // Its faults are those of the name server.
  unresolvable: {},
  rejects: {
    script: {
      rcpt: () => {
        count('rejection');
        return '550 5.1.1 user unknown';
      },
    },
  },
};

const sinks: Partial<Record<PeerKind, Sink>> = {};
let port = 0;
for (const { kind, host } of PEERS) {
  const sink = await startSink({
    ...BEHAVIORS[kind],
    host,
    port,
    countOnly: true,
    onMessage: ({ to: [recipient = ''], from }) => accept(recipient, from),
  });
  sinks[kind] = sink;
  port = sink.port;
}

serveParent(async (message): Promise<PeersResponse> => {
  // Sound: the soak test sends this type.
  const request = message as PeersRequest;
  const response: PeersResponse = { port, messages, repeated, injected };
  if (request.kind === 'faults') {
    active.clear();
    for (const fault of request.active) active.add(fault);
  }
  if (request.kind === 'reportable') {
    response.reportable = reportable;
    reportable = [];
  }
  const { stalls } = sinks;
  if (request.kind === 'release' && stalls !== undefined) {
    // A connection must not end between a message and its reply: waits until none of its messages arrives.
    for (let seen = -1; seen !== stalls.count; ) {
      seen = stalls.count;
      await sleep(2 * SLOW_REPLY_MS);
    }
    stalls.disconnect();
  }
  if (request.kind === 'received') response.received = Buffer.from(received).toString('base64');
  return response;
});
