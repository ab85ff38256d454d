import type { DataPolicy } from '../data-policy.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';

/*
 * Numbers of TLS sessions with mail servers, by day, recipient domain and the policy that applied, until they are
 * reported to the domain (RFC 8460). Recipient domains are chosen by callers and failures by servers, so both are bounded.
 */

/** What sessions are counted by. */
export interface TlsSessionKey {
  /** Days since 1970-01-01, UTC. */
  day: number;
  /** The domain of the recipients. */
  domain: string;
  policy_type: 'sts' | 'tlsa' | 'no-policy-found';
  policy_domain: string;
  /** JSON: what was published. */
  policy: string;
}

export interface TlsSessionRow extends TlsSessionKey {
  seq: number;
  successful: number;
  failed: number;
}

export interface TlsSessionFailure {
  /** RFC 8460 §4.3. */
  type: string;
  /** Addresses are '' if there was no connection. */
  source_ip: string;
  receiving_host: string;
  receiving_ip: string;
  reason: string;
}

export type TlsSessionFailureRow = TlsSessionFailure & { sessions: number };

/** A day of a domain that is not reported yet. */
export type UnreportedDay = Pick<TlsSessionKey, 'day' | 'domain'>;

export const TLS_SESSION_POLICY = {
  table: 'tls_sessions',
  personal: ['domain'],
  erasure: { stays: 'the domain of recipients without their mailbox, counted with that of others' },
  retention: { until: 'the report is sent, at most three days' },
} as const satisfies DataPolicy;

/** Maximum number of policies of all domains and days; sessions of further ones are not counted. */
const MAX_ROWS = 200_000;
/** Maximum number of policies of one domain and day: a domain may change its policy often. */
const MAX_POLICIES = 20;
/** Maximum number of different failures of one policy; further ones are counted without details. */
const MAX_FAILURES = 100;

/**
 * `tls_sessions` with their `tls_session_failures`. `maxRows`: the range of row numbers in which new rows are inserted.
 */
export function tlsSessionTable(db: Database, maxRows = MAX_ROWS) {
  const sql = statements(db);
  const find = db
    .prepare<TlsSessionKey, number>(`
      SELECT seq FROM tls_sessions
      WHERE day = @day AND domain = @domain AND policy_type = @policy_type AND policy_domain = @policy_domain
        AND policy = @policy`)
    .pluck();
  const insert = sql.insert<[TlsSessionKey]>(`
    INSERT INTO tls_sessions (day, domain, policy_type, policy_domain, policy, successful, failed)
    VALUES (@day, @domain, @policy_type, @policy_domain, @policy, 0, 0)`);
  /** Rows are deleted from the lowest number on, so that the range of numbers bounds their count. */
  const range = db.prepare<[], { first: number | null; last: number | null }>(
    'SELECT (SELECT min(seq) FROM tls_sessions) AS first, (SELECT max(seq) FROM tls_sessions) AS last',
  );
  const policiesOf = sql.count<[number, string, number]>(
    'SELECT count(*) FROM (SELECT 1 FROM tls_sessions WHERE day = ? AND domain = ? LIMIT +?)',
  );
  const succeed = sql.run<[number]>('UPDATE tls_sessions SET successful = successful + 1 WHERE seq = ?');
  const fail = sql.run<[number]>('UPDATE tls_sessions SET failed = failed + 1 WHERE seq = ?');
  const addFailure = sql.changed<[TlsSessionFailure & { session_seq: number }]>(`
    UPDATE tls_session_failures SET sessions = sessions + 1
    WHERE session_seq = @session_seq AND type = @type AND source_ip = @source_ip
      AND receiving_host = @receiving_host AND receiving_ip = @receiving_ip AND reason = @reason`);
  const insertFailure = sql.run<[TlsSessionFailure & { session_seq: number }]>(`
    INSERT INTO tls_session_failures (session_seq, type, source_ip, receiving_host, receiving_ip, reason, sessions)
    VALUES (@session_seq, @type, @source_ip, @receiving_host, @receiving_ip, @reason, 1)
    ON CONFLICT DO UPDATE SET sessions = sessions + 1`);
  const failuresOf = sql.count<[number, number]>(
    'SELECT count(*) FROM (SELECT 1 FROM tls_session_failures WHERE session_seq = ? LIMIT +?)',
  );
  const nextDay = sql.get<[{ day: number; domain: string; before: number }], UnreportedDay>(`
    SELECT day, domain FROM tls_sessions WHERE (day, domain) > (@day, @domain) AND day < @before
    ORDER BY day, domain LIMIT 1`);
  const ofDay = sql.all<[number, string], TlsSessionRow>(
    'SELECT * FROM tls_sessions WHERE day = ? AND domain = ?',
  );
  const remove = sql.run<[number, string]>('DELETE FROM tls_sessions WHERE day = ? AND domain = ?');

  function seqOf(key: TlsSessionKey): number | null {
    const found = find.get(key);
    if (found !== undefined) return found;
    const { first, last } = range.get() ?? { first: null, last: null };
    if (first !== null && last !== null && last - first + 1 >= maxRows) return null;
    if (policiesOf(key.day, key.domain, MAX_POLICIES) >= MAX_POLICIES) return null;
    return insert(key);
  }

  return {
    /** Counts one session; `failure` is null for a success. Returns false when a limit is reached and it is not counted. */
    count: (key: TlsSessionKey, failure: TlsSessionFailure | null): boolean => {
      const seq = seqOf(key);
      if (seq === null) return false;
      if (failure === null) {
        succeed(seq);
        return true;
      }
      fail(seq);
      const row = { ...failure, session_seq: seq };
      if (addFailure(row)) return true;
      const isFull = failuresOf(seq, MAX_FAILURES) >= MAX_FAILURES;
      const blank = { source_ip: '', receiving_host: '', receiving_ip: '', reason: '' };
      insertFailure(isFull ? { ...row, ...blank } : row);
      return true;
    },
    /** The next day of a domain with sessions before the day `before`, in order; null: there is none. */
    nextUnreported: (after: UnreportedDay, before: number): UnreportedDay | null =>
      nextDay({ ...after, before }),
    ofDay: ({ day, domain }: UnreportedDay): TlsSessionRow[] => ofDay(day, domain),
    failures: sql.all<[seq: number], TlsSessionFailureRow>(
      'SELECT type, source_ip, receiving_host, receiving_ip, reason, sessions FROM tls_session_failures WHERE session_seq = ?',
    ),
    /** Removes the sessions of a reported day. */
    remove: ({ day, domain }: UnreportedDay): void => remove(day, domain),
    /** Removes at most `limit` rows of earlier days; returns their number. */
    removeBefore: sql.changes<[day: number, limit: number]>(
      'DELETE FROM tls_sessions WHERE seq IN (SELECT seq FROM tls_sessions WHERE day < ? ORDER BY day LIMIT +?)',
    ),
  };
}
