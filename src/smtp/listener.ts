import {
  SMTPServer,
  type SMTPServerDataStream,
  type SMTPServerOptions,
  type SMTPServerSession,
} from 'smtp-server';
import { type ListenAddress, parseListen } from '../config/schema.ts';
import { type Clock, SECOND } from '../core/clock.ts';
import { createErrorLog, type Log } from '../core/log.ts';
import { storageFailure } from '../store/failure.ts';
import { type BodyReading, type HeldBytes, readBody } from './body.ts';
import type { CertificateSource } from './certificate.ts';
import { type ConnectionLimits, createConnections } from './connections.ts';
import { translateProxyHeaders } from './proxy-header.ts';
import { SmtpReply, tryLater } from './reply.ts';

/**
 * What both of our SMTP listeners have in common: the package behind them with its traps disarmed, STARTTLS,
 * bounds on connections and mails, and an orderly end. What a recipient or a mail means is not known here.
 *
 * The package ends DATA at CRLF.CRLF alone, so a bare LF is part of the mail and smuggles nothing; our parsers
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
  limits: ConnectionLimits & { mailBytes: number; recipients: number; idleMs: number };
  held: HeldBytes;
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
  >;
  /** Connected, and not yet greeted. */
  onConnect?(session: SMTPServerSession): void;
  /** May it begin a mail? Null: yes. */
  onMail?(session: SMTPServerSession): SmtpReply | null;
  /** Null: the recipient is taken. */
  onRecipient(address: string, session: SMTPServerSession): SmtpReply | null;
  /**
   * What became of the mail: the text of the 250, which means that it is on disk. Any error other than an
   * SmtpReply is a fault of ours, and answered so that the client comes again.
   */
  onData(mail: Buffer, session: SMTPServerSession): Promise<string | SmtpReply>;
}

export interface Listener {
  listen(): Promise<void>;
  /** Where it listens, port 0 resolved; null when it does not. */
  address(): ListenAddress | null;
  connections(): number;
  /** Takes no new connection or mail; mails under way have `graceMs` to end. */
  close(graceMs: number): Promise<void>;
}

/** Connections beyond the limit that the package holds while they are told so. */
const MARGIN = 100;
const SWEEP_MS = 2 * SECOND;

export async function createListener(settings: ListenerSettings): Promise<Listener> {
  const { name, hostname, limits, log } = settings;
  const logError = createErrorLog(log);
  const connections = createConnections({ clock: settings.clock, limits, hangUp });

  const server = new SMTPServer({
    ...settings.options,
    ...(await settings.certificate.load()),
    minVersion: 'TLSv1.2',
    name: hostname,
    heloResponse: '%s',
    size: limits.mailBytes,
    rejectOversized: true,
    maxRecipients: limits.recipients,
    maxClients: limits.connections + MARGIN,
    socketTimeout: limits.idleMs,
    disableReverseLookup: true,
    hideENHANCEDSTATUSCODES: false,
    logger: false,
    useProxy: settings.proxies.length > 0 ? [...settings.proxies] : false,
    onConnect: (session, callback) => {
      settings.onConnect?.(session);
      callback(connections.admit(session));
    },
    onMailFrom: (_address, session, callback) =>
      callback(attempt(() => connections.begin(session) ?? settings.onMail?.(session) ?? null)),
    onRcptTo: ({ address }, session, callback) => callback(attempt(() => recipient(address, session))),
    onData: (stream, session, callback) => void answerMail(stream, session, callback),
    onClose: (session) => connections.left(session),
  });
  // Sockets that the package has not admitted yet, or has sent away.
  server.server.maxConnections = limits.connections + 2 * MARGIN;

  const ended: (() => void)[] = [translateProxyHeaders(server.server, settings.proxies)];

  function hangUp(session: SMTPServerSession, text: string): void {
    for (const connection of server.connections)
      if (connection.session === session) connection.send(421, text);
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
    const tooLarge = () => hangUp(session, 'This is far too large');
    const answer = await takeMail(readBody(stream, settings.held, limits.mailBytes, tooLarge), session);
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
      if (mail === 'too-much-at-once')
        return new SmtpReply(452, '4.3.1', 'Too much mail at once; please try again later');
      connections.enter(session, 'ours');
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
        server.once('error', reject);
        server.listen(address.port, address.host, () => {
          server.removeListener('error', reject);
          // Of single connections, from here on: broken off, or no TLS where TLS was to be.
          server.on('error', (error) => log.debug({ err: error, listener: name }, 'SMTP connection failed'));
          ended.push(settings.certificate.watch((pair) => server.updateSecureContext(pair)));
          const timer = setInterval(() => connections.sweep(), SWEEP_MS).unref();
          ended.push(() => clearInterval(timer));
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
