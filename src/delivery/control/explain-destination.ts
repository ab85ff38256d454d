import { iso } from '../../core/clock.ts';
import { invalid, isRefusal, type Refusal } from '../../core/refusal.ts';
import { normalizeDomain } from '../../mail/address.ts';
import type { ListedInQueue, QueueCounts } from '../../store/messages/queue-list.ts';
import { readQuery } from '../../store/readers/reads.ts';
import type { Tables } from '../../store/tables.ts';
import { createControlIndex } from './controls.ts';
import {
  blockedAt,
  type ExplainDeps,
  type ExplainedAttempt,
  type ExplainedRoute,
  type ExplainedSite,
  explainAttempt,
  presentRoute,
  presentSite,
  unknownOf,
} from './explain.ts';
import { presentControl, type QueueControl } from './orders.ts';
import { reasonsOf, type WaitReason } from './reasons.ts';

/** Why the mail to a recipient domain waits. */
export interface DestinationExplanation {
  destination: string;
  messages: number;
  sending: number;
  deferred: number;
  /** Held: with their campaigns, accounts or domains. */
  held: number;
  /** ISO 8601: when the first of the examined messages was accepted; null: there are none. */
  oldestAcceptedAt: string | null;
  /** ISO 8601: when the next attempt is due; null: there is none. */
  nextAttemptAt: string | null;
  /** Since when a receiver blocks the only source address that could send an examined message; null: none is blocked. */
  blockedAt: string | null;
  control: QueueControl | null;
  /** Why the examined messages wait, with the number of messages; the most frequent first. */
  reasons: (WaitReason & { messages: number })[];
  /** The last replies to the examined messages, the most frequent first. */
  replies: (Omit<ExplainedAttempt, 'attempt'> & { messages: number })[];
  /** Number of messages examined: those that are due first. */
  examined: number;
  routes: ExplainedRoute[];
  sites: ExplainedSite[];
  unknown: string[];
}

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
): Promise<DestinationExplanation | Refusal> {
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
    const live = inspection === null || facts === null ? null : { inspection, facts };
    blocked ??= blockedAt(facts);
    const [deciding] = reasonsOf(row, controls, live, clock);
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
    for (const text of unknownOf(deps, facts)) unknown.add(text);
  }
  if (rows.length === 0) for (const text of unknownOf(deps, null)) unknown.add(text);
  const control = controls.ofKey({ account_id: '', destination });
  const due = rows.filter(({ paused, lease }) => paused === 0 && lease === null);
  return {
    destination,
    messages: counts.messages,
    sending: counts.sending,
    deferred: counts.deferred,
    held: counts.paused,
    oldestAcceptedAt: rows.length === 0 ? null : iso(Math.min(...rows.map(({ created_at }) => created_at))),
    nextAttemptAt: due.length === 0 ? null : iso(Math.min(...due.map(({ due_at }) => due_at))),
    blockedAt: blocked,
    control: control === null ? null : presentControl(control),
    reasons: byFrequency(reasons),
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
