import { connect } from 'node:net';

/** How a mail server answers a connection. */
export type Greeting =
  /** `code`: its reply code, RFC 5321 §4.2; `text`: the reply, one line per line. */
  | { kind: 'greeting'; code: number; text: string }
  /** The connection was opened, but nothing that is SMTP arrived. */
  | { kind: 'silent' }
  /** `code`: ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, EADDRNOTAVAIL, … */
  | { kind: 'failed'; code: string };

export interface GreetingOptions {
  address: string;
  port: number;
  /** Source address; default: chosen by the system. */
  localAddress?: string | undefined;
  /** For connecting, and again for the greeting. */
  timeoutMs: number;
  signal: AbortSignal;
}

const MAX_GREETING_BYTES = 2048;
const LAST_LINE = /^(\d{3})(?: .*)?\r?\n/m;

/** Connects, reads the greeting and ends the session with QUIT. Never rejects. */
export function readGreeting(options: GreetingOptions): Promise<Greeting> {
  const { address, port, localAddress, timeoutMs, signal } = options;
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, ...(localAddress === undefined ? {} : { localAddress }) });
    let isConnected = false;
    let isFinished = false;
    let received = '';
    const finish = (greeting: Greeting) => {
      if (isFinished) return;
      isFinished = true;
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      resolve(greeting);
      if (greeting.kind !== 'greeting') {
        socket.destroy();
        return;
      }
      socket.end('QUIT\r\n');
      // The server may not close the connection after QUIT.
      timer = setTimeout(() => socket.destroy(), timeoutMs);
    };
    const stop = () => finish(isConnected ? { kind: 'silent' } : { kind: 'failed', code: 'ETIMEDOUT' });
    let timer = setTimeout(stop, timeoutMs);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    socket.on('connect', () => {
      isConnected = true;
      clearTimeout(timer);
      timer = setTimeout(stop, timeoutMs);
    });
    socket.on('data', (bytes) => {
      if (isFinished) return;
      received += bytes.toString('latin1');
      const code = LAST_LINE.exec(received)?.[1];
      if (code !== undefined) finish({ kind: 'greeting', code: Number(code), text: received.trim() });
      else if (received.length > MAX_GREETING_BYTES) finish({ kind: 'silent' });
    });
    socket.on('error', (error: NodeJS.ErrnoException) =>
      finish(isConnected ? { kind: 'silent' } : { kind: 'failed', code: error.code ?? 'unknown' }),
    );
    socket.on('close', () => {
      clearTimeout(timer);
      finish({ kind: 'silent' });
    });
  });
}

const CODES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ETIMEDOUT: 'no answer (timeout)',
  EHOSTUNREACH: 'the host is unreachable',
  ENETUNREACH: 'the network is unreachable',
  EADDRNOTAVAIL: 'this machine does not have the source address',
  ECONNRESET: 'the connection was reset',
  EACCES: 'a local firewall rejects the connection',
  EPERM: 'a local firewall rejects the connection',
};

/** The code of a failed connection as a clause. */
export function connectionProblem(code: string): string {
  return CODES[code] ?? code;
}
