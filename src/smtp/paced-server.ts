import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js';
import { SECOND } from '../core/clock.ts';
import { createFairQueue } from '../core/concurrency/fair-queue.ts';
import { smtpCaller } from './caller.ts';
import type { CommandLimits } from './command-limits.ts';
import { SmtpRejection } from './reply.ts';

/*
 * SMTPServer with limits on commands. smtp-server runs up to 100 pipelined commands of each connection per iteration
 * of the event loop and writes every reply with a separate system call; here commands wait in a queue shared by all
 * connections, and replies to commands that arrived together are written together.
 *
 * Overrides `connect`, `_acceptSocket` and `_upgrade` of the server, and `_onCommand` and `send` of the connection;
 * package.json pins the version, and test/smtp/paced-server.test.ts fails when they are no longer called.
 */

/** The limits and the queue of commands of a server. */
export interface Pacing {
  limits: Pick<CommandLimits, 'command'>;
  queue: Pick<CommandQueue, 'run'>;
  /** Called when a client is disconnected for exceeding its limits. */
  onRejected(remoteAddress: string, reply: SmtpRejection): void;
}

type ConnectArguments = Parameters<SMTPServer['connect']>;

/** How long a socket stays open after a 421. smtp-server waits 5 s, in which the socket is occupied. */
const LINGER_MS = SECOND;
/** Sockets whose TLS handshake or PROXY header is not complete; a further one replaces the oldest. */
export const MAX_PENDING_SOCKETS = 256;
const ENHANCED_CODE = /^[245]\.\d{1,3}\.\d{1,3} /;

export class PacedServer extends SMTPServer {
  readonly #pacing: Pacing;

  constructor(options: SMTPServerOptions, pacing: Pacing) {
    super(options);
    this.#pacing = pacing;
  }

  override _acceptSocket(...args: Parameters<SMTPServer['_acceptSocket']>): (() => void) | false {
    if (this._pendingSockets.size >= MAX_PENDING_SOCKETS)
      // Those that were closed in this turn of the event loop are still listed.
      for (const socket of this._pendingSockets.values())
        if (!socket.destroyed) {
          socket.destroy();
          break;
        }
    return super._acceptSocket(...args);
  }

  override _upgrade(...[socket, callback]: Parameters<SMTPServer['_upgrade']>): void {
    // Closed since it was accepted, at the stop of the server for example: TLS on it would end the process (SIGSEGV).
    if (socket.destroyed) callback(new Error('the socket was closed before the TLS handshake'));
    else super._upgrade(socket, callback);
  }

  override connect(...[socket, options]: ConnectArguments): void {
    // Already closed: smtp-server would miss the close event and never remove the connection.
    if (socket.destroyed) return;
    const connection = new PacedConnection(this, socket, options, this.#pacing);
    this.connections.add(connection);
    connection.on('error', (error: Error) => this._onError(error));
    connection.init();
  }
}

class PacedConnection extends SMTPConnection {
  readonly #pacing: Pacing;
  readonly #network: string;
  #isCorked = false;

  constructor(server: SMTPServer, socket: ConnectArguments[0], options: ConnectArguments[1], pacing: Pacing) {
    super(server, socket, options ?? undefined);
    this.#pacing = pacing;
    this.#network = smtpCaller(this.remoteAddress).network;
  }

  override _onCommand(command: Buffer, callback?: () => void): void {
    // smtp-server answers with 421, or ignores the command.
    if (!this._ready || this._upgrading) return super._onCommand(command, callback);
    const { limits, queue, onRejected } = this.#pacing;
    const name = command.toString('latin1', 0, 9).split(' ', 1)[0]?.toUpperCase() ?? '';
    const verdict = limits.command(this.session, name);
    if (verdict instanceof SmtpRejection) {
      onRejected(this.remoteAddress, verdict);
      return this.send(421, verdict.message);
    }
    const run = () => queue.run(this.#network, () => this.#execute(name, command, callback));
    if (verdict > 0) setTimeout(run, verdict).unref();
    else run();
  }

  #execute(name: string, command: Buffer, callback?: () => void): void {
    // Closed while the command waited. The callback ends the parser.
    if (this._closing || this._closed) return callback?.();
    // The reply to STARTTLS is written before the socket is wrapped.
    if (name !== 'STARTTLS') this.#cork();
    super._onCommand(command, callback);
  }

  /** Collects replies until the end of this tick. */
  #cork(): void {
    if (this.#isCorked) return;
    const socket = this._socket;
    this.#isCorked = true;
    socket.cork();
    process.nextTick(() => {
      this.#isCorked = false;
      socket.uncork();
    });
  }

  override send(...[code, data, context]: Parameters<SMTPConnection['send']>): void {
    if (code !== 421) return super.send(code, data, context);
    // A rejection with 421 begins with its enhanced code, which a greeting does not have (RFC 2034 §3).
    if (typeof data === 'string' && ENHANCED_CODE.test(data))
      super.send(code, this._ready ? data : data.replace(ENHANCED_CODE, ''), false);
    else super.send(code, data, context);
    const socket = this._socket;
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }
}

/** About a millisecond. */
const COMMANDS_PER_BATCH = 50;
/** Pause between batches while commands wait: at most 12,500 commands per second. */
const PAUSE_MS = 4;

export type CommandQueue = ReturnType<typeof createCommandQueue>;

/**
 * Shares the event loop among SMTP clients: a bounded number of commands runs in one iteration, those that wait run
 * network by network, and while some wait there is a pause between iterations. However many connections send commands,
 * everything else in the process waits for one batch at most, and has most of the CPU time.
 *
 * Empty at first. A batch runs at most 50 commands by default; the next one follows in the next turn of the event loop,
 * or 4 ms later while commands wait. Jobs must not throw.
 */
export function createCommandQueue(
  options: { batchSize?: number; defer?: (callback: () => void, hasBacklog: boolean) => void } = {},
) {
  const { batchSize = COMMANDS_PER_BATCH, defer = deferBatch } = options;
  const waiting = createFairQueue<() => void>();
  let used = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    defer(runBatch, waiting.size > 0);
  }

  function runBatch(): void {
    isScheduled = false;
    used = 0;
    while (used < batchSize) {
      const next = waiting.take();
      if (next === undefined) return;
      used++;
      next.item();
    }
    if (waiting.size > 0) schedule();
  }

  return {
    /** Runs the job now or in a later batch. A connection has one job at a time, which bounds the queue. */
    run: (network: string, job: () => void): void => {
      schedule();
      if (used < batchSize && waiting.size === 0) {
        used++;
        job();
        return;
      }
      waiting.push(network, job);
    },
    waiting: (): number => waiting.size,
  };
}

function deferBatch(callback: () => void, hasBacklog: boolean): void {
  if (hasBacklog) setTimeout(callback, PAUSE_MS).unref();
  else setImmediate(callback);
}
