import { type Clock, iso } from '../core/clock.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { domainOf, normalizeDomain } from '../mail/address.ts';
import type { BounceClass } from '../mail/classify/classify.ts';
import { BOUNCE_CLASSES } from '../mail/classify/rules.ts';
import type { SmtpReply } from '../mail/reply.ts';
import type { AttemptRow } from '../store/messages/message-rows.ts';
import type { ListedInQueue, QueueCounts } from '../store/messages/queue-list.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';
import { createControlIndex, presentControl } from './control.ts';
import { localRemedy, policyOf, replyRemedy } from './remedies.ts';
import {
  type Inspection,
  type MessageFacts,
  presentWait,
  reasonsOf,
  routeFailureText,
  type SiteFacts,
  type WaitReason,
} from './waits.ts';

/*
 * Explains why a message, or the mail to a destination, is not delivered yet: for the API, the console and the command line,
 * also while no daemon runs. The reasons are those of waits.ts.
 */

/** Why a message is not delivered yet, and what it waits for. */
export type MessageExplanation = Exclude<ReturnType<typeof explainMessage>, Refusal>;
type ExplainedAttempt = ReturnType<typeof explainAttempt>;
type ExplainedRoute = NonNullable<ReturnType<typeof presentRoute>>;
type ExplainedSite = ReturnType<typeof presentSite>;

export interface ExplainDeps {
  tables: Tables;
  clock: Clock;
  /** Null: the daemon does not run, or does not answer. */
  inspection: Inspection | null;
  /** Why `inspection` is null, a clause. */
  absence?: string;
}

export const MAX_AHEAD = 10_000;
const MAX_ATTEMPTS = 5;

/** Explains a message. Refuses an unknown id. Reads a few rows. */
export function explainMessage(messageId: string, deps: ExplainDeps) {
  const { tables, clock, inspection } = deps;
  const message = tables.messages.byId(messageId);
  if (message === null) return refuse('MESSAGE_NOT_FOUND', `There is no message ${messageId}`);
  const queued = tables.queue.listed(message.seq);
  const facts = queued === null || inspection === null ? null : inspection.message(queued);
  const common = {
    messageId,
    accountId: message.account_id,
    recipient: message.recipient,
    status: message.status,
    attempts: message.attempts,
    acceptedAt: iso(message.created_at),
    expiresAt: iso(message.expires_at),
    stream: message.use_case === 'tx' ? ('transactional' as const) : ('marketing' as const),
    lastAttempts: lastAttempts(tables, message.seq),
  };
  if (queued === null)
    return {
      ...common,
      destination: domainOf(message.recipient),
      lane: 'primary' as const,
      nextAttemptAt: null,
      blockedAt: null,
      reasons: [presentWait('final', { status: message.status, at: message.final_at })],
      ahead: 0,
      route: null,
      site: null,
      unknown: [],
    };
  const controls = createControlIndex(tables.queueControls.list(clock.now()));
  return {
    ...common,
    destination: queued.destination,
    /** Of the next attempt. */
    lane: queued.secondary === 1 ? ('secondary' as const) : ('primary' as const),
    /** When the next attempt is due; null: it is held, or final. */
    nextAttemptAt: queued.paused === 1 ? null : iso(queued.due_at),
    blockedAt: blockedAt(facts),
    /** The deciding one first. */
    reasons: reasonsOf(queued, controls, facts, clock.now()).map((reason) =>
      withPolicy(reason, common.lastAttempts),
    ),
    /** Due messages of the same account to the same destination that precede it, counted up to `MAX_AHEAD`. */
    ahead: queued.ready === 1 ? tables.queue.ahead(queued, queued.seq, MAX_AHEAD) : 0,
    /** Null: not known, see `unknown`. */
    route: facts === null ? null : presentRoute(facts, queued),
    site: facts?.site === undefined || facts.site === null ? null : presentSite(facts.site, clock),
    /** What could not be determined, and why. */
    unknown: unknownOf(deps, facts, message.simulated === 1),
  };
}

/** ISO 8601: since when a receiver blocks the only source address that could send the message; null: none is blocked. */
function blockedAt(facts: MessageFacts | null): string | null {
  const block = facts?.obstacle?.block;
  return block === undefined ? null : iso(block.since);
}

/** Names the published policy because of which the last attempt was deferred. */
function withPolicy(reason: WaitReason, [last]: readonly ExplainedAttempt[]): WaitReason {
  if (reason.code !== 'deferred' || last?.classification !== 'tls-failed') return reason;
  const policy = policyOf(last.reply?.text ?? '');
  return policy === null
    ? reason
    : { ...reason, text: `${policy} does not permit the connection. ${reason.text}` };
}

/** Converts the facts of a site to what the API returns. */
export function presentSite(facts: SiteFacts, clock: Clock) {
  const { suspendedMs, limitedMs, pause, rateWaitMs: _, forMarketing: __, ...site } = facts;
  return {
    ...site,
    /** ISO 8601; null: it is not suspended. */
    suspendedUntil: suspendedMs === 0 ? null : iso(clock.now() + suspendedMs),
    /** ISO 8601: when it gets mail again, because it asked to send less; null: it gets mail. */
    limitedUntil: limitedMs === 0 ? null : iso(clock.now() + limitedMs),
    pause: pause === null ? null : presentControl(pause),
  };
}

/** Converts the route of a message to what the API returns; null: it was not looked up yet. */
export function presentRoute(
  { path, route }: MessageFacts,
  { destination, reroute }: Pick<ListedInQueue, 'destination' | 'reroute'>,
) {
  if (route === null) return null;
  const { pool } = path;
  // A reroute precedes the relay of the secondary lane, and both precede the configured routes.
  const nextHop = reroute === null ? 'relay' : 'rerouted';
  /** `mx`: the hosts of the destination. `configured`: delivery.routes. `rerouted`, `relay`: another next hop. */
  const via: 'mx' | 'configured' | 'rerouted' | 'relay' =
    path.via !== null ? nextHop : route.route === null ? 'mx' : 'configured';
  if (route.kind === 'failure')
    return { pool, via, hosts: [], failure: routeFailureText(destination, route) };
  /** In the order in which they are tried. */
  const hosts = route.hosts.map(({ name, addresses }) => ({ name, addresses: [...addresses] }));
  return { pool, via, hosts, failure: null };
}

/** Returns a sentence for each group of facts that only the daemon has and that is missing. */
function unknownOf(
  { inspection, absence }: ExplainDeps,
  facts: MessageFacts | null,
  isSimulated = false,
): string[] {
  if (inspection === null)
    return [
      `Route, hosts, site and connections are known to the running daemon only: ${absence ?? 'it does not run'}.`,
    ];
  if (facts?.route === null) return isSimulated ? [] : ['The route is looked up when the message is read.'];
  return facts !== null && facts.site === null && facts.route?.kind === 'hosts'
    ? ['Its site is not in memory: no mail for it was read in the last ten minutes.']
    : [];
}

function lastAttempts(tables: Tables, seq: number): ExplainedAttempt[] {
  return tables.messages.attemptsOf(seq).slice(-MAX_ATTEMPTS).toReversed().map(explainAttempt);
}

/** Converts an attempt to what the API returns: the deciding session and the remedy of its classification. */
export function explainAttempt({ attempt, at, lane, report }: AttemptRow) {
  // In the form that attempt-result stores.
  const stored: {
    action?: string;
    conclusion?: string;
    classification?: string;
    reply?: SmtpReply | null;
    sessions?: { host: string; address: string; reply?: SmtpReply | null; error?: string | null }[];
  } = JSON.parse(report);
  const { sessions = [], reply = null, classification = null, conclusion = '' } = stored;
  const deciding = sessions.findLast((session) => session.reply?.text === reply?.text) ?? sessions.at(-1);
  return {
    attempt,
    at: iso(at),
    lane,
    /** The host with the deciding reply, and its address; null: no host was contacted. */
    host: deciding?.host ?? null,
    address: deciding === undefined || deciding.address === '' ? null : deciding.address,
    reply,
    classification,
    /** What the reply means and what to do; null: the message was accepted, or the classification is not known. */
    remedy: isBounceClass(classification)
      ? (localRemedy(conclusion, deciding?.error) ?? replyRemedy(classification, reply))
      : null,
  };
}

function isBounceClass(text: string | null): text is BounceClass {
  return text !== null && (BOUNCE_CLASSES as readonly string[]).includes(text);
}

/** Why the mail to a recipient domain waits. */
export type DestinationExplanation = Exclude<Awaited<ReturnType<typeof explainDestination>>, Refusal>;

/** Messages examined: those that are due first. */
const MAX_EXAMINED = 100;
const MAX_REPLIES = 10;

interface DestinationState {
  counts: QueueCounts;
  rows: ListedInQueue[];
}

/** Reads all queued messages to a destination: on a reader thread in the daemon. */
export const readDestination = readQuery(
  'queueDestination',
  (tables: Tables, destination: string): DestinationState => ({
    counts: tables.queue.counts({ destination }),
    rows: tables.queue.list({ destination }, MAX_EXAMINED),
  }),
);

/** Explains a destination. Refuses a name that is not a domain name. `read` runs `readDestination`. */
export async function explainDestination(
  name: string,
  deps: ExplainDeps,
  read: (destination: string) => Promise<DestinationState>,
) {
  const destination = destinationOf(name);
  if (isRefusal(destination)) return destination;
  const { tables, clock, inspection } = deps;
  const { counts, rows } = await read(destination);
  const controls = createControlIndex(tables.queueControls.list(clock.now()));
  const reasons = new Map<string, WaitReason & { messages: number }>();
  const replies = new Map<string, Omit<ExplainedAttempt, 'attempt'> & { messages: number }>();
  const routes = new Map<string, ExplainedRoute>();
  const sites = new Map<string, ExplainedSite>();
  const unknown = new Set<string>();
  let blocked: string | null = null;
  for (const row of rows) {
    const facts = inspection === null ? null : inspection.message(row);
    blocked ??= blockedAt(facts);
    const [deciding] = reasonsOf(row, controls, facts, clock.now());
    if (deciding !== undefined) count(reasons, deciding.code, deciding);
    const last = tables.messages.attemptsOf(row.seq).at(-1);
    if (last !== undefined) {
      const { attempt: _, ...reply } = explainAttempt(last);
      count(replies, `${reply.reply?.code} ${reply.reply?.enhanced} ${reply.classification}`, reply);
    }
    const route = facts === null ? null : presentRoute(facts, row);
    if (route !== null) routes.set(JSON.stringify(route), route);
    if (facts?.site !== undefined && facts.site !== null)
      sites.set(facts.site.site, presentSite(facts.site, clock));
    for (const text of unknownOf(deps, facts, row.simulated === 1)) unknown.add(text);
  }
  if (rows.length === 0) for (const text of unknownOf(deps, null)) unknown.add(text);
  const control = controls.ofKey({ account_id: '', destination });
  const due = rows.filter(({ paused, lease }) => paused === 0 && lease === null);
  return {
    destination,
    messages: counts.messages,
    sending: counts.sending,
    deferred: counts.deferred,
    /** With their campaigns, accounts or domains. */
    held: counts.paused,
    oldestAcceptedAt: rows.length === 0 ? null : iso(Math.min(...rows.map(({ created_at }) => created_at))),
    nextAttemptAt: due.length === 0 ? null : iso(Math.min(...due.map(({ due_at }) => due_at))),
    blockedAt: blocked,
    control: control === null ? null : presentControl(control),
    /** Why the examined messages wait, with the number of messages; the most frequent first. */
    reasons: byFrequency(reasons),
    /** The last replies to the examined messages, likewise. */
    replies: byFrequency(replies).slice(0, MAX_REPLIES),
    examined: rows.length,
    routes: [...routes.values()],
    sites: [...sites.values()],
    unknown: [...unknown],
  };
}

function destinationOf(name: string): string | Refusal {
  return normalizeDomain(name) ?? invalid('destination', `${name} is not a domain name`);
}

/** Keeps the first example of each key. */
function count<Entry extends object>(
  map: Map<string, Entry & { messages: number }>,
  key: string,
  entry: Entry,
): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, { ...entry, messages: 1 });
  else known.messages++;
}

function byFrequency<Entry extends { messages: number }>(map: Map<string, Entry>): Entry[] {
  return [...map.values()].toSorted((a, b) => b.messages - a.messages);
}
