import type { Worker } from 'node:worker_threads';
import type { SMTPServerAuthentication, SMTPServerSession } from 'smtp-server';
import type { Authenticator, Caller, Credentials } from '../../accounts/authenticate.ts';
import { isLoopback } from '../../accounts/caller-addresses.ts';
import type { RateLimits } from '../../accounts/rate-limits.ts';
import type { Config } from '../../config/schema.ts';
import { type Clock, MINUTE } from '../../core/clock.ts';
import { createErrorLog, type Log } from '../../core/log.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { parseMailbox } from '../../mail/address.ts';
import type { Acceptance } from '../../sending/accept.ts';
import type { SendResult } from '../../sending/draft.ts';
import type { AccountRow } from '../../store/accounts.ts';
import type { UseCase } from '../../store/domains/domains.ts';
import { storageFailure } from '../../store/failure.ts';
import { createCertificateSource, filesOf } from '../certificate.ts';
import { SUBMISSION_COMMAND_RATES } from '../command-limits.ts';
import { CONNECTION_LIMITS } from '../connections.ts';
import { createListener, type Listener } from '../listener.ts';
import { createMailReader } from '../mx/parse-pool.ts';
import { createReceiveBudget } from '../mx/receive-budget.ts';
import { SmtpReply, tryLater } from '../reply.ts';
import { createAuthFailures } from './auth-failures.ts';
import { authReplyTo, replyTo } from './replies.ts';
import { submissionRequest, wantedStream } from './request.ts';
import type { SubmittedMail } from './submitted-mail.ts';

/**
 * The submission listener (RFC 6409): programs that speak only SMTP send here, and pass the same door as over
 * HTTP. User is the account's id, password one of its transactional or marketing keys; off loopback nobody is
 * asked for a password before the connection is encrypted.
 */
export interface SubmissionSettings {
  config: Pick<Config, 'hostname' | 'mx' | 'submission' | 'limits'>;
  clock: Clock;
  log: Log;
  authenticator: Authenticator;
  rateLimits: RateLimits;
  acceptance: Acceptance;
  account(accountId: string): AccountRow | null;
  /** A thread that runs parse-worker. */
  startReader(): Worker;
}

/** As over HTTP; of a client that has more, the rest comes in a transaction of its own. */
const RECIPIENTS = 50;
const IDLE_MS = 5 * MINUTE;
/** RFC 4954 §4: a response of AUTH may have 12,288 octets. */
const COMMAND_LENGTH = 12_288 + 512;
/** Memory for mails that are being received and read, in mails of the largest size. */
const BUDGET_MAILS = 32;
/** The part of one account. With two accounts that use up theirs, the slowest upload makes room for a third. */
const BUDGET_SHARES = { holderShare: 1 / 2, networkShare: 1, reserve: 0 };
/** AEAD suites with forward secrecy alone (RFC 9325 §4.2), for TLS 1.3 and 1.2. */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');
const SCOPES = { tx: 'transactional', mk: 'marketing' } as const;

/** Who logged in: shown again with each mail, so that a key that was revoked since is out at once. */
interface User {
  credentials: Credentials;
  streams: UseCase[];
}

export async function createSubmission(settings: SubmissionSettings): Promise<Listener> {
  const { config, clock, log, authenticator, rateLimits, acceptance } = settings;
  const { submission, hostname } = config;
  const logError = createErrorLog(log);
  const users = new WeakMap<SMTPServerSession, User>();
  const failures = createAuthFailures({ clock, log });

  /** The streams that these credentials open, or why none. */
  function logIn(credentials: Credentials): UseCase[] | Refusal {
    const transactional = authenticator.authenticate(credentials, SCOPES.tx);
    if (isRefusal(transactional) && transactional.code !== 'INSUFFICIENT_SCOPE') return transactional;
    const marketing = authenticator.authenticate(credentials, SCOPES.mk);
    if (isRefusal(transactional)) return isRefusal(marketing) ? marketing : ['mk'];
    return isRefusal(marketing) ? ['tx'] : ['tx', 'mk'];
  }

  function onAuth(auth: SMTPServerAuthentication, session: SMTPServerSession): SmtpReply | null {
    const credentials: Credentials = {
      secret: auth.password ?? '',
      accountId: auth.username ?? '',
      from: { address: session.remoteAddress, forwarded: false },
    };
    const streams = logIn(credentials);
    if (isRefusal(streams)) return failures.count(session, streams.code) ?? authReplyTo(streams);
    users.set(session, { credentials, streams });
    return null;
  }

  /** The package does not catch errors of its callbacks: one that the database throws would end the process. */
  function tryAuth(auth: SMTPServerAuthentication, session: SMTPServerSession): SmtpReply | null {
    try {
      return onAuth(auth, session);
    } catch (error) {
      logError(
        storageFailure(error)?.kind ?? null,
        { err: error, remoteAddress: session.remoteAddress },
        'SMTP login failed',
      );
      // RFC 4954 §6
      return new SmtpReply(454, '4.7.0', 'Temporary authentication failure; please try again later');
    }
  }

  /** Where a password may be asked for. */
  function isSafe(session: SMTPServerSession): boolean {
    // Through a proxy nobody is known to be on this machine.
    return session.secure || (submission.proxyProtocol.length === 0 && isLoopback(session.remoteAddress));
  }

  function onMail(session: SMTPServerSession): SmtpReply | null {
    if (users.has(session) && session.user) return null;
    return isSafe(session)
      ? new SmtpReply(530, '5.7.0', AUTH_REQUIRED)
      : new SmtpReply(530, '5.7.0', 'Must issue a STARTTLS command first');
  }

  async function take(raw: Buffer, session: SMTPServerSession): Promise<string | SmtpReply> {
    const account = users.get(session)?.credentials.accountId ?? '';
    const turn = { priority: 'normal', caller: account, subject: account } as const;
    const reading = await reader.read({ purpose: 'submission', raw }, turn);
    if (reading === null) return new SmtpReply(451, '4.3.2', 'Too much mail at once; please try again later');
    if ('unreadable' in reading) return unreadable(reading.unreadable);
    if ('problem' in reading) return replyTo(refuse('VALIDATION_ERROR', reading.problem));
    const sent = await send(reading, session);
    return isRefusal(sent) ? replyTo(sent) : `OK: queued as ${sent}`;
  }

  /** The id of the first message, or of the job. */
  async function send(mail: SubmittedMail, session: SMTPServerSession): Promise<string | Refusal> {
    const user = users.get(session);
    if (user === undefined) return refuse('UNAUTHENTICATED', 'Nobody is logged in');
    const useCase = user.streams.length === 1 ? (user.streams[0] ?? 'tx') : wantedStream(mail);
    const caller = authenticator.authenticate(user.credentials, SCOPES[useCase]);
    if (isRefusal(caller)) return caller;
    const account = settings.account(caller.accountId);
    if (account === null) return refuse('UNAUTHENTICATED', 'The account is gone');
    const limited = overRate(caller);
    if (limited !== null) return limited;
    const envelope = session.envelope.rcptTo.map(({ address }) => address);
    const request = submissionRequest(mail, envelope, useCase);
    if (isRefusal(request)) return request;
    const { body, idempotencyKey: key } = request;
    const accepted = await acceptance.accept({
      sender: { account, useCase, allowFrom: caller.allowFrom, allowEssential: caller.allowEssential },
      body,
      appendFooter: !caller.strictCompliance,
      idempotency: key === null ? null : { endpoint: `submission/${SCOPES[useCase]}`, key },
      envelope: (data) => JSON.stringify(data),
    });
    if (isRefusal(accepted)) return accepted;
    const result: SendResult = accepted.kind === 'replayed' ? JSON.parse(accepted.body) : accepted.data;
    return 'jobId' in result ? result.jobId : result.messageId;
  }

  function overRate({ keyId }: Caller): Refusal | null {
    const rate = rateLimits.take(keyId, 'send');
    return rate?.allowed === false
      ? refuse('RATE_LIMITED', 'this key has used up its calls for the moment')
      : null;
  }

  const listener = await createListener({
    name: 'submission.listen',
    listen: submission.listen,
    hostname,
    certificate: createCertificateSource({
      files: filesOf('submission.tls', submission.tls) ?? filesOf('mx.tls', config.mx.tls),
      hostname,
      clock,
      log,
    }),
    proxies: submission.proxyProtocol,
    limits: {
      ...CONNECTION_LIMITS,
      connections: submission.connections,
      perAddress: submission.connectionsPerAddress,
      mailBytes: config.limits.sendBytes,
      recipients: RECIPIENTS,
      idleMs: IDLE_MS,
      commandLength: COMMAND_LENGTH,
    },
    commandRates: SUBMISSION_COMMAND_RATES,
    budget: createReceiveBudget(clock, { bytes: BUDGET_MAILS * config.limits.sendBytes, ...BUDGET_SHARES }),
    clock,
    log,
    options: {
      secure: submission.implicitTls,
      ciphers: CIPHERS,
      disabledCommands: [...NOT_HERE],
      authMethods: ['PLAIN', 'LOGIN'],
      authRequiredMessage: AUTH_REQUIRED,
      // Where it is not to be, AUTH is not offered at all: see onConnect.
      allowInsecureAuth: true,
      onAuth: (auth, session, callback) => {
        const refused = tryAuth(auth, session);
        if (refused === null) callback(null, { user: auth.username });
        else callback(refused);
      },
      onSecure: (_socket, session, callback) => {
        users.delete(session);
        session.disabledCommands = [...NOT_HERE];
        callback();
      },
    },
    onConnect: (session) => {
      if (!isSafe(session)) session.disabledCommands = [...NOT_HERE, 'AUTH'];
    },
    onMail,
    onRecipient: (address) => {
      const mailbox = parseMailbox(address);
      return typeof mailbox === 'string' ? new SmtpReply(553, '5.1.3', `The address ${mailbox}`) : null;
    },
    uploader: (session) => ({
      holder: users.get(session)?.credentials.accountId ?? '',
      network: null,
      isProven: false,
    }),
    onData: take,
    // An application may send much that is refused, to suppressed recipients for example.
    countsRefused: (session) => users.has(session),
    onSweep: failures.sweep,
  });
  const reader = createMailReader({ startThread: settings.startReader, log });
  return {
    ...listener,
    close: async (graceMs) => {
      await listener.close(graceMs);
      failures.flush();
      await reader.stop();
    },
  };
}

const AUTH_REQUIRED = 'Authentication required';

/** The package's own jokes, and what is for proxies of another kind. */
const NOT_HERE = ['XCLIENT', 'XFORWARD', 'WIZ', 'SHELL', 'KILL'];

function unreadable(why: 'too-long' | 'failed' | 'stopping'): SmtpReply {
  return why === 'stopping' ? tryLater() : replyTo(invalid('mail', 'cannot be read'));
}
