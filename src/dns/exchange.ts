import type { Random } from '../core/random.ts';
import { type Outcome, outcomeOf } from './outcome.ts';
import { askTcp, askUdp, type ServerAddress, serverText } from './transport.ts';
import { encodeQuery, type Question, RCODE, type Reply, readReply } from './wire.ts';

/**
 * One question put to the configured servers until one answers or the time is up. Servers are asked in turn,
 * each again when all have been silent; a question once sent stays open to a late answer. A server that says
 * SERVFAIL, REFUSED or nonsense is not asked again for this question. Keeps no answers: that is the cache's.
 */
export interface Exchange {
  /** Never rejects: trouble is an outcome of kind 'failed'. */
  ask(question: Question): Promise<Outcome>;
  /** Ends every open question with ECANCELLED, and every later one. */
  close(): void;
}

export interface ExchangeSettings {
  servers: readonly ServerAddress[];
  /** Milliseconds for one question over all servers, time spent waiting for a free slot included. */
  timeoutMs: number;
  random: Random;
}

/** Questions open at one time: as many small datagrams as fit a resolver's receive buffer of the usual size. */
const MAX_OPEN = 256;

const CANCELLED: Outcome = { kind: 'failed', code: 'ECANCELLED', detail: 'the resolver was closed' };

export function createExchange({ servers, timeoutMs, random }: ExchangeSettings): Exchange {
  const slots = createSlots(MAX_OPEN);
  const open = new Set<(outcome: Outcome) => void>();
  const turns = Math.max(3, servers.length * 2);
  const gapMs = timeoutMs / (turns + 1);
  let closed = false;
  /** The server to begin with: the first, until it stays silent and another answers. */
  let preferred = 0;

  function ask(question: Question): Promise<Outcome> {
    if (closed) return Promise.resolve(CANCELLED);
    return new Promise((resolve) => {
      const order = [...servers.slice(preferred), ...servers.slice(0, preferred)];
      const failures = new Map<ServerAddress, Outcome>();
      const over = new AbortController();
      let turn = 0;
      let gap: NodeJS.Timeout | undefined;

      const finish = (outcome: Outcome) => {
        if (over.signal.aborted) return;
        over.abort();
        clearTimeout(gap);
        clearTimeout(deadline);
        release();
        open.delete(finish);
        resolve(outcome);
      };
      const askNext = () => {
        if (over.signal.aborted) return;
        clearTimeout(gap);
        if (failures.size === order.length) return finish(failureOf([...failures.values()]));
        while (turn < turns && failures.has(order[turn % order.length] as ServerAddress)) turn++;
        if (turn === turns) return; // all have been asked often enough: listen until the time is up
        const server = order[turn++ % order.length] as ServerAddress;
        gap = setTimeout(askNext, gapMs);
        void talk(server, question, random, over.signal).then((outcome) => {
          if (over.signal.aborted) return;
          if (outcome.kind === 'failed') {
            failures.set(server, outcome);
            askNext();
            return;
          }
          if (server !== order[0] && isSilent(failures.get(order[0] as ServerAddress))) {
            preferred = servers.indexOf(server);
          }
          finish(outcome);
        });
      };
      const deadline = setTimeout(() => {
        const detail = `no answer from ${servers.map(serverText).join(', ')} within ${timeoutMs} ms`;
        finish(failureOf([...failures.values(), { kind: 'failed', code: 'ETIMEOUT', detail }]));
      }, timeoutMs);
      open.add(finish);
      const release = slots.take(askNext);
    });
  }

  return {
    ask,
    close: () => {
      closed = true;
      for (const finish of open) finish(CANCELLED);
    },
  };
}

/** A server that answers SERVFAIL is alive, and may be the only one that validates: it stays preferred. */
function isSilent(failure: Outcome | undefined): boolean {
  return failure === undefined || (failure.kind === 'failed' && failure.code === 'ETIMEOUT');
}

/** What a server said tells more than that another was silent. */
function failureOf(failures: Outcome[]): Outcome {
  return failures.find((failure) => !isSilent(failure)) ?? (failures[0] as Outcome);
}

/**
 * One server's word: UDP, TCP when the answer did not fit (RFC 7766 §5), and once more without EDNS for a
 * server too old for it (RFC 6891 §7). Never rejects.
 */
async function talk(
  server: ServerAddress,
  question: Question,
  random: Random,
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    let reply = await put(server, question, random, signal, true);
    if (reply !== 'broken' && knowsNoEdns(reply)) reply = await put(server, question, random, signal, false);
    const outcome: Outcome =
      reply === 'broken'
        ? { kind: 'failed', code: 'EBADRESP', detail: 'an answer that cannot be read' }
        : outcomeOf(question, reply);
    return outcome.kind === 'failed'
      ? { ...outcome, detail: `${outcome.detail} from ${serverText(server)}` }
      : outcome;
  } catch (error) {
    // Socket trouble: to the caller the same as a server that does not answer.
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'failed', code: 'ETIMEOUT', detail: `no answer from ${serverText(server)}: ${reason}` };
  }
}

async function put(
  server: ServerAddress,
  question: Question,
  random: Random,
  signal: AbortSignal,
  edns: boolean,
): Promise<Reply | 'broken'> {
  const id = random.below(0x1_0000);
  const query = encodeQuery(question, id, edns);
  const accept = (bytes: Buffer) => {
    const reply = readReply(bytes, question, id);
    return reply === 'other' ? undefined : reply;
  };
  const reply = await askUdp(server, query, accept, signal);
  return reply !== 'broken' && reply.truncated ? askTcp(server, query, accept, signal) : reply;
}

function knowsNoEdns({ rcode }: Reply): boolean {
  return rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP || rcode === RCODE.BADVERS;
}

interface Slots {
  /** Calls `start` now or when a slot is free. The function returned gives the slot, or the place in the queue, back. */
  take(start: () => void): () => void;
}

function createSlots(limit: number): Slots {
  let free = limit;
  const waiting = new Set<() => void>();
  return {
    take: (start) => {
      if (free > 0) {
        free--;
        queueMicrotask(start);
      } else {
        waiting.add(start);
      }
      return () => {
        if (waiting.delete(start)) return;
        const [first] = waiting;
        if (first) {
          waiting.delete(first);
          first();
        } else {
          free++;
        }
      };
    },
  };
}
