import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

type Handle = (req: IncomingMessage, res: ServerResponse) => void;

interface Pipeline {
  busy: boolean;
  waiting: [IncomingMessage, ServerResponse][];
}

/** More than any client pipelines: a connection that sends more without reading responses is abandoned. */
const MAX_WAITING = 32;
/**
 * An abandoned connection is neither read nor answered for this time, and then closed. If it were closed immediately, the
 * client would connect again and send further hundreds of requests, which are parsed before they are counted.
 */
const ABANDONED_MS = 10_000;
/** Requests on the abandoned connections of a listener, which Node retains until they are closed: 1.5 KB each. */
const MAX_RETAINED = 10_000;

/**
 * A socket of an HTTP server, with the parser that Node attaches to it. Not documented: where it is missing, parsing
 * does not stop before the end of a read, and only MAX_RETAINED limits what is parsed.
 */
interface ParsedSocket extends Socket {
  parser?: { onIncoming?: (() => number) | null } | null;
}

/** What `onIncoming` returns when the bytes that follow are not HTTP, as after an upgrade (RFC 9110 §7.8). */
const STOP_PARSING = 2;

export interface PipeliningOptions {
  /** Until an abandoned connection is closed, ms. */
  abandonedMs?: number;
  /** Requests on all abandoned connections; beyond it the oldest of these connections are closed immediately. */
  maxRetained?: number;
}

/**
 * Handles the requests of one connection one after the other (RFC 9112 §9.3.2): the next one starts when the previous
 * response has been passed to the operating system. A client that sends requests and reads nothing therefore occupies
 * memory for one response, not for each request.
 */
export function oneAtATime(
  handle: Handle,
  { abandonedMs = ABANDONED_MS, maxRetained = MAX_RETAINED }: PipeliningOptions = {},
): Handle {
  const pipelines = new WeakMap<Socket, Pipeline | 'abandoned'>();
  /** Requests retained for each abandoned connection that is open, the oldest connection first. */
  const abandoned = new Map<Socket, number>();
  let retained = 0;

  function start(pipeline: Pipeline, req: IncomingMessage, res: ServerResponse): void {
    pipeline.busy = true;
    res.once('close', () => {
      const next = pipeline.waiting.shift();
      pipeline.busy = next !== undefined;
      if (next !== undefined && !req.socket.destroyed) start(pipeline, ...next);
    });
    handle(req, res);
  }

  function abandon(pipeline: Pipeline, socket: ParsedSocket): void {
    // A read of 64 KiB can have 3,600 requests.
    if (socket.parser?.onIncoming) socket.parser.onIncoming = () => STOP_PARSING;
    pipelines.set(socket, 'abandoned');
    abandoned.set(socket, 0);
    // The waiting requests, the one in progress, and the one above the limit.
    retain(socket, pipeline.waiting.length + 2);
    pipeline.waiting = [];
    socket.pause();
    // Node resumes a socket that it has paused itself, when responses have been written.
    socket.on('resume', () => socket.pause());
    const timer = setTimeout(() => socket.destroy(), abandonedMs).unref();
    socket.once('close', () => {
      clearTimeout(timer);
      release(socket);
    });
  }

  function retain(socket: Socket, requests: number): void {
    const count = abandoned.get(socket);
    // The socket was closed during the read.
    if (count === undefined) return;
    abandoned.set(socket, count + requests);
    retained += requests;
    for (const oldest of abandoned.keys()) {
      if (retained <= maxRetained) return;
      release(oldest);
      oldest.destroy();
    }
  }

  function release(socket: Socket): void {
    retained -= abandoned.get(socket) ?? 0;
    abandoned.delete(socket);
  }

  return (req, res) => {
    const { socket } = req;
    let pipeline = pipelines.get(socket);
    if (pipeline === 'abandoned') {
      retain(socket, 1);
      return;
    }
    if (pipeline === undefined) {
      pipeline = { busy: false, waiting: [] };
      pipelines.set(socket, pipeline);
    }
    if (!pipeline.busy) start(pipeline, req, res);
    else if (pipeline.waiting.length < MAX_WAITING) pipeline.waiting.push([req, res]);
    else abandon(pipeline, socket);
  };
}
