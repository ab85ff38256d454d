import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

type Handle = (req: IncomingMessage, res: ServerResponse) => void;

interface Pipeline {
  busy: boolean;
  waiting: [IncomingMessage, ServerResponse][];
}

/** More than any client pipelines: a connection that sends more without reading responses is closed. */
const MAX_WAITING = 32;

/**
 * Handles the requests of one connection one after the other (RFC 9112 §9.3.2): the next begins when the response
 * to the last has been handed to the system. So a client that sends requests and reads nothing makes the server
 * hold one response, not one for each request.
 */
export function oneAtATime(handle: Handle): Handle {
  const pipelines = new WeakMap<Socket, Pipeline>();

  function start(pipeline: Pipeline, req: IncomingMessage, res: ServerResponse): void {
    pipeline.busy = true;
    res.once('close', () => {
      const next = pipeline.waiting.shift();
      pipeline.busy = next !== undefined;
      if (next !== undefined && !req.socket.destroyed) start(pipeline, ...next);
    });
    handle(req, res);
  }

  return (req, res) => {
    let pipeline = pipelines.get(req.socket);
    if (pipeline === undefined) {
      pipeline = { busy: false, waiting: [] };
      pipelines.set(req.socket, pipeline);
    }
    if (!pipeline.busy) start(pipeline, req, res);
    else if (pipeline.waiting.length < MAX_WAITING) pipeline.waiting.push([req, res]);
    else req.socket.destroy();
  };
}
