import { once } from 'node:events';
import { connect } from 'node:net';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { errorCode } from '../../core/errors.ts';

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
export async function readGreeting(options: GreetingOptions): Promise<Greeting> {
  const { address, port, localAddress, timeoutMs, signal } = options;
  const socket = connect({ host: address, port, ...(localAddress === undefined ? {} : { localAddress }) });
  socket.setEncoding('latin1');
  // Reported by what waits for the socket; later ones are irrelevant.
  socket.on('error', () => {});
  const connecting = abortAfter(timeoutMs, signal);
  try {
    await once(socket, 'connect', { signal: connecting });
  } catch (error) {
    socket.destroy();
    return { kind: 'failed', code: connecting.aborted ? 'ETIMEDOUT' : errorCode(error) || 'unknown' };
  }
  // Also closes the connection if the server does not after QUIT.
  const reading = abortAfter(timeoutMs, signal);
  reading.addEventListener('abort', () => socket.destroy(), { once: true });
  if (reading.aborted) socket.destroy();
  let received = '';
  try {
    for await (const bytes of socket.iterator({ destroyOnReturn: false })) {
      received += bytes;
      const code = LAST_LINE.exec(received)?.[1];
      if (code !== undefined) {
        socket.resume().end('QUIT\r\n');
        return { kind: 'greeting', code: Number(code), text: received.trim() };
      }
      if (received.length > MAX_GREETING_BYTES) break;
    }
  } catch {
    // The connection was reset, or nothing arrived in time.
  }
  socket.destroy();
  return { kind: 'silent' };
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
