import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { SECOND } from '../core/clock.ts';
import { eventLoopTurns } from '../core/concurrency/slices.ts';

/*
 * Responses to requests whose body is not read. If the connection were closed while the client still sends, the operating
 * system would reset it, and the client would lose the response (RFC 9112 §9.6).
 */

/** The rest of a refused body is discarded up to this size. */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;
/** How long a connection stays open for a client that sends nothing, or too much. */
const LINGER_MS = 5 * SECOND;
/** Refused bodies are discarded in turns, all of them together as one account. Chunks have at most 64 KiB. */
const DISCARDING = 'refused bodies';
const DISCARDED_PER_TURN = 16 * 1024;

/**
 * Sends a response whose header fields, with Content-Length, are set. The client can read it immediately; it ends, and with
 * it a connection that is not reused, when the rest of the body has arrived, or nothing has arrived for LINGER_MS. After
 * MAX_DISCARDED_BYTES, or if the body arrives too slowly, the connection is closed for sending, and LINGER_MS later altogether.
 */
export async function respondBeforeBody(
  req: IncomingMessage,
  res: ServerResponse,
  body: string | Buffer,
): Promise<void> {
  if (body.length > 0) res.write(body);
  else res.flushHeaders();
  const isComplete = res.statusCode !== 408 && (await discard(req));
  // The rest of the body would be parsed as the next request.
  if (isComplete) res.end();
  else closeSlowly(req);
}

/** Resolves with true when the body has ended; false: it is too long, or the client sends nothing more. */
export function discard(req: IncomingMessage): Promise<boolean> {
  return new Promise((resolve) => {
    let left = MAX_DISCARDED_BYTES;
    const idle = setTimeout(() => finish(false), LINGER_MS);
    const finish = (isComplete: boolean) => {
      clearTimeout(idle);
      req.removeListener('data', onData).removeListener('end', onEnd).removeListener('close', onEnd);
      resolve(isComplete);
    };
    const onEnd = () => finish(true);
    const onData = (chunk: Buffer) => {
      left -= chunk.length;
      idle.refresh();
      if (left < 0) finish(false);
      else if (chunk.length >= DISCARDED_PER_TURN) void discardMore(req);
    };
    if (req.complete || req.destroyed) return finish(true);
    req.on('data', onData).on('end', onEnd).on('close', onEnd);
  });
}

async function discardMore(req: IncomingMessage): Promise<void> {
  req.pause();
  await eventLoopTurns.next(DISCARDING);
  req.resume();
}

/** Ends the connection for sending, and goes on to discard for a time, so that the client reaches the response. */
function closeSlowly(req: IncomingMessage): void {
  const { socket } = req;
  socket.end();
  destroyLater(socket);
  req.on('data', (chunk: Buffer) => {
    if (chunk.length >= DISCARDED_PER_TURN) void discardMore(req);
  });
}

function destroyLater(socket: Duplex): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(timer));
  socket.once('end', () => socket.destroy());
}

/** Connections whose last response has been written. */
const lingering = new WeakSet<Duplex>();

/** Whether `endSlowly` has written the last response: the event `clientError` repeats for each further chunk. */
export function isLingering(socket: Duplex): boolean {
  return lingering.has(socket);
}

/**
 * Writes the last response of a connection on which no request arrived, and closes it when the client has closed its side,
 * at the latest after LINGER_MS.
 */
export function endSlowly(socket: Duplex, response: string): void {
  lingering.add(socket);
  socket.end(response);
  destroyLater(socket);
}
