import type { ServerResponse } from 'node:http';
import { SECOND } from '../../core/clock.ts';
import { createLoop } from '../../core/concurrency/loop.ts';
import type { Runtime } from '../../core/runtime.ts';
import type { FeedEvent } from '../../events/feed.ts';
import { whenClosed } from '../call-signals.ts';
import { createSharedPool, type Holder, type Shortage } from './shared-pool.ts';

export type EventStreams = ReturnType<typeof createEventStreams>;

export type StreamShortage = Shortage | 'session' | 'stopped';

export interface StreamOptions extends Holder {
  accountId: string;
  /** The session of one browser. */
  sessionId: string;
  response: ServerResponse;
  /** Whether the session may still read the account. */
  isAllowed(): boolean;
}

interface EventFeed {
  /** The number after the last event. */
  nextSeq(): number;
  /** Events of an account after a number, oldest first. */
  read(accountId: string, afterSeq: number, limit: number): Promise<{ seq: number; event: FeedEvent }[]>;
  intervalMs?: number;
}

interface EventStreamConnection extends StreamOptions {
  checkedAt: number;
  /** Returns its place in the pool. */
  release(): void;
}

interface Watched {
  afterSeq: number;
  streams: Set<EventStreamConnection>;
}

const INTERVAL_MS = SECOND;
/** Events of an account per interval; with more, the application reads its lists again. */
const MAX_EVENTS = 100;
const MAX_STREAMS = 200;
/** Streams of the members of one account. */
export const MAX_STREAMS_OF_ACCOUNT = 50;
/** Streams that only operators of the installation may open. */
const STREAMS_FOR_OPERATORS = 20;
/** With HTTP/1.1, browsers open six connections to a host: some must remain for requests. */
export const MAX_STREAMS_OF_SESSION = 3;
export const MAX_STREAMS_OF_PERSON = 12;
/** Bytes that may wait for a client. */
const MAX_WAITING_BYTES = 256 * 1024;
/** Interval of comments, so that proxies do not close the connection, and of checks of the session. */
const HEARTBEAT_MS = 15 * SECOND;

/**
 * The event stream of the console (server-sent events, WHATWG HTML §9.2): the events of an account as they are committed, in
 * the form of `GET /web-setup/events`. An account with streams is read once per interval for all its streams. A stream
 * begins at the current end of the feed; `hello` has that position, so that the application reads its lists again after a
 * reconnection. A client that does not read is disconnected. Starts its loop now; `stop` ends it. Accounts without a stream
 * are not read. At most 200 streams are open, 20 of them for operators only: 3 of a session, 12 of a person, 50 of the
 * members of an account.
 */
export function createEventStreams(
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  { nextSeq, read, intervalMs = INTERVAL_MS }: EventFeed,
) {
  const watched = new Map<string, Watched>();
  const pool = createSharedPool({
    total: MAX_STREAMS,
    ofPerson: MAX_STREAMS_OF_PERSON,
    ofAccount: MAX_STREAMS_OF_ACCOUNT,
    forOperators: STREAMS_FOR_OPERATORS,
  });
  /** Number of open streams, by the id of the session. */
  const numbers = new Map<string, number>();
  let stopped = false;

  const numberOf = (sessionId: string): number => numbers.get(sessionId) ?? 0;

  function close(stream: EventStreamConnection): void {
    const account = watched.get(stream.accountId);
    if (account?.streams.delete(stream) !== true) return;
    if (account.streams.size === 0) watched.delete(stream.accountId);
    stream.release();
    const left = numberOf(stream.sessionId) - 1;
    if (left > 0) numbers.set(stream.sessionId, left);
    else numbers.delete(stream.sessionId);
    stream.response.end();
  }

  function send(stream: EventStreamConnection, text: string): void {
    if (stream.response.writableLength > MAX_WAITING_BYTES) {
      stream.response.destroy();
      close(stream);
    } else stream.response.write(text);
  }

  async function poll(accountId: string, account: Watched): Promise<void> {
    const { afterSeq } = account;
    const events = await read(accountId, afterSeq, MAX_EVENTS);
    const last = events.at(-1);
    if (last === undefined) return;
    account.afterSeq = last.seq;
    const text =
      events.length < MAX_EVENTS
        ? events.map(({ event }) => message('event', event)).join('')
        : message('reset', {});
    if (events.length >= MAX_EVENTS) account.afterSeq = nextSeq() - 1;
    // Checked now: a person who was removed since the last heartbeat must not see these events.
    for (const stream of account.streams)
      if (stream.isAllowed()) send(stream, text);
      else close(stream);
  }

  function checkSessions(account: Watched): void {
    const now = clock.now();
    for (const stream of account.streams) {
      if (now - stream.checkedAt < HEARTBEAT_MS) continue;
      stream.checkedAt = now;
      if (stream.isAllowed()) send(stream, ': \n\n');
      else close(stream);
    }
  }

  const loop = createLoop({
    name: 'console-events',
    log,
    intervalMs,
    run: async () => {
      for (const [accountId, account] of watched) {
        checkSessions(account);
        await poll(accountId, account).catch((error: unknown) =>
          log.debug({ err: error, accountId }, 'events for the console not read'),
        );
      }
    },
  });

  loop.start();

  return {
    /** Opens a stream on the response; otherwise returns who has too many: `pool` is the installation. */
    open: (options: StreamOptions): StreamShortage | null => {
      const { accountId, personId, operator, sessionId, response } = options;
      if (stopped) return 'stopped';
      if (numberOf(sessionId) >= MAX_STREAMS_OF_SESSION) return 'session';
      const release = pool.take({ accountId, personId, operator });
      if (typeof release === 'string') return release;
      const stream: EventStreamConnection = { ...options, checkedAt: clock.now(), release };
      const account = watched.get(accountId) ?? {
        afterSeq: nextSeq() - 1,
        streams: new Set<EventStreamConnection>(),
      };
      watched.set(accountId, account);
      account.streams.add(stream);
      numbers.set(sessionId, numberOf(sessionId) + 1);
      whenClosed(response, () => close(stream));
      if (response.closed) return null;
      response.writeHead(200, {
        'Content-Type': 'text/event-stream; charset=utf-8',
        'Cache-Control': 'no-store',
        'X-Accel-Buffering': 'no',
      });
      send(stream, `retry: 5000\n\n${message('hello', { accountId })}`);
      return null;
    },
    /** Ends all streams. */
    stop: async (): Promise<void> => {
      stopped = true;
      await loop.stop();
      for (const { streams } of watched.values()) for (const stream of streams) close(stream);
    },
  };
}

/** One event of a stream, without an id: no stream continues another one. JSON has no line breaks. */
function message(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
