import { createGate } from '../core/concurrency/gate.ts';
import { errorText } from '../core/errors.ts';
import type { Random } from '../core/random.ts';
import { type QueryResult, queryResultOf } from './query-result.ts';
import { formatServer, queryTcp, queryUdp, type ServerAddress } from './transport.ts';
import { type DnsResponse, encodeQuery, type Question, RCODE, readResponse } from './wire.ts';

export type Exchange = ReturnType<typeof createExchange>;

export interface ExchangeOptions {
  servers: readonly ServerAddress[];
  /** For one query over all servers, from its first transmission. */
  timeoutMs: number;
  /** Whether the AD bit of a server's answers counts. */
  trustsAd(server: ServerAddress): boolean;
  random: Random;
}

/** Queries in progress: as many small datagrams as fit the receive buffer of a resolver of usual size. */
const MAX_IN_PROGRESS = 256;
/** Of one owner: more than the lookups of an account's destinations need at the same time (`createRouteCache`). */
const MAX_WAITING_PER_OWNER = 1000;

const NO_SERVERS: QueryResult = { kind: 'failed', code: 'ETIMEOUT', detail: 'no name server is configured' };
const TOO_MANY: QueryResult = {
  kind: 'failed',
  code: 'ETIMEOUT',
  detail: 'too many queries are waiting',
  isUnsent: true,
};
const CANCELLED: QueryResult = { kind: 'failed', code: 'ECANCELLED', detail: 'the resolver was closed' };

/**
 * Sends a query to the configured servers until one answers or the time is over. Servers are used in turn, and again
 * when none has answered; a late answer to an earlier transmission is accepted. A server that answers SERVFAIL, REFUSED
 * or malformed messages receives the query only once. There is no cache.
 *
 * Opens a socket for each transmission and keeps none. At most 256 queries are in progress, shared between owners; at most
 * 1000 of an owner wait, without a limit of time.
 */
export function createExchange(options: ExchangeOptions) {
  const { random } = options;
  let settings = settingsOf(options);
  // An owner may have as many queries in progress as are left for all others: one alone uses half of them, and an owner
  // without a query gets one immediately.
  const slots = createGate({
    concurrency: MAX_IN_PROGRESS,
    perKey: (free) => free,
    maxWaiting: Number.POSITIVE_INFINITY,
    maxWaitingPerKey: MAX_WAITING_PER_OWNER,
  });
  const inProgress = new Set<(result: QueryResult) => void>();
  let closed = false;
  /** Index of the first server of each query: changes when that server does not answer and another one does. */
  let preferred = 0;

  /** Never rejects: errors are results of kind 'failed'. `owner`: who shares the concurrent queries with others. */
  function query(question: Question, owner = ''): Promise<QueryResult> {
    if (closed) return Promise.resolve(CANCELLED);
    return new Promise((resolve) => {
      const { servers, timeoutMs, trustsAd, turns, gapMs } = settings;
      const order = [...servers.slice(preferred), ...servers.slice(0, preferred)];
      // Sound: a query without servers fails before its first transmission.
      const serverOf = (index: number) => order[index % order.length] as ServerAddress;
      const failures = new Map<ServerAddress, QueryResult>();
      const ended = new AbortController();
      let turn = 0;
      let gap: NodeJS.Timeout | undefined;
      let deadline: NodeJS.Timeout | undefined;

      const finish = (result: QueryResult) => {
        if (ended.signal.aborted) return;
        ended.abort();
        clearTimeout(gap);
        clearTimeout(deadline);
        release?.();
        inProgress.delete(finish);
        resolve(result);
      };
      const sendNext = () => {
        if (ended.signal.aborted) return;
        clearTimeout(gap);
        if (failures.size === order.length) return finish(failureOf([...failures.values()]));
        while (turn < turns && failures.has(serverOf(turn))) turn++;
        if (turn === turns) return; // every transmission was sent: only wait for answers
        const server = serverOf(turn++);
        gap = setTimeout(sendNext, gapMs);
        void queryServer(server, question, random, ended.signal).then((result) => {
          if (ended.signal.aborted) return;
          if (result.kind === 'failed') {
            failures.set(server, result);
            sendNext();
            return;
          }
          if (server !== order[0] && isSilent(failures.get(serverOf(0)))) {
            if (servers === settings.servers) preferred = servers.indexOf(server);
          }
          finish(trustsAd(server) ? result : withoutAd(result));
        });
      };
      const begin = () => {
        if (ended.signal.aborted) return;
        deadline = setTimeout(() => {
          const detail = `no answer from ${servers.map(formatServer).join(', ')} within ${timeoutMs} ms`;
          finish(failureOf([...failures.values(), { kind: 'failed', code: 'ETIMEOUT', detail }]));
        }, timeoutMs);
        sendNext();
      };
      inProgress.add(finish);
      const release = slots.enter(owner, begin);
      if (release === null) finish(TOO_MANY);
    });
  }

  return {
    query,
    /** Changes the servers and the timeout; queries in progress continue with the previous ones. */
    configure: (next: Omit<ExchangeOptions, 'random'>): void => {
      settings = settingsOf(next);
      preferred = 0;
    },
    /** Ends every query in progress, and every later one, with ECANCELLED. */
    close: (): void => {
      closed = true;
      for (const finish of inProgress) finish(CANCELLED);
    },
  };
}

function settingsOf({ servers, timeoutMs, trustsAd }: Omit<ExchangeOptions, 'random'>) {
  const turns = Math.max(3, servers.length * 2);
  return { servers, timeoutMs, trustsAd, turns, gapMs: timeoutMs / (turns + 1) };
}

function withoutAd(result: QueryResult): QueryResult {
  return 'authenticated' in result ? { ...result, authenticated: false } : result;
}

/** A server that answers SERVFAIL works, and may be the only one that validates: it stays preferred. */
function isSilent(failure: QueryResult | undefined): boolean {
  return failure === undefined || (failure.kind === 'failed' && failure.code === 'ETIMEOUT');
}

/** An answer is more informative than a timeout. */
function failureOf(failures: QueryResult[]): QueryResult {
  return failures.find((failure) => !isSilent(failure)) ?? failures[0] ?? NO_SERVERS;
}

/**
 * Queries one server: over UDP, over TCP when the answer is truncated (RFC 7766 §5), and without EDNS when the server
 * does not support it (RFC 6891 §7). Never rejects.
 */
async function queryServer(
  server: ServerAddress,
  question: Question,
  random: Random,
  signal: AbortSignal,
): Promise<QueryResult> {
  try {
    let response = await send(server, question, random, signal, true);
    if (response !== 'malformed' && lacksEdns(response))
      response = await send(server, question, random, signal, false);
    const result: QueryResult =
      response === 'malformed'
        ? { kind: 'failed', code: 'EBADRESP', detail: 'malformed answer' }
        : queryResultOf(question, response);
    return result.kind === 'failed'
      ? { ...result, detail: `${result.detail} from ${formatServer(server)}` }
      : result;
  } catch (error) {
    // To the caller, a socket error is the same as a server that does not answer.
    return {
      kind: 'failed',
      code: 'ETIMEOUT',
      detail: `no answer from ${formatServer(server)}: ${errorText(error)}`,
    };
  }
}

async function send(
  server: ServerAddress,
  question: Question,
  random: Random,
  signal: AbortSignal,
  edns: boolean,
): Promise<DnsResponse | 'malformed'> {
  const id = random.below(0x1_0000);
  const message = encodeQuery(question, id, edns);
  const accept = (bytes: Buffer) => {
    const response = readResponse(bytes, question, id);
    return response === 'unrelated' ? undefined : response;
  };
  const response = await queryUdp(server, message, accept, signal);
  return response !== 'malformed' && response.truncated
    ? queryTcp(server, message, accept, signal)
    : response;
}

function lacksEdns({ rcode }: DnsResponse): boolean {
  return rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP || rcode === RCODE.BADVERS;
}
