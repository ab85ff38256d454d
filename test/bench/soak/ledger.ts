import { join } from 'node:path';
import Database from 'better-sqlite3';
import { STATUS_CODES } from '../../../src/store/rows/row-keys.ts';
import { REJECTED_DOMAINS } from './faults.ts';

/** Accepted messages by outcome, as the database has it, compared with what the destinations accepted. */
export interface SoakLedger {
  accepted: number;
  delivered: number;
  /** Delivered, and a bounce came in later. */
  bouncedLater: number;
  /** Rejected with 5xx by the destination. */
  rejected: number;
  /** Accepted by a destination more than once. */
  repeated: number;
  /** Webhook deliveries that succeeded, and those whose next attempt is due later. */
  webhookCalls: { succeeded: number; pending: number };
  faults: string[];
}

const MAX_EXAMPLES = 3;

/**
 * Compares each message. `accepted`: messages that the API accepted, to the recipients 0 to `accepted` - 1. `received`: how
 * often the destinations accepted mail to each of them. `reported`: recipients whose bounce was accepted. The daemon has
 * stopped.
 */
export function compareSoak(
  dataDir: string,
  accepted: number,
  received: Uint8Array,
  reported: ReadonlySet<string>,
): SoakLedger {
  const ledger: SoakLedger = {
    accepted,
    delivered: 0,
    bouncedLater: 0,
    rejected: 0,
    repeated: 0,
    webhookCalls: { succeeded: 0, pending: 0 },
    faults: [],
  };
  const examples = new Map<string, { count: number; first: string[] }>();
  const fault = (kind: string, recipient: string) => {
    const entry = examples.get(kind) ?? { count: 0, first: [] };
    entry.count++;
    if (entry.first.length < MAX_EXAMPLES) entry.first.push(recipient);
    examples.set(kind, entry);
  };
  const known = new Uint8Array(accepted);
  const db = new Database(join(dataDir, 'postrider.db'), { readonly: true });
  try {
    const rows = db
      .prepare<[], { recipient: string; status: number }>(
        'SELECT recipient, status_code AS status FROM messages',
      )
      .iterate();
    for (const { recipient, status } of rows) {
      const number = Number(/^r(\d+)@/.exec(recipient)?.[1]);
      if (!(number < accepted)) {
        fault('in the database, but not accepted by the API', recipient);
        continue;
      }
      if (known[number] === 1) fault('twice in the database', recipient);
      known[number] = 1;
      const state = STATUS_CODES.value(status);
      const times = received[number] ?? 0;
      if (times > 1) {
        ledger.repeated++;
        fault('delivered more than once', recipient);
      }
      const isRejected = REJECTED_DOMAINS.has(recipient.slice(recipient.indexOf('@') + 1));
      if (state === 'delivered' && times > 0 && !reported.has(recipient)) ledger.delivered++;
      else if (state === 'bounced' && times > 0 && reported.has(recipient)) ledger.bouncedLater++;
      else if (state === 'bounced' && times === 0 && isRejected) ledger.rejected++;
      else
        fault(
          `${state} in the database, accepted ${times} times by the destination${reported.has(recipient) ? ', bounce reported' : ''}`,
          recipient,
        );
    }
    for (let number = 0; number < accepted; number++)
      if (known[number] !== 1) fault('accepted by the API, but not in the database', `r${number}`);
    for (let number = accepted; number < received.length; number++)
      if ((received[number] ?? 0) > 0) fault('received, but not accepted by the API', `r${number}`);
    const calls = db
      .prepare<[], { state: string; n: number }>(
        'SELECT state, count(*) AS n FROM webhook_deliveries GROUP BY state',
      )
      .all();
    for (const { state, n } of calls) {
      if (state === 'succeeded') ledger.webhookCalls.succeeded = n;
      else if (state === 'ready' || state === 'waiting') ledger.webhookCalls.pending += n;
      else ledger.faults.push(`${n} webhook deliveries are ${state}`);
    }
  } finally {
    db.close();
  }
  for (const [kind, { count, first }] of examples)
    ledger.faults.push(`${count} messages ${kind}: ${first.join(', ')}`);
  return ledger;
}
