import type { SmtpReply } from '../../mail/reply.ts';
import type { Client } from './client.ts';
import { type Connection, type NewConnection, newRecord, openSmtpConnection } from './connection.ts';
import { EgressError, SmtpSessionError, TlsHandshakeError } from './errors.ts';
import type { AttemptReport, Conclusion, Destination, SessionRecord, TargetHost } from './protocol.ts';
import { replyOf } from './reply-reader.ts';
import {
  insecure,
  moreSignificant,
  nextStep,
  type SessionResult,
  type StepAfterSession,
} from './session-result.ts';
import { failureTypeOf, obstacleOf, requiredByText, requirementOf, type TlsRequirement } from './tls.ts';
import { type OutgoingMessage, offer } from './transaction.ts';

/**
 * One attempt to deliver one message: which hosts and addresses are tried, in what order, and when it ends.
 *
 * The idle connection of the slot is tried first if it leads to one of the job's hosts. Otherwise, or if that connection
 * fails before the reply to MAIL, the hosts are tried in their order. If an address cannot be connected to, the host's
 * next address follows. The next host follows if the greeting is an error, if the host cannot encrypt, refuses the
 * sender or is excluded by a published TLS policy, and, once, if it defers the recipient. A decisive reply about the
 * recipient or the message ends the attempt, and so does a connection that is lost after the final dot: no other host
 * gets the message. The main thread decides about retries.
 *
 * The message is prepared when a server is ready for it: to hosts that cannot be reached, nothing is composed and signed.
 */
const MAX_HOSTS = 5;
const MAX_ADDRESSES = 2;
/** Sessions of one attempt that reach MAIL. */
const MAX_FULL_SESSIONS = 2;

/** One session with one address. */
interface Session {
  result: SessionResult;
  record: SessionRecord;
  /** Null when it is not usable any more. */
  connection: Connection | null;
  /** The server was ready for MAIL. */
  full: boolean;
  /**
   * The handshake failed, or STARTTLS was not answered: in opportunistic mode the address is tried again in plain text.
   */
  tlsFailed: boolean;
}

/** The attempt so far. */
interface Progress {
  sessions: SessionRecord[];
  /** The most significant result so far. */
  result: SessionResult | null;
  fullSessions: number;
  /** Connection of the last session. */
  connection: Connection | null;
}

/** The message cannot be offered to any host: the report states why. */
export class LocalRefusal extends Error {
  readonly report: Pick<AttemptReport, 'conclusion' | 'reply'>;

  constructor(conclusion: Conclusion, reply: SmtpReply) {
    super(reply.text);
    this.report = { conclusion, reply };
  }
}

/**
 * Calls `prepare`, which composes and signs the message, once if any host is ready for it; it may throw a `LocalRefusal`.
 * Never throws because of a server. Null: the worker was stopped before any host could have accepted the message.
 */
export async function attempt(
  job: Destination & { id: number },
  prepare: () => Promise<OutgoingMessage>,
  client: Client,
): Promise<AttemptReport | null> {
  const { id } = job;
  try {
    const progress = await tryHosts(job, prepare, client);
    if (progress === null) return null;
    if (progress.connection) client.idle.put(job, progress.connection);
    const { result, sessions } = progress;
    if (result === null) return { id, conclusion: 'unreachable', phase: 'connect', reply: null, sessions };
    const { kind: conclusion, phase, reply } = result;
    if (client.aborted() && conclusion === 'unreachable') return null;
    return { id, conclusion, phase, reply, sessions };
  } catch (error) {
    if (error instanceof LocalRefusal) return { id, ...error.report, phase: 'connect', sessions: [] };
    throw error;
  }
}

/** Tries the idle connection of the slot, then the hosts, until a result decides. Null: the worker was stopped. */
async function tryHosts(
  job: Destination,
  prepare: () => Promise<OutgoingMessage>,
  client: Client,
): Promise<Progress | null> {
  // A wire that is opened after the abort would not be closed by it.
  if (client.aborted()) return null;
  const { deadlines, idle } = client;
  const dueAt = deadlines.now() + client.timeouts.message;
  const progress: Progress = { sessions: [], result: null, fullSessions: 0, connection: null };
  let prepared: Promise<OutgoingMessage> | null = null;

  const recordOf = (host: string, address: string) => newRecord(host, address, job.port, client.clock.now());
  const isOver = () => deadlines.now() >= dueAt || client.aborted();
  const evaluate = (session: Session): StepAfterSession => {
    // Without a proxy only this address cannot be used: the host may have others, of the other version of IP.
    const isOwnAddress = session.result.kind === 'egress-failed' && job.egress.proxy === undefined;
    const next = isOwnAddress ? 'next-address' : nextStep(session.result);
    progress.sessions.push(session.record);
    // A server's reply decides; what this side refuses to offer to a backup does not, if the preferred host is down.
    const isDecided = next === 'conclude' && session.result.kind !== 'refused-locally';
    progress.result = isDecided ? session.result : moreSignificant(progress.result, session.result);
    // A result without a session, such as that of an excluded host, must not leave the earlier connection open.
    if (progress.connection !== session.connection) progress.connection?.wire.quit();
    progress.connection = session.connection;
    if (session.full) progress.fullSessions++;
    return progress.fullSessions >= MAX_FULL_SESSIONS || isOver() ? 'conclude' : next;
  };
  const offerOver = async (
    connection: Connection,
    requirement: TlsRequirement,
    record: SessionRecord,
  ): Promise<Session> => {
    let message: OutgoingMessage;
    try {
      prepared ??= prepare();
      message = await prepared;
    } catch (error) {
      idle.put(job, connection);
      throw error;
    }
    return tryConnection(connection, requirement, record, message, dueAt, client);
  };
  const tryAt = async (
    host: string,
    address: string,
    requirement: TlsRequirement,
    plain: boolean,
  ): Promise<Session> => {
    progress.connection?.wire.quit();
    const record = recordOf(host, address);
    const opened = await openSession(record, { requirement, plain, ...job }, dueAt, client);
    return 'wire' in opened ? offerOver(opened, requirement, record) : opened;
  };

  const reused = idle.take(job);
  /** The host of the idle connection, unless that was stale: then the host has not been tried. */
  let triedHost: string | null = null;
  if (reused) {
    const { host, address } = reused;
    const requirement = requirementOf(job, hostOf(job, reused));
    const session = await offerOver(reused, requirement, recordOf(host, address));
    const stale = session.result.kind === 'unreachable' && session.result.phase === 'mail' && !isOver();
    if (!stale) {
      if (evaluate(session) === 'conclude') return progress;
      triedHost = host;
    }
  }
  for (const host of job.hosts.slice(0, MAX_HOSTS)) {
    if (host.name === triedHost) continue;
    const requirement = requirementOf(job, host);
    const obstacle = obstacleOf(requirement);
    if (obstacle !== null) {
      const record = recordOf(host.name, '');
      record.tlsResult = { failure: obstacle.type, reason: obstacle.text };
      if (evaluate(finish(record, insecure('dns', obstacle.text), client)) === 'conclude') return progress;
      continue;
    }
    const addresses = host.addresses.filter((address) => hasSource(address, job)).slice(0, MAX_ADDRESSES);
    if (addresses.length === 0) evaluate(unreachable(recordOf(host.name, ''), host.addresses, client));
    for (const address of addresses) {
      const session = await tryAt(host.name, address, requirement, false);
      let next = evaluate(session);
      if (session.tlsFailed && requirement.mode === 'opportunistic' && next !== 'conclude')
        next = evaluate(await tryAt(host.name, address, requirement, true));
      if (next === 'conclude') return progress;
      if (next === 'next-host') break;
    }
  }
  return progress;
}

/** Opens a connection that is ready for MAIL, or returns the session that ended before. */
async function openSession(
  record: SessionRecord,
  terms: NewConnection,
  dueAt: number,
  client: Client,
): Promise<Connection | Session> {
  try {
    const opened = await openSmtpConnection(record, terms, dueAt, client);
    return 'wire' in opened ? opened : finish(record, opened, client);
  } catch (error) {
    if (!(error instanceof SmtpSessionError)) throw error;
    // A 421 is no statement about TLS. In TLS 1.3 a server refuses a handshake after the client considers it done: in place of the
    // reply to EHLO.
    const isHandshake = error.phase === 'starttls' || (error.phase === 'ehlo' && record.tls !== null);
    const tlsFailed = isHandshake && error.reply === null;
    if (!(error instanceof TlsHandshakeError)) return finish(record, broken(error), client, { tlsFailed });
    const { requirement } = terms;
    record.tlsResult = { failure: failureTypeOf(error.code), reason: error.code || error.message };
    const result =
      requirement.mode === 'opportunistic'
        ? broken(error)
        : insecure('starttls', error.message + requiredByText(requirement));
    return finish(record, result, client, { tlsFailed });
  }
}

/** A session over a connection that is ready for MAIL. */
async function tryConnection(
  connection: Connection,
  requirement: TlsRequirement,
  record: SessionRecord,
  message: OutgoingMessage,
  dueAt: number,
  client: Client,
): Promise<Session> {
  const { wire, tls } = connection;
  record.localAddress = wire.localAddress;
  record.tls = tls === null ? null : { ...tls, policy: requirement.mode, requiredBy: requirement.source };
  wire.limitUntil(dueAt);
  try {
    const result = await offer(connection, message, client);
    return finish(record, result, client, { full: true, connection: wire.dead() ? null : connection });
  } catch (error) {
    if (!(error instanceof SmtpSessionError)) throw error;
    wire.close(error.message);
    return finish(record, broken(error), client, { full: true });
  }
}

/** Without a reply after the final dot the message may have been accepted (RFC 1047); a 421 means that it was not. */
function broken(failure: SmtpSessionError): SessionResult {
  const { phase, reply, message: error } = failure;
  if (failure instanceof EgressError) return { kind: 'egress-failed', phase, reply: null, error };
  if (phase === 'dot' && !reply) return { kind: 'unanswered', phase, reply, error };
  return { kind: 'unreachable', phase, reply: reply ? replyOf(reply) : null, error };
}

/** The job's host to which the connection leads. */
function hostOf(job: Destination, { host, address }: Connection): TargetHost {
  return job.hosts.find(({ name }) => name === host) ?? { name: host, addresses: [address] };
}

/** IPv6 requires an IPv6 source address; a proxy with an IPv6 address alone does not send IPv4. */
function hasSource(address: string, { egress }: Destination): boolean {
  if (address.includes(':')) return egress.address6 !== undefined;
  return egress.address !== undefined || egress.address6 === undefined || egress.proxy === undefined;
}

function unreachable(record: SessionRecord, addresses: readonly string[], client: Client): Session {
  const family = addresses.some((address) => address.includes(':')) ? 'IPv6' : 'IPv4';
  const reason =
    addresses.length > 0
      ? `has only ${family} addresses, and the source address has none`
      : 'has no usable address';
  const error = `${record.host} ${reason}`;
  return finish(record, { kind: 'unreachable', phase: 'connect', reply: null, error }, client);
}

function finish(
  record: SessionRecord,
  result: SessionResult,
  client: Client,
  facts: Partial<Session> = {},
): Session {
  record.phase = result.phase;
  // A refusal by this side is not a reply of the server.
  if (result.kind === 'refused-locally') record.error = result.reply.text;
  else record.reply = result.reply;
  if ('error' in result) record.error = result.error;
  record.endedAt = client.clock.now();
  return { result, record, connection: null, full: false, tlsFailed: false, ...facts };
}
