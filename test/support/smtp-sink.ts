import { createServer, type Socket } from 'node:net';
import { runSession, type SinkBehavior, type SinkMessage, type SinkSession } from './smtp-sink-session.ts';

/**
 * A programmable SMTP receiver for tests: replies to each command as the test states, and stores or counts the messages
 * that it accepts.
 *
 *     const sink = await startSink({ recipients: { 'bounce@': '550 5.1.1 nobody here' } });
 *     … deliver to sink.host, sink.port …
 *     const [message] = await sink.waitFor(1);
 *     await sink.close();
 */
export interface SinkOptions extends Partial<SinkBehavior> {
  /** Default: 127.0.0.1. With other loopback addresses several sinks can share a port. */
  host?: string;
  /** Default: a free one. */
  port?: number;
}

export interface Sink {
  readonly host: string;
  readonly port: number;
  /** Accepted so far; empty with `countOnly`. */
  readonly messages: SinkMessage[];
  /** How many were accepted, in either mode. */
  readonly count: number;
  /** All connections so far, in order. */
  readonly sessions: SinkSession[];
  /** Open connections, and their maximum so far. */
  readonly open: number;
  readonly peak: number;
  /** Changes the behavior from now on, also of open connections. */
  program(changes: Partial<SinkBehavior>): void;
  /** Resolves when `count` messages have been accepted since the start. */
  waitFor(count: number): Promise<SinkMessage[]>;
  /** Sends an unsolicited text on each open connection that is not encrypted. */
  send(text: string): void;
  /** Closes all open connections; the sink continues. */
  disconnect(): void;
  close(): Promise<void>;
}

const USUAL_KEYWORDS = ['PIPELINING', 'SIZE 52428800', '8BITMIME', 'ENHANCEDSTATUSCODES', 'SMTPUTF8'];

export async function startSink(options: SinkOptions = {}): Promise<Sink> {
  const { host = '127.0.0.1', port = 0, onMessage, ...changes } = options;
  const messages: SinkMessage[] = [];
  const sessions: SinkSession[] = [];
  const sockets = new Set<Socket>();
  const waiting = new Set<() => void>();
  let count = 0;
  let connections = 0;
  let peak = 0;

  const behavior: SinkBehavior = {
    keywords: USUAL_KEYWORDS,
    script: {},
    recipients: {},
    tls: null,
    chunks: 'received',
    body: null,
    bodyBytesPerSecond: 0,
    countOnly: false,
    ...changes,
    onMessage: (message) => {
      count++;
      if (!behavior.countOnly) messages.push(message);
      onMessage?.(message);
      for (const check of waiting) check();
    },
  };

  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    peak = Math.max(peak, sockets.size);
    const session = newSession(++connections, socket.remoteAddress ?? '');
    if (!behavior.countOnly) sessions.push(session);
    runSession(socket, session, behavior);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the sink has no port');

  const disconnect = () => {
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
    program: (changes) => void Object.assign(behavior, changes),
    waitFor: (target) =>
      new Promise((resolve) => {
        const check = () => {
          if (count < target) return;
          waiting.delete(check);
          resolve(messages);
        };
        waiting.add(check);
        check();
      }),
    send: (text) => {
      for (const socket of sockets) socket.write(text);
    },
    disconnect,
    close: () => {
      disconnect();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function newSession(number: number, remoteAddress: string): SinkSession {
  return {
    number,
    remoteAddress,
    commands: [],
    verbs: [],
    hello: '',
    login: '',
    tls: null,
    from: '',
    to: [],
    messages: 0,
    pipelined: 0,
    stalled: false,
    closed: false,
  };
}
