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
 * An abandoned connection is neither read nor answered for this time, and then closed. If it was closed immediately,
 * the client would connect again and send the next hundreds of requests, which are parsed before they are counted.
 */
const ABANDONED_MS = 10_000;

export interface PipeliningOptions {
  /** Until an abandoned connection is closed, ms. */
  abandonedMs?: number;
}

/**
 * Handles the requests of one connection one after the other (RFC 9112 §9.3.2): the next one starts when the previous
 * response has been passed to the operating system. A client that sends requests and reads nothing therefore occupies
 * memory for one response, not for each request.
 */
export function oneAtATime(handle: Handle, { abandonedMs = ABANDONED_MS }: PipeliningOptions = {}): Handle {
  const pipelines = new WeakMap<Socket, Pipeline | 'abandoned'>();

  function start(pipeline: Pipeline, req: IncomingMessage, res: ServerResponse): void {
    pipeline.busy = true;
    res.once('close', () => {
      const next = pipeline.waiting.shift();
      pipeline.busy = next !== undefined;
      if (next !== undefined && !req.socket.destroyed) start(pipeline, ...next);
    });
    handle(req, res);
  }

  function abandon(pipeline: Pipeline, socket: Socket): void {
    pipelines.set(socket, 'abandoned');
    pipeline.waiting = [];
    socket.pause();
    // Node resumes a socket that it has paused itself, when responses have been written.
    socket.on('resume', () => socket.pause());
    const timer = setTimeout(() => socket.destroy(), abandonedMs).unref();
    socket.once('close', () => clearTimeout(timer));
  }

  return (req, res) => {
    const { socket } = req;
    let pipeline = pipelines.get(socket);
    if (pipeline === 'abandoned') return;
    if (pipeline === undefined) {
      pipeline = { busy: false, waiting: [] };
      pipelines.set(socket, pipeline);
    }
    if (!pipeline.busy) start(pipeline, req, res);
    else if (pipeline.waiting.length < MAX_WAITING) pipeline.waiting.push([req, res]);
    else abandon(pipeline, socket);
  };
}
