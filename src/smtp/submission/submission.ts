import type { Worker } from 'node:worker_threads';
import type { SMTPServerAuthentication, SMTPServerSession } from 'smtp-server';
import type { Authenticator, Caller, Credentials } from '../../accounts/authenticate.ts';
import { callerBlock } from '../../accounts/caller-addresses.ts';
import type { RateLimits } from '../../accounts/rate-limits.ts';
import type { Config } from '../../config/schema.ts';
import { AEAD_CIPHERS } from '../../config/setting-types.ts';
import { MINUTE } from '../../core/clock.ts';
import { createErrorLog } from '../../core/log.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { createTokenBuckets } from '../../core/token-bucket.ts';
import { isLoopback } from '../../dns/address-kinds.ts';
import { parseMailbox } from '../../mail/address.ts';
import type { Acceptance } from '../../sending/accept.ts';
import { senderOf } from '../../sending/checks.ts';
import type { SendResult } from '../../sending/draft.ts';
import type { AccountRow } from '../../store/accounts.ts';
import type { Context } from '../../store/context.ts';
import { storageFailure } from '../../store/database/failure.ts';
import type { Stream } from '../../store/domains/domains.ts';
import { certificateFiles, createCertificateSource } from '../certificate.ts';
import { SUBMISSION_COMMAND_RATES } from '../command-limits.ts';
import { createSmtpListener, DISABLED_COMMANDS, type SmtpListener } from '../listener.ts';
import { createLogWindow } from '../log-window.ts';
import { createMailParser } from '../parser/mail-parser.ts';
import { SmtpRejection, tryLater } from '../reply.ts';
import { authReplyTo, INVALID_CREDENTIALS, replyTo } from './replies.ts';
import { requestedStream, submissionRequest } from './request.ts';
import type { SubmittedMail } from './submitted-mail.ts';

interface SubmissionOptions {
  authenticator: Authenticator;
  rateLimits: RateLimits;
  acceptance: Acceptance;
  account(accountId: string): AccountRow | null;
  /** Starts a thread that runs parser/thread.ts; default: the compiled one. */
  startParserThread?: () => Worker;
}

/** RFC 4954 §4: an AUTH response has up to 12,288 bytes. */
const MAX_COMMAND_LENGTH = 12_288 + 512;
/** The share of one account. When two accounts use up theirs, the slowest upload is ended for a third. */
const BUDGET = { mails: 32, holderShare: 1 / 2, networkShare: 1, reserve: 0 };
const SCOPES = { tx: 'transactional', mk: 'marketing' } as const;

/** A login. Its credentials are checked again with each mail, so that a revoked key stops working immediately. */
interface Login {
  credentials: Credentials;
  streams: Stream[];
}

/**
 * The submission listener (RFC 6409): programs that support only SMTP send here, with the same checks as over HTTP. The
 * user is the account's id, the password one of its transactional or marketing keys; except on loopback, AUTH is offered
 * on encrypted connections only.
 *
 * Rejects with an OperatorFault when the certificate cannot be used. Starts the thread of the mail parser and binds
 * nothing until `listen`; `close` also ends the thread, after the connections.
 */
export async function createSubmission(
  context: Pick<Context, 'clock' | 'monotonic' | 'log'> & {
    config: Pick<Config, 'hostname' | 'mx' | 'submission' | 'limits'>;
  },
  options: SubmissionOptions,
): Promise<SmtpListener> {
  const { config, log } = context;
  const { authenticator, rateLimits, acceptance } = options;
  const { submission } = config;
  const logError = createErrorLog(log);
  const logins = new WeakMap<SMTPServerSession, Login>();
  const failures = createAuthFailures(context);

  /** Checks credentials; returns the streams in which they may send, or a refusal. */
  function logIn(credentials: Credentials): Stream[] | Refusal {
    const transactional = authenticator.authenticate(credentials, SCOPES.tx);
    if (isRefusal(transactional) && transactional.code !== 'INSUFFICIENT_SCOPE') return transactional;
    const marketing = authenticator.authenticate(credentials, SCOPES.mk);
    if (isRefusal(transactional)) return isRefusal(marketing) ? marketing : ['mk'];
    return isRefusal(marketing) ? ['tx'] : ['tx', 'mk'];
  }

  function onAuth(auth: SMTPServerAuthentication, session: SMTPServerSession): SmtpRejection | null {
    const credentials: Credentials = {
      secret: auth.password ?? '',
      accountId: auth.username ?? '',
      from: { address: session.remoteAddress, forwarded: false },
    };
    const streams = isOneIdentity(auth) ? logIn(credentials) : INVALID_CREDENTIALS;
    if (isRefusal(streams)) return failures.count(session, streams.code) ?? authReplyTo(streams);
    logins.set(session, { credentials, streams });
    return null;
  }

  /** smtp-server does not catch errors of its callbacks: one that the database throws would end the process. */
  function authenticate(auth: SMTPServerAuthentication, session: SMTPServerSession): SmtpRejection | null {
    try {
      return onAuth(auth, session);
    } catch (error) {
      logError(
        storageFailure(error)?.kind ?? null,
        { err: error, remoteAddress: session.remoteAddress },
        'SMTP login failed',
      );
      // RFC 4954 §6
      return new SmtpRejection(454, '4.7.0', 'Temporary authentication failure; please try again later');
    }
  }

  /** Whether AUTH may be offered. */
  function mayAuthenticate(session: SMTPServerSession): boolean {
    // Behind a proxy a loopback address does not prove that the client is on this machine.
    return session.secure || (submission.proxyProtocol.length === 0 && isLoopback(session.remoteAddress));
  }

  function onMail(session: SMTPServerSession): SmtpRejection | null {
    if (logins.has(session) && session.user) return null;
    return mayAuthenticate(session)
      ? new SmtpRejection(530, '5.7.0', AUTH_REQUIRED)
      : new SmtpRejection(530, '5.7.0', 'Must issue a STARTTLS command first');
  }

  async function onData(raw: Buffer, session: SMTPServerSession): Promise<string | SmtpRejection> {
    const account = logins.get(session)?.credentials.accountId ?? '';
    const origin = { priority: 'normal', caller: account, subject: account } as const;
    const result = await parser.parse({ purpose: 'submission', raw }, origin);
    if (result === null)
      return new SmtpRejection(451, '4.3.2', 'Too much mail is waiting; please try again later');
    if ('unreadable' in result) return unreadable(result.unreadable);
    if ('problem' in result) return replyTo(refuse('VALIDATION_ERROR', result.problem));
    const sent = await send(result, session);
    return isRefusal(sent) ? replyTo(sent) : `OK: queued as ${sent}`;
  }

  /** Returns the id of the first message, or of the job. */
  async function send(mail: SubmittedMail, session: SMTPServerSession): Promise<string | Refusal> {
    const login = logins.get(session);
    if (login === undefined) return refuse('UNAUTHENTICATED', 'Authentication required');
    const useCase = login.streams.length === 1 ? (login.streams[0] ?? 'tx') : requestedStream(mail);
    const caller = authenticator.authenticate(login.credentials, SCOPES[useCase]);
    if (isRefusal(caller)) return caller;
    const account = options.account(caller.accountId);
    if (account === null) return refuse('UNAUTHENTICATED', 'The account no longer exists');
    const rateRefusal = checkRate(caller);
    if (rateRefusal !== null) return rateRefusal;
    const envelope = session.envelope.rcptTo.map(({ address }) => address);
    const request = submissionRequest(mail, envelope, useCase);
    if (isRefusal(request)) return request;
    const { idempotencyKey: key, ...requested } = request;
    const accepted = await acceptance.accept({
      sender: senderOf(account, caller, useCase),
      ...requested,
      appendFooter: !caller.strictCompliance,
      idempotency: key === null ? null : { endpoint: `submission/${SCOPES[useCase]}`, key },
      envelope: (data) => JSON.stringify(data),
    });
    if (isRefusal(accepted)) return accepted;
    const result: SendResult = accepted.kind === 'replayed' ? JSON.parse(accepted.body) : accepted.data;
    return 'jobId' in result ? result.jobId : result.messageId;
  }

  function checkRate({ keyId }: Caller): Refusal | null {
    const rate = rateLimits.take(keyId, 'send');
    return rate?.allowed === false ? refuse('RATE_LIMITED', 'This key has reached its rate limit') : null;
  }

  const listener = await createSmtpListener(context, {
    section: 'submission',
    settings: submission,
    certificate: createCertificateSource(context, config.hostname, () =>
      certificateFiles({ submission: config.submission, mx: config.mx }),
    ),
    mailBytes: config.limits.sendBytes,
    commandLength: MAX_COMMAND_LENGTH,
    commandRates: SUBMISSION_COMMAND_RATES,
    budget: BUDGET,
    options: {
      secure: submission.implicitTls,
      ciphers: AEAD_CIPHERS,
      disabledCommands: [...DISABLED_COMMANDS],
      authMethods: ['PLAIN', 'LOGIN'],
      authRequiredMessage: AUTH_REQUIRED,
      // Where it is not allowed, AUTH is not offered: see onConnect.
      allowInsecureAuth: true,
      onAuth: (auth, session, callback) => {
        const rejection = authenticate(auth, session);
        if (rejection === null) callback(null, { user: auth.username });
        else callback(rejection);
      },
      onSecure: (_socket, session, callback) => {
        logins.delete(session);
        session.disabledCommands = [...DISABLED_COMMANDS];
        callback();
      },
    },
    onConnect: (session) => {
      if (!mayAuthenticate(session)) session.disabledCommands = [...DISABLED_COMMANDS, 'AUTH'];
    },
    onMail,
    onRecipient: (address) => {
      const mailbox = parseMailbox(address);
      return typeof mailbox === 'string'
        ? new SmtpRejection(553, '5.1.3', `Recipient address: ${mailbox}`)
        : null;
    },
    uploader: (session) => ({
      holder: logins.get(session)?.credentials.accountId ?? '',
      network: null,
      isProven: false,
    }),
    onData,
    // Applications may send many messages that are rejected, to suppressed recipients for example.
    countsRejected: (session) => logins.has(session),
    onSweep: failures.sweep,
    onClosed: () => {
      failures.flush();
      return parser.stop();
    },
  });
  const parser = createMailParser(log, { startThread: options.startParserThread });
  return listener;
}

/**
 * RFC 4616 §2: the authentication identity is never empty. There is no authorization to act for another identity. smtp-server
 * takes the authorization identity for an empty one.
 */
function isOneIdentity({ method, authcid, authzid = '' }: SMTPServerAuthentication): boolean {
  return method !== 'PLAIN' || (authcid !== '' && (authzid === '' || authzid === authcid));
}

const AUTH_REQUIRED = 'Authentication required';

function unreadable(reason: 'too-long' | 'failed' | 'stopping'): SmtpRejection {
  return reason === 'stopping' ? tryLater() : replyTo(invalid('mail', 'cannot be read'));
}

export const MAX_FAILURES = 10;
const WINDOW_MS = 10 * MINUTE;
const MAX_ADDRESSES = 20_000;

/**
 * Limits failed logins. A connection ends with 421 at its tenth failure; when an address has failed ten times within ten
 * minutes, each further failure ends its connection. A valid key is always accepted, so that clients behind one address
 * do not lock each other out. Counts in memory, for sessions and for 20,000 addresses (an IPv6 /64 is one), of which the
 * least recently counted is forgotten first. Has no timer: the listener calls `sweep`.
 */
function createAuthFailures({ monotonic, log }: Pick<Context, 'monotonic' | 'log'>) {
  const ofSession = new WeakMap<SMTPServerSession, number>();
  const ofAddress = createTokenBuckets(
    monotonic,
    // The tenth failure exceeds the burst.
    { burst: MAX_FAILURES - 1, perSecond: MAX_FAILURES / (WINDOW_MS / 1000) },
    MAX_ADDRESSES,
  );
  const logLines = createLogWindow(monotonic, log, 'SMTP logins refused');
  return {
    /** Counts a failed login; returns the rejection when the connection must end. */
    count: (session: SMTPServerSession, code: string): SmtpRejection | null => {
      logLines.count(session.remoteAddress, { code });
      const failures = (ofSession.get(session) ?? 0) + 1;
      ofSession.set(session, failures);
      const bucket = ofAddress.of(callerBlock(session.remoteAddress));
      // A charge above that would extend the limit beyond the window.
      if (bucket.waitMs() === 0) bucket.charge(1);
      return failures >= MAX_FAILURES || bucket.waitMs() > 0
        ? new SmtpRejection(421, '4.7.0', 'Too many failed logins; please try again later')
        : null;
    },
    /** Logs one line per address and minute; called every few seconds. */
    sweep: logLines.sweep,
    flush: logLines.flush,
  };
}
