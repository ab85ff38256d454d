import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js';
import { SECOND } from '../core/clock.ts';
import { smtpCaller } from './caller.ts';
import type { CommandLimits } from './command-limits.ts';
import { SmtpReply } from './reply.ts';
import type { Turns } from './turns.ts';

/**
 * The package's server with a limit on commands. The package itself runs up to 100 pipelined commands of each
 * connection per turn of the event loop and writes every reply with a system call of its own; here commands wait
 * for their turn, and the replies to commands that arrived together leave together.
 *
 * Overrides `connect` of the server and `_onCommand` and `send` of the connection; package.json pins the version,
 * test/smtp/paced-server.test.ts fails when they are no longer called.
 */
export interface Pacing {
  limits: Pick<CommandLimits, 'command'>;
  turns: Pick<Turns, 'run'>;
  /** A client was disconnected for what it sent. */
  onRefused(remoteAddress: string, reply: SmtpReply): void;
}

type ConnectArguments = Parameters<SMTPServer['connect']>;

/** The package waits 5 s for a client that it has sent 421 to; here that is time in which a socket is occupied. */
const LINGER_MS = SECOND;
const ENHANCED_CODE = /^[245]\.\d{1,3}\.\d{1,3} /;

export class PacedServer extends SMTPServer {
  readonly #pacing: Pacing;

  constructor(options: SMTPServerOptions, pacing: Pacing) {
    super(options);
    this.#pacing = pacing;
  }

  override connect(...[socket, options]: ConnectArguments): void {
    // Closed before the package listens for it: it would never be forgotten.
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
    // Answered with 421, or dropped, by the package.
    if (!this._ready || this._upgrading) return super._onCommand(command, callback);
    const { limits, turns, onRefused } = this.#pacing;
    const name = command.toString('latin1', 0, 9).split(' ', 1)[0]?.toUpperCase() ?? '';
    const verdict = limits.command(this.session, name);
    if (verdict instanceof SmtpReply) {
      onRefused(this.remoteAddress, verdict);
      return this.send(421, verdict.message);
    }
    const run = () => turns.run(this.#network, () => this.#execute(name, command, callback));
    if (verdict > 0) setTimeout(run, verdict).unref();
    else run();
  }

  #execute(name: string, command: Buffer, callback?: () => void): void {
    // Gone while the command waited. The callback ends the parser.
    if (this._closing || this._closed) return callback?.();
    // The reply to STARTTLS leaves before the socket is wrapped.
    if (name !== 'STARTTLS') this.#cork();
    super._onCommand(command, callback);
  }

  /** Collects the replies until the end of this turn. */
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
    // An SmtpReply of 421 carries its own enhanced code, which a greeting does not have (RFC 2034 §3).
    if (typeof data === 'string' && ENHANCED_CODE.test(data))
      super.send(code, this._ready ? data : data.replace(ENHANCED_CODE, ''), false);
    else super.send(code, data, context);
    const socket = this._socket;
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }
}
