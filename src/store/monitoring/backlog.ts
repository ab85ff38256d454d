import type { Database } from '../database.ts';
import { HELD } from '../messages/queue.ts';

/** What waits in the queue and for webhooks, and the certificates that expire next: for metrics. */
export interface Backlog {
  queue: {
    /** Due and not being sent. */
    ready: number;
    /** Leased: being sent, or about to be. */
    sending: number;
    /** Not yet due: deferred or scheduled. */
    waiting: number;
    /** Held until they are released, for example with a paused campaign. */
    held: number;
    /** Due time of the message that has been due longest and is not being sent, epoch ms; null: none is due. */
    oldestDue: number | null;
    /** The destinations with the most messages. */
    destinations: DestinationBacklog[];
  };
  /** Calls to active webhooks. */
  webhooks: {
    /** Due now. */
    ready: number;
    /** Retried later. */
    waiting: number;
    /** When the oldest of these events was recorded, epoch ms; null: there is none. */
    oldest: number | null;
  };
  /** The certificates that expire first, expiry in epoch ms. */
  certificates: { host: string; expiresAt: number }[];
}

export interface DestinationBacklog {
  destination: string;
  messages: number;
  /** As in `Backlog`, of this destination. */
  oldestDue: number | null;
}

interface Group extends DestinationBacklog {
  ready: number;
  sending: number;
  held: number;
}

/** Destinations and certificates in a backlog at most. */
const MAX_DESTINATIONS = 20;
const MAX_CERTIFICATES = 20;

/**
 * Reads the backlog. It walks the whole queue, which `limits.queuedMessages` bounds, and therefore runs in a reader thread
 * within the time budget of reads.
 */
export function backlogTable(db: Database) {
  const byDestination = db.prepare<[], Group>(`
    SELECT destination, count(*) AS messages, sum(ready = 1 AND lease IS NULL) AS ready, sum(lease IS NOT NULL) AS sending,
      sum(due_at = ${HELD}) AS held, min(CASE WHEN ready = 1 AND lease IS NULL THEN due_at END) AS oldestDue
    FROM queue WHERE seq > 0 GROUP BY destination`);
  const byWebhook = db.prepare<[string], { messages: number; oldest: number }>(`
    SELECT d.messages, (SELECT created_at FROM webhook_deliveries w
      WHERE w.webhook = d.webhook AND w.event_seq = d.firstSeq) AS oldest
    FROM (SELECT webhook, count(*) AS messages, min(event_seq) AS firstSeq
      FROM webhook_deliveries INDEXED BY webhook_deliveries_open WHERE state <> 'succeeded' AND state = ?
      GROUP BY webhook) d
    WHERE EXISTS (SELECT 1 FROM webhooks WHERE number = d.webhook AND is_active = 1)`);
  const certificates = db.prepare<[number], { host: string; expiresAt: number }>(`
    SELECT host, not_after AS expiresAt FROM certificates WHERE not_after IS NOT NULL ORDER BY not_after LIMIT +?`);

  function readQueue(): Backlog['queue'] {
    const sums = { messages: 0, ready: 0, sending: 0, held: 0 };
    let oldestDue: number | null = null;
    let largest: DestinationBacklog[] = [];
    for (const { destination, messages, oldestDue: oldest, ...group } of byDestination.iterate()) {
      sums.messages += messages;
      sums.ready += group.ready;
      sums.sending += group.sending;
      sums.held += group.held;
      oldestDue = earlier(oldestDue, oldest);
      largest.push({ destination, messages, oldestDue: oldest });
      // Sorted only now and then: a queue can have as many destinations as messages.
      if (largest.length >= 50 * MAX_DESTINATIONS) largest = top(largest);
    }
    const { messages, ...states } = sums;
    const waiting = messages - states.ready - states.sending - states.held;
    return { ...states, waiting, oldestDue, destinations: top(largest) };
  }

  function readWebhooks(): Backlog['webhooks'] {
    const ready = byWebhook.all('ready');
    const waiting = byWebhook.all('waiting');
    const sum = (rows: typeof ready) => rows.reduce((all, { messages }) => all + messages, 0);
    const oldest = [...ready, ...waiting].reduce<number | null>(
      (first, row) => earlier(first, row.oldest),
      null,
    );
    return { ready: sum(ready), waiting: sum(waiting), oldest };
  }

  return {
    read: (): Backlog => ({
      queue: readQueue(),
      webhooks: readWebhooks(),
      certificates: certificates.all(MAX_CERTIFICATES),
    }),
  };
}

function top(destinations: DestinationBacklog[]): DestinationBacklog[] {
  return destinations.toSorted((a, b) => b.messages - a.messages).slice(0, MAX_DESTINATIONS);
}

function earlier(one: number | null, other: number | null): number | null {
  return one === null || (other !== null && other < one) ? other : one;
}
