import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/** What a control applies to: a recipient domain, a site (MX hosts or shaping profile), an account, an egress pool. */
export const CONTROL_SCOPES = ['destination', 'site', 'account', 'pool'] as const;
export type ControlScope = (typeof CONTROL_SCOPES)[number];

/** pause: matching mail waits. bounce: matching mail is rejected when it is due; for destinations only. */
export const CONTROL_ACTIONS = ['pause', 'bounce'] as const;
export type ControlAction = (typeof CONTROL_ACTIONS)[number];

export interface QueueControlRow {
  scope: ControlScope;
  target: string;
  action: ControlAction;
  reason: string;
  /** Epoch ms; null: until it is removed. */
  until: number | null;
  created_at: number;
  /** The id of an API key, or the program that the operator used. */
  created_by: string;
}

/** Maximum number of rows: the daemon has all of them in memory and reads them twice a second. */
export const MAX_QUEUE_CONTROLS = 500;

/**
 * `queue_controls`, by scope and target. `put` does not enforce MAX_QUEUE_CONTROLS: the caller compares `count`, which
 * includes controls that have ended.
 */
export function queueControlTable(db: Database) {
  const sql = statements(db);
  return {
    /** Controls that are in force at `now`, oldest first. */
    list: sql.all<[now: number], QueueControlRow>(
      `SELECT * FROM queue_controls WHERE until IS NULL OR until > ? ORDER BY created_at, scope, target LIMIT ${MAX_QUEUE_CONTROLS}`,
    ),
    get: sql.get<[scope: ControlScope, target: string], QueueControlRow>(
      `SELECT * FROM queue_controls WHERE scope = ? AND target = ?`,
    ),
    /** Inserts a control, or replaces the one with the same scope and target. */
    put: sql.run<[row: QueueControlRow]>(`INSERT OR REPLACE INTO ${sql.row('queue_controls')}`),
    /** Returns false when there is none. */
    remove: sql.changed<[scope: ControlScope, target: string]>(
      'DELETE FROM queue_controls WHERE scope = ? AND target = ?',
    ),
    /** Removes the controls that have ended; returns how many. */
    removeEnded: sql.changes<[now: number]>('DELETE FROM queue_controls WHERE until <= ?'),
    count: sql.count('SELECT count(*) FROM queue_controls'),
  };
}

/** What replaces the next hop of a queued message (the hosts of its destination), its egress pool, or both. */
export interface Reroute {
  /** Null: the hosts of the destination. */
  host: string | null;
  port: number | null;
  tls: string | null;
  /** Egress pool; null: that of the domain. */
  pool: string | null;
}

/** Maximum number of different reroutes of queued messages. */
export const MAX_REROUTES = 100;

/**
 * `queue_reroutes`, at most MAX_REROUTES. A row never changes, and is deleted only when the limit is reached and no
 * queued message has it.
 */
export function queueRerouteTable(db: Database) {
  const sql = statements(db);
  const find = db
    .prepare<Reroute, number>(
      'SELECT reroute FROM queue_reroutes WHERE host IS @host AND port IS @port AND tls IS @tls AND pool IS @pool',
    )
    .pluck();
  const insert = sql.value<[Reroute], number>(
    'INSERT INTO queue_reroutes (host, port, tls, pool) VALUES (@host, @port, @tls, @pool) RETURNING reroute',
  );
  const removeUnused = sql.run(
    'DELETE FROM queue_reroutes WHERE NOT EXISTS (SELECT 1 FROM queue q WHERE q.reroute = queue_reroutes.reroute)',
  );
  const count = sql.count('SELECT count(*) FROM queue_reroutes');
  const assign = sql.changed<[number | null, number]>(
    'UPDATE queue SET reroute = ? WHERE seq = ? AND lease IS NULL',
  );
  return {
    get: sql.get<[reroute: number], Reroute>(
      'SELECT host, port, tls, pool FROM queue_reroutes WHERE reroute = ?',
    ),
    /** The number of a reroute, which is inserted if it does not exist; null: there are too many. */
    number: (reroute: Reroute): number | null => {
      const found = find.get(reroute);
      if (found !== undefined) return found;
      if (count() >= MAX_REROUTES) removeUnused();
      if (count() >= MAX_REROUTES) return null;
      return insert(reroute);
    },
    /** Sets the reroute of a waiting message, or removes it (null). Returns false when the message is not waiting. */
    assign: (seq: number, reroute: number | null): boolean => assign(reroute, seq),
  };
}
