import type { SMTPServerDataStream, SMTPServerOptions, SMTPServerSession } from 'smtp-server';
import type { Config } from '../config/schema.ts';
import { type ListenAddress, parseListen } from '../config/setting-types.ts';
import { MINUTE, SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { eventLoopTurns } from '../core/concurrency/slices.ts';
import { createErrorLog } from '../core/log.ts';
import { listenFault } from '../core/operator-fault.ts';
import type { Runtime } from '../core/runtime.ts';
import { storageFailure } from '../store/database/failure.ts';
import type { CertificateSource } from './certificate.ts';
import { type CommandRates, createCommandLimits } from './command-limits.ts';
import { CONNECTION_LIMITS, createConnections } from './connections.ts';
import { createLogWindow } from './log-window.ts';
import { createCommandQueue, PacedServer } from './paced-server.ts';
import {
  type BudgetOptions,
  createReceiveBudget,
  type EvictionReason,
  type MailUpload,
  type MailUploadOptions,
} from './receive-budget.ts';
import { SmtpRejection, tryLater } from './reply.ts';
import { createHandshakeCheck, createStallCheck, limitSockets, translateProxyHeaders } from './sockets.ts';

/*
 * The base of both SMTP listeners: smtp-server with secure defaults, STARTTLS, limits on connections, commands and
 * memory, and a graceful shutdown. The meaning of recipients and mails is left to its callbacks.
 *
 * smtp-server ends DATA at CRLF.CRLF only, so a bare LF is part of the mail and cannot smuggle commands; the parsers
 * treat it as a line end (RFC 5321 §2.3.8), and no mail is relayed byte for byte.
 */

/** What differs between the listeners. */
export interface ListenerOptions {
  /** The section of its settings. */
  section: 'mx' | 'submission';
  settings: Pick<Config['mx'], 'listen' | 'proxyProtocol' | 'connections' | 'connectionsPerAddress'>;
  certificate: CertificateSource;
  /** Maximum size of a mail. */
  mailBytes: number;
  commandLength: number;
  commandRates: CommandRates;
  /** Memory for the mails that are being received and parsed, in mails of the maximum size, and its shares. */
  budget: Omit<BudgetOptions, 'bytes'> & { mails: number };
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
  /** Called when all connections have ended. */
  onClosed(): Promise<void>;
}

export type SmtpListener = Awaited<ReturnType<typeof createSmtpListener>>;

/** smtp-server's extra commands, and those for other kinds of proxies. */
export const DISABLED_COMMANDS: readonly string[] = ['XCLIENT', 'XFORWARD', 'WIZ', 'SHELL', 'KILL'];
/** RFC 5321 §4.5.3.1.8: a limit must be at least 100. Python's smtplib drops the rest without an error. */
export const MAX_RECIPIENTS = 100;
/** RFC 5321 §4.5.3.2.7. */
const IDLE_TIMEOUT_MS = 5 * MINUTE;
/** Connections beyond the limit while they are greeted or rejected. */
const CONNECTION_MARGIN = 200;
const SWEEP_INTERVAL_MS = 2 * SECOND;

/**
 * Loads the certificate, and rejects with an OperatorFault when it cannot be used. `listen` binds the address, whose
 * usual faults are OperatorFaults, and begins a sweep every 2 s and the watch of the certificate; `close` ends both.
 */
export async function createSmtpListener(
  { config, monotonic, log }: Pick<Runtime, 'monotonic' | 'log'> & { config: Pick<Config, 'hostname'> },
  listener: ListenerOptions,
) {
  const { section, mailBytes } = listener;
  const {
    listen,
    proxyProtocol: proxies,
    connections: most,
    connectionsPerAddress: perAddress,
  } = listener.settings;
  /** The configuration key, for messages to the operator. */
  const name = `${section}.listen`;
  const limits = { ...CONNECTION_LIMITS, connections: most, perAddress };
  const { mails, ...shares } = listener.budget;
  const budget = createReceiveBudget(monotonic, { ...shares, bytes: mails * mailBytes });
  const logError = createErrorLog(log);
  const connections = createConnections(monotonic, limits, disconnect);
  const commands = createCommandLimits(monotonic, listener.commandRates);
  const rejections = createLogWindow(monotonic, log, 'SMTP clients disconnected for exceeding limits');
  const isStalled = createStallCheck(monotonic);
  const endSlowHandshakes = createHandshakeCheck(monotonic);

  const options: SMTPServerOptions = {
    ...listener.options,
    ...(await listener.certificate.load()),
    minVersion: 'TLSv1.2',
    name: config.hostname,
    heloResponse: '%s',
    size: mailBytes,
    rejectOversized: true,
    maxRecipients: MAX_RECIPIENTS,
    maxCommandLength: listener.commandLength,
    maxClients: limits.connections + CONNECTION_MARGIN,
    socketTimeout: IDLE_TIMEOUT_MS,
    disableReverseLookup: true,
    hideENHANCEDSTATUSCODES: false,
    logger: false,
    useProxy: proxies.length > 0 ? [...proxies] : false,
    onConnect: (session, callback) => {
      listener.onConnect?.(session);
      const rejection = commands.connect(session) ?? connections.admit(session);
      if (rejection !== null) onRejected(session.remoteAddress, rejection);
      callback(rejection);
    },
    onMailFrom: (_address, session, callback) =>
      callback(attempt(() => connections.begin(session) ?? listener.onMail?.(session) ?? null)),
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

  const cleanups: (() => Promise<void> | void)[] = [translateProxyHeaders(server.server, proxies)];
  const removeClosedSockets = limitSockets(server.server, perAddress, proxies);

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
      if (!isStalled(connection._socket)) continue;
      rejections.count(connection.remoteAddress, { listener: name, reply: 'replies not read' });
      connection._socket.destroy();
    }
    endSlowHandshakes(server._pendingSockets.values());
    removeClosedSockets();
    listener.onSweep?.();
  }

  /** Answers 451 when the decision throws, because of the database for example. */
  function attempt(decide: () => SmtpRejection | null): SmtpRejection | null {
    try {
      return decide();
    } catch (error) {
      return failed(error, 'SMTP command failed');
    }
  }

  function failed(error: unknown, message: string): SmtpRejection {
    logError(storageFailure(error)?.kind ?? null, { err: error, listener: name }, message);
    return tryLater();
  }

  function checkRecipient(address: string, session: SMTPServerSession): SmtpRejection | null {
    const rejection = listener.onRecipient(address, session);
    return rejection === null ? null : (connections.rejectedRecipient(session) ?? rejection);
  }

  async function answerMail(
    stream: SMTPServerDataStream,
    session: SMTPServerSession,
    callback: (error: Error | null, text?: string) => void,
  ): Promise<void> {
    // smtp-server resets the envelope with its reply.
    const recipients = session.envelope.rcptTo.length;
    const uploader = listener.uploader(session);
    const upload = budget.open({
      ...uploader,
      evict: (reason) => {
        reading.release();
        evict(session, reason);
      },
    });
    const onTooLarge = () => disconnect(session, 'The mail is far too large');
    const turn = () => eventLoopTurns.next(uploader.holder);
    const reading = readBody(stream, upload, mailBytes, { onTooLarge, turn });
    const answer = await processMail(reading, session);
    if (!(answer instanceof SmtpRejection) || listener.countsRejected?.(session) === true) {
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
      return await listener.onData(mail, session);
    } catch (error) {
      return failed(error, 'mail could not be processed');
    } finally {
      reading.release();
    }
  }

  return {
    listen: (): Promise<void> =>
      new Promise((resolve, reject) => {
        const address = parseListen(listen);
        if (address === null) return reject(new Error(`${name}: "${listen}" is not an address`));
        const onError = (error: Error) => reject(listenFault(name, address, error));
        server.once('error', onError);
        server.listen(address.port, address.host, () => {
          server.removeListener('error', onError);
          // Errors of single connections: aborted, or failed in the TLS handshake.
          server.on('error', (error) => log.debug({ err: error, listener: name }, 'SMTP connection failed'));
          cleanups.push(listener.certificate.watch((pair) => server.updateSecureContext(pair)));
          sweeps.start();
          cleanups.push(sweeps.stop, rejections.flush);
          resolve();
        });
      }),
    /** The bound address, port 0 resolved; null when it is not listening. */
    address: (): ListenAddress | null => {
      const address = server.server.address();
      return address === null || typeof address === 'string'
        ? null
        : { host: address.address, port: address.port };
    },
    connections: (): number => connections.count(),
    /** Accepts no new connection or mail; mails in progress have `graceMs` to end. */
    close: async (graceMs: number): Promise<void> => {
      const cleaned = Promise.all(cleanups.map(async (cleanup) => cleanup()));
      connections.drain();
      server.options.closeTimeout = graceMs;
      await new Promise<void>((resolve) => server.close(resolve));
      await cleaned;
      await listener.onClosed();
    },
  };
}

/** Texts of the replies to clients whose mail is evicted from memory. */
const EVICTION_TEXTS: Record<EvictionReason, string> = {
  'memory-needed': 'Other clients need this memory; please try again later',
  'too-slow': 'The mail arrives too slowly; please try again later',
};

/**
 * The received content of a mail, or the limit that it exceeded: the size of one mail, or the memory for all mails that
 * are being received. Content beyond a limit is read and discarded.
 */
type Body = Buffer | 'too-large' | 'out-of-memory';

interface BodyReading {
  /** Rejects when the client disconnects before the end. */
  body: Promise<Body>;
  /** Releases the reserved memory; called when the mail has been processed. */
  release(): void;
}

/**
 * Maximum number of chunks of one mail. Each removed dot begins a new chunk, which costs as much as thousands of bytes:
 * a mail of nothing but dots would use all CPU time.
 */
const MAX_CHUNKS = 100_000;

/**
 * Bytes of a mail that are read in one turn of its uploader. Without this Node reads up to 2 MiB of each connection in
 * every iteration of the event loop.
 */
const BYTES_PER_TURN = 64 * 1024;

/**
 * Reads the stream of one DATA command to its end (RFC 5321 §4.5.2: dots have been removed). Waits for `turn` after every
 * `BYTES_PER_TURN`; meanwhile smtp-server does not read from the connection. `onTooLarge` is called once when the client
 * sends more than twice the limit, or too many chunks.
 */
function readBody(
  stream: SMTPServerDataStream,
  upload: MailUpload,
  maxBytes: number,
  { onTooLarge, turn }: { onTooLarge: () => void; turn: () => Promise<void> },
): BodyReading {
  let content = createGrowingBuffer(upload, maxBytes);
  let chunks = 0;
  let bytesOfTurn = 0;
  let problem: 'too-large' | 'out-of-memory' | null = null;
  let isReported = false;

  const release = () => {
    upload.release();
    content = createGrowingBuffer(upload, maxBytes);
  };
  const discard = (reason: 'too-large' | 'out-of-memory') => {
    problem ??= reason;
    release();
  };
  const onChunk = (chunk: Buffer) => {
    upload.progress(chunk.length);
    if (stream.byteLength > maxBytes) discard('too-large');
    if (!isReported && (++chunks > MAX_CHUNKS || stream.byteLength > 2 * maxBytes)) {
      isReported = true;
      discard('too-large');
      onTooLarge();
    }
    if (problem === null && !content.add(chunk)) discard('out-of-memory');
    bytesOfTurn += chunk.length;
    if (bytesOfTurn >= BYTES_PER_TURN) void readInNextTurn();
  };
  const readInNextTurn = async () => {
    bytesOfTurn = 0;
    stream.pause();
    await turn();
    stream.resume();
  };
  const body = new Promise<Body>((resolve, reject) => {
    stream.on('data', onChunk);
    stream.once('end', () => {
      upload.finish();
      resolve(problem ?? content.bytes());
    });
    // An `error` is followed by `close`; after `end` this has no effect.
    stream.once('error', reject);
    stream.once('close', () => {
      if (!stream.readableEnded) release();
      reject(new Error('the client disconnected before the end of the mail'));
    });
  });
  return { body, release };
}

/**
 * One buffer that grows by doubling. A list of chunks would take many times the memory of a mail in which each line
 * begins with a dot, because each removed dot ends a chunk.
 */
function createGrowingBuffer(upload: MailUpload, maxBytes: number) {
  let buffer = Buffer.alloc(0);
  let length = 0;
  return {
    /** False, and nothing added, when the budget has no memory for it. */
    add: (chunk: Buffer): boolean => {
      if (length + chunk.length > buffer.length) {
        const doubled = Math.min(Math.max(2 * buffer.length, 16_384), maxBytes);
        const size = Math.max(doubled, length + chunk.length);
        if (!upload.reserve(size - buffer.length)) return false;
        const larger = Buffer.allocUnsafe(size);
        buffer.copy(larger, 0, 0, length);
        buffer = larger;
      }
      chunk.copy(buffer, length);
      length += chunk.length;
      return true;
    },
    bytes: (): Buffer => buffer.subarray(0, length),
  };
}
