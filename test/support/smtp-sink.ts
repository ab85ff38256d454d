import { createServer, type Socket } from 'node:net';
import { runSession, type SessionSettings, type SinkMessage, type SinkSession } from './smtp-sink-session.ts';

/**
 * A programmable SMTP receiver for tests: answers what the test tells it to at every stage, keeps or counts
 * the messages it took. The other end's program may not assume that it behaves.
 *
 *     const sink = await startSink({ recipients: { 'bounce@': '550 5.1.1 nobody here' } });
 *     … deliver to sink.host, sink.port …
 *     const [message] = await sink.waitFor(1);
 *     await sink.close();
 */
export interface SinkOptions extends Partial<SessionSettings> {
  /** Default 127.0.0.1; any other loopback address will do, so several sinks can share a port. */
  host?: string;
  /** Default: a free one. */
  port?: number;
}

export interface Sink {
  readonly host: string;
  readonly port: number;
  /** Taken so far; empty with `countOnly`. */
  readonly messages: SinkMessage[];
  /** How many were taken, counted in either mode. */
  readonly count: number;
  /** Every connection so far, in order. */
  readonly sessions: SinkSession[];
  /** Connections open now, and the most at any one time. */
  readonly open: number;
  readonly peak: number;
  /** Changes the behaviour from now on, also for connections already open. */
  program(changes: Partial<SessionSettings>): void;
  /** Resolves once `count` messages have been taken since the start. */
  waitFor(count: number): Promise<SinkMessage[]>;
  /** Says something unasked on every open connection that is not encrypted. */
  say(text: string): void;
  /** Closes every open connection, the sink goes on. */
  hangUp(): void;
  close(): Promise<void>;
}

const USUAL_KEYWORDS = ['PIPELINING', 'SIZE 52428800', '8BITMIME', 'ENHANCEDSTATUSCODES', 'SMTPUTF8'];

export async function startSink(options: SinkOptions = {}): Promise<Sink> {
  const { host = '127.0.0.1', port = 0, onMessage, ...behaviour } = options;
  const messages: SinkMessage[] = [];
  const sessions: SinkSession[] = [];
  const sockets = new Set<Socket>();
  const waiting = new Set<() => void>();
  let count = 0;
  let connections = 0;
  let peak = 0;

  const settings: SessionSettings = {
    keywords: USUAL_KEYWORDS,
    script: {},
    recipients: {},
    tls: null,
    body: null,
    bodyBytesPerSecond: 0,
    countOnly: false,
    ...behaviour,
    onMessage: (message) => {
      count++;
      if (!settings.countOnly) messages.push(message);
      onMessage?.(message);
      for (const check of waiting) check();
    },
  };

  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    peak = Math.max(peak, sockets.size);
    const session = newSession(++connections, socket.remoteAddress ?? '');
    if (!settings.countOnly) sessions.push(session);
    runSession(socket, session, settings);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the sink has no port');

  const hangUp = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    host,
    port: address.port,
    messages,
    sessions,
    get count() {
      return count;
    },
    get open() {
      return sockets.size;
    },
    get peak() {
      return peak;
    },
    program: (changes) => void Object.assign(settings, changes),
    waitFor: (wanted) =>
      new Promise((resolve) => {
        const check = () => {
          if (count < wanted) return;
          waiting.delete(check);
          resolve(messages);
        };
        waiting.add(check);
        check();
      }),
    say: (text) => {
      for (const socket of sockets) socket.write(text);
    },
    hangUp,
    close: () => {
      hangUp();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function newSession(number: number, remoteAddress: string): SinkSession {
  return {
    number,
    remoteAddress,
    commands: [],
    hello: '',
    login: '',
    tls: null,
    from: '',
    to: [],
    messages: 0,
    pipelined: 0,
    closed: false,
  };
}
