import type { Client } from './client.ts';
import { type Connection, openConnection } from './connection.ts';
import { insecure, type Next, type Outcome, weightier, whatNext } from './outcome.ts';
import type { AttemptReport, Conclusion, DeliveryJob, SessionRecord, TlsMode } from './protocol.ts';
import { replyOf } from './reply-reader.ts';
import { type OutgoingMessage, offer } from './session.ts';
import { HandshakeTrouble, SessionTrouble } from './trouble.ts';

/**
 * One attempt to deliver one message: which hosts and addresses are asked, in what order, and when to stop.
 *
 * The slot's open connection comes first if it leads to one of the job's hosts. Else, or when that one turns
 * out to be dead before it answered MAIL, the hosts in their order: an address that cannot be connected to
 * gives way to the host's next address, a host that greets badly, cannot encrypt or refuses the sender gives
 * way to the next host, and so does one that defers the recipient, once. A verdict on the recipient or the
 * message ends it, and above all nobody else is asked when the connection was lost after the final dot.
 * Never decides about retries: that is the main thread's.
 */
const MAX_HOSTS = 5;
const MAX_ADDRESSES = 2;
/** Sessions that came as far as MAIL. */
const MAX_FULL_SESSIONS = 2;

/** One try at one address. */
interface Trial {
  outcome: Outcome;
  record: SessionRecord;
  /** Still usable, whatever the outcome. */
  connection: Connection | null;
  /** The server was ready for MAIL. */
  full: boolean;
  /** TLS could not be had: in opportunistic mode a reason to come again in plain text. */
  handshakeFailed: boolean;
}

/** What was learnt so far. */
interface Walk {
  sessions: SessionRecord[];
  /** The outcome that counts if no better one comes. */
  telling: Outcome | null;
  fullSessions: number;
  /** The last trial's. */
  connection: Connection | null;
}

/** Never throws for anything a server does. `null`: stopped before anyone could have taken the message. */
export async function attempt(
  job: DeliveryJob,
  message: OutgoingMessage,
  client: Client,
): Promise<AttemptReport | null> {
  const { deadlines, slots } = client;
  const dueAt = deadlines.now() + client.limits.message;
  const walk: Walk = { sessions: [], telling: null, fullSessions: 0, connection: null };

  const isOver = () => deadlines.now() >= dueAt || client.aborted();
  const consider = (trial: Trial): Next => {
    const next = whatNext(trial.outcome);
    walk.sessions.push(trial.record);
    walk.telling = next === 'conclude' ? trial.outcome : weightier(walk.telling, trial.outcome);
    walk.connection = trial.connection;
    if (trial.full) walk.fullSessions++;
    return walk.fullSessions >= MAX_FULL_SESSIONS || isOver() ? 'conclude' : next;
  };
  const tryAt = (host: string, address: string, tls: TlsMode) => {
    walk.connection?.wire.quit();
    return tryAddress(newRecord(host, address, job, client), { ...job, tls }, message, dueAt, client);
  };
  const conclude = (): AttemptReport | null => {
    if (walk.connection) slots.keep(job, walk.connection);
    return client.aborted() && walk.telling?.kind === 'broken' ? null : report(job, walk);
  };

  const kept = slots.take(job);
  if (kept) {
    const trial = await tryConnection(
      kept,
      newRecord(kept.host, kept.address, job, client),
      message,
      dueAt,
      client,
    );
    const stale = trial.outcome.kind === 'broken' && trial.outcome.stage === 'mail' && !isOver();
    if (!stale && consider(trial) === 'conclude') return conclude();
  }
  for (const host of job.hosts.slice(0, MAX_HOSTS)) {
    if (walk.sessions.length > 0 && host.name === kept?.host) continue;
    const addresses = host.addresses.filter((address) => hasSource(address, job)).slice(0, MAX_ADDRESSES);
    if (addresses.length === 0)
      consider(unreachable(newRecord(host.name, '', job, client), host.addresses, client));
    for (const address of addresses) {
      const trial = await tryAt(host.name, address, job.tls);
      let next = consider(trial);
      if (trial.handshakeFailed && job.tls === 'opportunistic' && next !== 'conclude') {
        next = consider(await tryAt(host.name, address, 'none'));
      }
      if (next === 'conclude') return conclude();
      if (next === 'next-host') break;
    }
  }
  return conclude();
}

/** A try that begins with connecting. */
async function tryAddress(
  record: SessionRecord,
  job: DeliveryJob,
  message: OutgoingMessage,
  dueAt: number,
  client: Client,
): Promise<Trial> {
  try {
    const opened = await openConnection(record, job, dueAt, client);
    if ('wire' in opened) return await tryConnection(opened, record, message, dueAt, client);
    return finish(record, opened, client, {});
  } catch (error) {
    if (!(error instanceof SessionTrouble)) throw error;
    const handshakeFailed = error instanceof HandshakeTrouble;
    const outcome =
      handshakeFailed && job.tls !== 'opportunistic' ? insecure('starttls', error.message) : broken(error);
    return finish(record, outcome, client, { handshakeFailed });
  }
}

/** A try over a connection that is ready for MAIL. */
async function tryConnection(
  connection: Connection,
  record: SessionRecord,
  message: OutgoingMessage,
  dueAt: number,
  client: Client,
): Promise<Trial> {
  const { wire, tls } = connection;
  record.localAddress = wire.localAddress;
  record.tls = tls;
  wire.bound(dueAt);
  try {
    const outcome = await offer(connection, message, client.limits);
    return finish(record, outcome, client, { full: true, connection: wire.dead() ? null : connection });
  } catch (error) {
    if (!(error instanceof SessionTrouble)) throw error;
    wire.cut(error.message);
    return finish(record, broken(error), client, { full: true });
  }
}

/** After the final dot silence may mean that the message was taken (RFC 1047); a 421 means that it was not. */
function broken(trouble: SessionTrouble): Outcome {
  const { stage, reply, message: error } = trouble;
  if (stage === 'dot' && !reply) return { kind: 'unanswered', stage, reply, error };
  return { kind: 'broken', stage, reply: reply ? replyOf(reply) : null, error };
}

/** IPv6 only where the egress has an address of that kind. */
function hasSource(address: string, job: DeliveryJob): boolean {
  return !address.includes(':') || job.egress.address6 !== undefined;
}

function unreachable(record: SessionRecord, addresses: readonly string[], client: Client): Trial {
  const why =
    addresses.length > 0 ? 'has IPv6 addresses only, and this egress has none' : 'has no usable address';
  return finish(
    record,
    { kind: 'broken', stage: 'connect', reply: null, error: `${record.host} ${why}` },
    client,
    {},
  );
}

function newRecord(host: string, address: string, job: DeliveryJob, client: Client): SessionRecord {
  const now = client.clock.now();
  return {
    host,
    address,
    port: job.port,
    localAddress: null,
    tls: null,
    stage: 'connect',
    reply: null,
    error: null,
    startedAt: now,
    endedAt: now,
  };
}

function finish(record: SessionRecord, outcome: Outcome, client: Client, facts: Partial<Trial>): Trial {
  record.stage = outcome.stage;
  // A refusal of ours is no reply of the server's.
  if (outcome.kind === 'refused') record.error = outcome.reply.text;
  else record.reply = outcome.reply;
  if ('error' in outcome) record.error = outcome.error;
  record.endedAt = client.clock.now();
  return { outcome, record, connection: null, full: false, handshakeFailed: false, ...facts };
}

const CONCLUSIONS: Record<Outcome['kind'], Conclusion> = {
  answered: 'replied',
  refused: 'refused-locally',
  broken: 'unreachable',
  unanswered: 'unanswered',
};

function report({ id, slot }: DeliveryJob, { telling, sessions }: Walk): AttemptReport {
  if (!telling) return { id, slot, conclusion: 'unreachable', stage: 'connect', reply: null, sessions };
  const { kind, stage, reply } = telling;
  return { id, slot, conclusion: CONCLUSIONS[kind], stage, reply, sessions };
}
