import type { SMTPServerDataStream, SMTPServerOptions, SMTPServerSession } from 'smtp-server';
import { type ListenAddress, parseListen } from '../config/schema.ts';
import { type Clock, SECOND } from '../core/clock.ts';
import { createErrorLog, type Log } from '../core/log.ts';
import { listenFault } from '../core/operator-fault.ts';
import { storageFailure } from '../store/failure.ts';
import { type BodyReading, readBody } from './body.ts';
import type { CertificateSource } from './certificate.ts';
import { type CommandRates, createCommandLimits } from './command-limits.ts';
import { type ConnectionLimits, createConnections } from './connections.ts';
import { createLogWindow } from './log-window.ts';
import type { EvictionReason, ReceiveBudget, UploadOptions } from './mx/receive-budget.ts';
import { PacedServer } from './paced-server.ts';
import { translateProxyHeaders } from './proxy-header.ts';
import { SmtpReply, tryLater } from './reply.ts';
import { boundSockets, createHandshakeCheck, createStallCheck } from './sockets.ts';
import { createTurns } from './turns.ts';

/**
 * What both SMTP listeners have in common: the package behind them with its defaults corrected, STARTTLS, limits on
 * connections, commands and memory, and an orderly end. It does not know what a recipient or a mail means.
 *
 * The package ends DATA at CRLF.CRLF alone, so a bare LF is part of the mail and smuggles nothing; the parsers
 * take it for a line's end (RFC 5321 §2.3.8), and no mail is passed on as it came.
 */
export interface ListenerSettings {
  /** `mx.listen`, for messages to the operator. */
  name: string;
  listen: string;
  hostname: string;
  certificate: CertificateSource;
  /** Proxies that begin each connection with a PROXY header. */
  proxies: readonly string[];
  limits: ConnectionLimits & { mailBytes: number; recipients: number; idleMs: number; commandLength: number };
  commandRates: CommandRates;
  /** Memory for the mails that are being received. */
  budget: ReceiveBudget;
  clock: Clock;
  log: Log;
  /** Options of the package that are not the same for both. */
  options: Pick<
    SMTPServerOptions,
    | 'secure'
    | 'disabledCommands'
    | 'authMethods'
    | 'authRequiredMessage'
    | 'allowInsecureAuth'
    | 'onAuth'
    | 'onSecure'
    | 'lenientAddressParsing'
    | 'ciphers'
  >;
  /** Connected, and not yet greeted. */
  onConnect?(session: SMTPServerSession): void;
  /** May it begin a mail? Null: yes. */
  onMail?(session: SMTPServerSession): SmtpReply | null;
  /** Null: the recipient is taken. */
  onRecipient(address: string, session: SMTPServerSession): SmtpReply | null;
  /** In the budget, who holds the memory for the mail that this session is about to send. */
  uploader(session: SMTPServerSession): Omit<UploadOptions, 'evict'>;
  /**
   * What became of the mail: the text of the 250, which means that it is on disk. Any error other than an
   * SmtpReply is a fault of this server, and answered with 451.
   */
  onData(mail: Buffer, session: SMTPServerSession): Promise<string | SmtpReply>;
  /** Whether a mail that was refused after DATA counts as completed, too. */
  countsRefused?(session: SMTPServerSession): boolean;
  /** Every few seconds while it listens. */
  onSweep?(): void;
}

export interface Listener {
  listen(): Promise<void>;
  /** Where it listens, port 0 resolved; null when it does not. */
  address(): ListenAddress | null;
  connections(): number;
  /** Takes no new connection or mail; mails under way have `graceMs` to end. */
  close(graceMs: number): Promise<void>;
}

/** Connections beyond the limit, while they are greeted or refused. */
const MARGIN = 200;
const SWEEP_MS = 2 * SECOND;

export async function createListener(settings: ListenerSettings): Promise<Listener> {
  const { name, hostname, limits, log } = settings;
  const { clock, budget } = settings;
  const logError = createErrorLog(log);
  const connections = createConnections({ clock, limits, hangUp });
  const commands = createCommandLimits(clock, settings.commandRates);
  const refusals = createLogWindow(clock, log, 'SMTP clients disconnected for exceeding limits');
  const stalls = createStallCheck(clock);
  const endSlowHandshakes = createHandshakeCheck(clock);

  const options: SMTPServerOptions = {
    ...settings.options,
    ...(await settings.certificate.load()),
    minVersion: 'TLSv1.2',
    name: hostname,
    heloResponse: '%s',
    size: limits.mailBytes,
    rejectOversized: true,
    maxRecipients: limits.recipients,
    maxCommandLength: limits.commandLength,
    maxClients: limits.connections + MARGIN,
    socketTimeout: limits.idleMs,
    disableReverseLookup: true,
    hideENHANCEDSTATUSCODES: false,
    logger: false,
    useProxy: settings.proxies.length > 0 ? [...settings.proxies] : false,
    onConnect: (session, callback) => {
      settings.onConnect?.(session);
      const refusal = commands.connect(session) ?? connections.admit(session);
      if (refusal !== null) onRefused(session.remoteAddress, refusal);
      callback(refusal);
    },
    onMailFrom: (_address, session, callback) =>
      callback(attempt(() => connections.begin(session) ?? settings.onMail?.(session) ?? null)),
    onRcptTo: ({ address }, session, callback) => callback(attempt(() => recipient(address, session))),
    onData: (stream, session, callback) => void answerMail(stream, session, callback),
    onClose: (session) => connections.left(session),
  };
  const server = new PacedServer(options, { limits: commands, turns: createTurns(), onRefused });
  // Sockets that the package has not admitted yet, or has refused.
  server.server.maxConnections = limits.connections + 2 * MARGIN;

  const ended: (() => void)[] = [translateProxyHeaders(server.server, settings.proxies)];
  const forgetSockets = boundSockets(server.server, limits.perAddress, settings.proxies);

  function hangUp(session: SMTPServerSession, text: string): void {
    for (const connection of server.connections)
      if (connection.session === session) connection.send(421, `4.7.0 ${text}`);
  }

  function onRefused(remoteAddress: string, { message }: SmtpReply): void {
    refusals.count(remoteAddress, { listener: name, reply: message });
  }

  function evict(session: SMTPServerSession, reason: EvictionReason): void {
    const reply = new SmtpReply(421, '4.3.2', EVICTIONS[reason]);
    onRefused(session.remoteAddress, reply);
    for (const connection of server.connections)
      if (connection.session === session) connection.send(421, reply.message);
  }

  function sweep(): void {
    connections.sweep();
    budget.sweep();
    refusals.sweep();
    for (const connection of server.connections) {
      if (!stalls.isStalled(connection._socket)) continue;
      refusals.count(connection.remoteAddress, { listener: name, reply: 'replies were not read' });
      connection._socket.destroy();
    }
    endSlowHandshakes(server._pendingSockets.values());
    forgetSockets();
    settings.onSweep?.();
  }

  /** A fault in a decision (the database, say) is no verdict on the client. */
  function attempt(decide: () => SmtpReply | null): SmtpReply | null {
    try {
      return decide();
    } catch (error) {
      logError(
        storageFailure(error)?.kind ?? null,
        { err: error, listener: name },
        'an SMTP command could not be answered',
      );
      return tryLater();
    }
  }

  function recipient(address: string, session: SMTPServerSession): SmtpReply | null {
    const refusal = settings.onRecipient(address, session);
    return refusal === null ? null : (connections.refused(session) ?? refusal);
  }

  async function answerMail(
    stream: SMTPServerDataStream,
    session: SMTPServerSession,
    callback: (error: Error | null, text?: string) => void,
  ): Promise<void> {
    // The package resets the envelope with its reply.
    const recipients = session.envelope.rcptTo.length;
    const upload = budget.open({
      ...settings.uploader(session),
      evict: (reason) => {
        reading.release();
        evict(session, reason);
      },
    });
    const tooLarge = () => hangUp(session, 'This is far too large');
    const reading = readBody(stream, upload, limits.mailBytes, tooLarge);
    const answer = await takeMail(reading, session);
    if (!(answer instanceof SmtpReply) || settings.countsRefused?.(session) === true) {
      commands.complete(session, recipients);
      connections.complete(session);
    }
    if (answer instanceof SmtpReply) callback(answer);
    else callback(null, answer);
    connections.enter(session, 'idle');
  }

  async function takeMail(reading: BodyReading, session: SMTPServerSession): Promise<string | SmtpReply> {
    const mail = await reading.body.catch(() => 'gone' as const);
    // Nobody hears this any more.
    if (mail === 'gone') return tryLater();
    try {
      // Answered by the package, which counts for itself.
      if (mail === 'too-large') return new SmtpReply(552, '5.3.4', 'The mail is too large');
      if (mail === 'no-room')
        return new SmtpReply(452, '4.3.1', 'Too much mail at once; please try again later');
      connections.enter(session, 'processing');
      return await settings.onData(mail, session);
    } catch (error) {
      logError(
        storageFailure(error)?.kind ?? null,
        { err: error, listener: name },
        'a mail could not be taken',
      );
      return tryLater();
    } finally {
      reading.release();
    }
  }

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        const address = parseListen(settings.listen);
        if (address === null) return reject(new Error(`${name}: "${settings.listen}" is not an address`));
        const onError = (error: Error) => reject(listenFault(name, address, error));
        server.once('error', onError);
        server.listen(address.port, address.host, () => {
          server.removeListener('error', onError);
          // Of single connections, from here on: broken off, or no TLS where TLS was to be.
          server.on('error', (error) => log.debug({ err: error, listener: name }, 'SMTP connection failed'));
          ended.push(settings.certificate.watch((pair) => server.updateSecureContext(pair)));
          const timer = setInterval(sweep, SWEEP_MS).unref();
          ended.push(() => clearInterval(timer), refusals.flush);
          resolve();
        });
      }),
    address: () => {
      const address = server.server.address();
      return address === null || typeof address === 'string'
        ? null
        : { host: address.address, port: address.port };
    },
    connections: () => connections.count(),
    close: (graceMs) => {
      for (const end of ended) end();
      connections.drain();
      server.options.closeTimeout = graceMs;
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

const EVICTIONS: Record<EvictionReason, string> = {
  'room-needed': 'Other clients need this memory; please try again later',
  'too-slow': 'The mail arrives too slowly; please try again later',
};
