import { type IncomingMessage, METHODS, type ServerResponse } from 'node:http';
import Koa, { type Middleware } from 'koa';
import type { Ids } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import { createBodyReader } from './body/body.ts';
import { createCallSignals } from './call-signals.ts';
import { createFront, type FrontDeps, refuseUnknownPath, respond } from './front.ts';
import { type Authenticate, type GuardDeps, guardedHandler } from './guard.ts';
import { createInFlight } from './in-flight.ts';
import type { RefusalResponse } from './responses.ts';
import type { Route } from './route.ts';
import { createRouter, type Handler, type Operation } from './router.ts';

export interface ApplicationOptions
  extends Omit<FrontDeps, 'log' | 'metrics' | 'createRequestId' | 'isStopping'>,
    Omit<GuardDeps, 'authenticate' | 'refused' | 'inFlight' | 'bodies' | 'signals'>,
    Partial<Pick<FrontDeps, 'metrics'> & Pick<GuardDeps, 'bodies'>> {
  /** Log message for connections that end with an error. */
  failure: string;
}

export type Application = ReturnType<typeof createApplication>;

/**
 * What answers the requests of one listener: the checks of every request, with a body budget and counts of concurrent
 * requests of its own, and the operations that `serve` gets. It knows no operation by name.
 */
export function createApplication({ log, ids }: { log: Log; ids: Ids }, options: ApplicationOptions) {
  const { metrics = { observe: () => {} }, bodies = createBodyReader(), failure } = options;
  const signals = createCallSignals();
  const guard = { ...options, bodies, signals, inFlight: createInFlight() };
  let stopping = false;
  const app = new Koa();
  // Koa prints errors by default; those that reach it are disconnected clients.
  app.on('error', (error) => log.debug({ err: error }, failure));
  app.use(
    createFront({
      ...options,
      log,
      metrics,
      createRequestId: () => ids.uuid(),
      isStopping: () => stopping,
    }),
  );
  return {
    bodies,
    /** The handler of a route, with the checks of its requests. `refused`: the response for a refusal, unless it is ours. */
    guarded: (route: Route, authenticate: Authenticate, refused?: RefusalResponse): Handler =>
      guardedHandler(route, { ...guard, authenticate, ...(refused === undefined ? {} : { refused }) }),
    /** Returns what handles requests: the middleware, then the operations; every other path gets a 404. */
    serve: (operations: Operation[], middleware: readonly Middleware[] = []) => {
      for (const each of middleware) app.use(each);
      app.use(createRouter(operations, respond, METHODS));
      app.use(refuseUnknownPath);
      const handle = app.callback();
      return (req: IncomingMessage, res: ServerResponse): void => void handle(req, res);
    },
    /** New requests get a 503, and handlers that wait are aborted. */
    stop: (): void => {
      stopping = true;
      signals.stop();
    },
  };
}
