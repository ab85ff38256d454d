import type { SMTPServerDataStream, SMTPServerOptions, SMTPServerSession } from 'smtp-server';
import { type ListenAddress, parseListen } from '../config/setting-types.ts';
import { type Clock, SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { createErrorLog, type Log } from '../core/log.ts';
import { listenFault } from '../core/operator-fault.ts';
import { storageFailure } from '../store/database/failure.ts';
import { type BodyReading, readBody } from './body.ts';
import type { CertificateSource } from './certificate.ts';
import { type CommandRates, createCommandLimits } from './command-limits.ts';
import { createCommandQueue } from './command-queue.ts';
import { createConnections, type SmtpConnectionLimits } from './connections.ts';
import { createLogWindow } from './log-window.ts';
import { PacedServer } from './paced-server.ts';
import { translateProxyHeaders } from './proxy-header.ts';
import type { EvictionReason, MailUploadOptions, ReceiveBudget } from './receive-budget.ts';
import { SmtpRejection, tryLater } from './reply.ts';
import { createHandshakeCheck, createStallCheck, limitSockets } from './sockets.ts';

/*
 * The base of both SMTP listeners: smtp-server with secure defaults, STARTTLS, limits on connections, commands and
 * memory, and a graceful shutdown. The meaning of recipients and mails is left to its callbacks.
 *
 * smtp-server ends DATA at CRLF.CRLF only, so a bare LF is part of the mail and cannot smuggle commands; the parsers
 * treat it as a line end (RFC 5321 §2.3.8), and no mail is relayed byte for byte.
 */

export interface SmtpListenerDeps {
  /** The configuration key, `mx.listen`, for messages to the operator. */
  name: string;
  listen: string;
  hostname: string;
  certificate: CertificateSource;
  /** Proxies that begin each connection with a PROXY header. */
  proxies: readonly string[];
  limits: SmtpConnectionLimits & {
    mailBytes: number;
    recipients: number;
    idleMs: number;
    commandLength: number;
  };
  commandRates: CommandRates;
  /** Memory for the mails that are being received. */
  budget: ReceiveBudget;
  /** For limits and durations of sessions: setting the system clock does not change it. */
  monotonic: Clock;
  log: Log;
  /** Options of smtp-server that differ between the listeners. */
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
  /** Called before the greeting. */
  onConnect?(session: SMTPServerSession): void;
  /** Decides on MAIL; null: accepted. */
  onMail?(session: SMTPServerSession): SmtpRejection | null;
  /** Decides on RCPT; null: accepted. */
  onRecipient(address: string, session: SMTPServerSession): SmtpRejection | null;
  /** The share of the budget to which the memory for the session's next mail is charged. */
  uploader(session: SMTPServerSession): Omit<MailUploadOptions, 'evict'>;
  /**
   * Processes a mail. Resolves with the text of the 250 when its effects are durable, or with a rejection. An error is a
   * fault of this server and answered with 451.
   */
  onData(mail: Buffer, session: SMTPServerSession): Promise<string | SmtpRejection>;
  /** Whether a mail that was rejected after DATA counts as completed, too. */
  countsRejected?(session: SMTPServerSession): boolean;
  /** Called every few seconds while the listener is open. */
  onSweep?(): void;
}

export interface SmtpListener {
  listen(): Promise<void>;
  /** The bound address, port 0 resolved; null when it is not listening. */
  address(): ListenAddress | null;
  connections(): number;
  /** Accepts no new connection or mail; mails in progress have `graceMs` to end. */
  close(graceMs: number): Promise<void>;
}

/** Connections beyond the limit while they are greeted or rejected. */
const CONNECTION_MARGIN = 200;
const SWEEP_INTERVAL_MS = 2 * SECOND;

/**
 * Loads the certificate, and rejects with an OperatorFault when it cannot be used. `listen` binds the address, whose
 * usual faults are OperatorFaults, and begins a sweep every 2 s and the watch of the certificate; `close` ends both.
 */
export async function createSmtpListener(deps: SmtpListenerDeps): Promise<SmtpListener> {
  const { name, hostname, limits, log } = deps;
  const { monotonic, budget } = deps;
  const logError = createErrorLog(log);
  const connections = createConnections({ clock: monotonic, limits, disconnect });
  const commands = createCommandLimits(monotonic, deps.commandRates);
  const rejections = createLogWindow(monotonic, log, 'SMTP clients disconnected for exceeding limits');
  const stalls = createStallCheck(monotonic);
  const endSlowHandshakes = createHandshakeCheck(monotonic);

  const options: SMTPServerOptions = {
    ...deps.options,
    ...(await deps.certificate.load()),
    minVersion: 'TLSv1.2',
    name: hostname,
    heloResponse: '%s',
    size: limits.mailBytes,
    rejectOversized: true,
    maxRecipients: limits.recipients,
    maxCommandLength: limits.commandLength,
    maxClients: limits.connections + CONNECTION_MARGIN,
    socketTimeout: limits.idleMs,
    disableReverseLookup: true,
    hideENHANCEDSTATUSCODES: false,
    logger: false,
    useProxy: deps.proxies.length > 0 ? [...deps.proxies] : false,
    onConnect: (session, callback) => {
      deps.onConnect?.(session);
      const rejection = commands.connect(session) ?? connections.admit(session);
      if (rejection !== null) onRejected(session.remoteAddress, rejection);
      callback(rejection);
    },
    onMailFrom: (_address, session, callback) =>
      callback(attempt(() => connections.begin(session) ?? deps.onMail?.(session) ?? null)),
    onRcptTo: ({ address }, session, callback) => callback(attempt(() => checkRecipient(address, session))),
    onData: (stream, session, callback) => void answerMail(stream, session, callback),
    onClose: (session) => connections.remove(session),
  };
  const sweeps = createLoop({
    name: `${name} sweep`,
    run: sweep,
    intervalMs: SWEEP_INTERVAL_MS,
    firstMs: SWEEP_INTERVAL_MS,
    log,
  });
  const server = new PacedServer(options, { limits: commands, queue: createCommandQueue(), onRejected });
  // Includes sockets that smtp-server has not admitted yet, or has rejected.
  server.server.maxConnections = limits.connections + 2 * CONNECTION_MARGIN;

  const cleanups: (() => Promise<void> | void)[] = [translateProxyHeaders(server.server, deps.proxies)];
  const removeClosedSockets = limitSockets(server.server, limits.perAddress, deps.proxies);

  function disconnect(session: SMTPServerSession, text: string): void {
    send421(session, `4.7.0 ${text}`);
  }

  /** The server closes the connection after the reply. */
  function send421(session: SMTPServerSession, text: string): void {
    for (const connection of server.connections)
      if (connection.session === session) connection.send(421, text);
  }

  function onRejected(remoteAddress: string, { message }: SmtpRejection): void {
    rejections.count(remoteAddress, { listener: name, reply: message });
  }

  function evict(session: SMTPServerSession, reason: EvictionReason): void {
    const rejection = new SmtpRejection(421, '4.3.2', EVICTION_TEXTS[reason]);
    onRejected(session.remoteAddress, rejection);
    send421(session, rejection.message);
  }

  function sweep(): void {
    connections.sweep();
    budget.sweep();
    rejections.sweep();
    for (const connection of server.connections) {
      if (!stalls.isStalled(connection._socket)) continue;
      rejections.count(connection.remoteAddress, { listener: name, reply: 'replies not read' });
      connection._socket.destroy();
    }
    endSlowHandshakes(server._pendingSockets.values());
    removeClosedSockets();
    deps.onSweep?.();
  }

  /** Answers 451 when the decision throws, because of the database for example. */
  function attempt(decide: () => SmtpRejection | null): SmtpRejection | null {
    try {
      return decide();
    } catch (error) {
      logError(storageFailure(error)?.kind ?? null, { err: error, listener: name }, 'SMTP command failed');
      return tryLater();
    }
  }

  function checkRecipient(address: string, session: SMTPServerSession): SmtpRejection | null {
    const rejection = deps.onRecipient(address, session);
    return rejection === null ? null : (connections.rejectedRecipient(session) ?? rejection);
  }

  async function answerMail(
    stream: SMTPServerDataStream,
    session: SMTPServerSession,
    callback: (error: Error | null, text?: string) => void,
  ): Promise<void> {
    // smtp-server resets the envelope with its reply.
    const recipients = session.envelope.rcptTo.length;
    const upload = budget.open({
      ...deps.uploader(session),
      evict: (reason) => {
        reading.release();
        evict(session, reason);
      },
    });
    const onTooLarge = () => disconnect(session, 'The mail is far too large');
    const reading = readBody(stream, upload, limits.mailBytes, onTooLarge);
    const answer = await processMail(reading, session);
    if (!(answer instanceof SmtpRejection) || deps.countsRejected?.(session) === true) {
      commands.complete(session, recipients);
      connections.complete(session);
    }
    if (answer instanceof SmtpRejection) callback(answer);
    else callback(null, answer);
    connections.enter(session, 'idle');
  }

  async function processMail(
    reading: BodyReading,
    session: SMTPServerSession,
  ): Promise<string | SmtpRejection> {
    const mail = await reading.body.catch(() => 'gone' as const);
    // The client has disconnected and receives no reply.
    if (mail === 'gone') return tryLater();
    try {
      // smtp-server counts the size, too, and sends its own reply.
      if (mail === 'too-large') return new SmtpRejection(552, '5.3.4', 'The mail is too large');
      if (mail === 'out-of-memory')
        return new SmtpRejection(452, '4.3.1', 'Too much mail is being received; please try again later');
      connections.enter(session, 'processing');
      return await deps.onData(mail, session);
    } catch (error) {
      logError(
        storageFailure(error)?.kind ?? null,
        { err: error, listener: name },
        'mail could not be processed',
      );
      return tryLater();
    } finally {
      reading.release();
    }
  }

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        const address = parseListen(deps.listen);
        if (address === null) return reject(new Error(`${name}: "${deps.listen}" is not an address`));
        const onError = (error: Error) => reject(listenFault(name, address, error));
        server.once('error', onError);
        server.listen(address.port, address.host, () => {
          server.removeListener('error', onError);
          // Errors of single connections: aborted, or failed in the TLS handshake.
          server.on('error', (error) => log.debug({ err: error, listener: name }, 'SMTP connection failed'));
          cleanups.push(deps.certificate.watch((pair) => server.updateSecureContext(pair)));
          sweeps.start();
          cleanups.push(sweeps.stop, rejections.flush);
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
    close: async (graceMs) => {
      const cleaned = Promise.all(cleanups.map(async (cleanup) => cleanup()));
      connections.drain();
      server.options.closeTimeout = graceMs;
      await new Promise<void>((resolve) => server.close(resolve));
      await cleaned;
    },
  };
}

/** Texts of the replies to clients whose mail is evicted from memory. */
const EVICTION_TEXTS: Record<EvictionReason, string> = {
  'memory-needed': 'Other clients need this memory; please try again later',
  'too-slow': 'The mail arrives too slowly; please try again later',
};
