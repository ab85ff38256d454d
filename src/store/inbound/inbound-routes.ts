import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import type { DomainStatus } from '../domains/domains.ts';
import { type NamedPageFilter, type Page, pageOf } from '../rows/page.ts';

export const ROUTE_ACTIONS = ['store', 'webhook'] as const;
export type RouteAction = (typeof ROUTE_ACTIONS)[number];
export const SPAM_POLICIES = ['mark', 'reject'] as const;
export type SpamPolicy = (typeof SPAM_POLICIES)[number];

/** Addresses whose mail is received. */
export interface InboundRouteRow {
  /** The page key. */
  seq: number;
  route_id: string;
  account_id: string;
  domain_id: string;
  name: string;
  /** In lower case; `*`: every address of the host without a route of its own. */
  local: string;
  /** The domain or a name below it: A-labels, lower case. */
  host: string;
  action: RouteAction;
  /** That of the action `webhook`, else null. */
  webhook_id: string | null;
  spam_policy: SpamPolicy;
  is_active: 0 | 1;
  created_at: number;
  updated_at: number;
}

/** A route that an address matches, with what decides whether its mail is received now. */
export interface MatchedRoute
  extends Pick<InboundRouteRow, 'route_id' | 'account_id' | 'local' | 'webhook_id' | 'spam_policy'> {
  domain_status: DomainStatus;
  account_status: 'active' | 'disabled';
}

/** `inbound_routes`; those of a recipient are read by the index `inbound_routes_by_host`. */
export function inboundRouteTable(db: Database) {
  const sql = statements(db);
  const list = sql.all<[string, number, string, number], InboundRouteRow>(`
    SELECT * FROM inbound_routes WHERE account_id = ? AND seq < ? AND instr(lower(name || ' ' || local || '@' || host), lower(?)) > 0
    ORDER BY seq DESC LIMIT +?`);
  return {
    insert: sql.run<[row: Omit<InboundRouteRow, 'seq'>]>(`INSERT INTO ${sql.row('inbound_routes')}`),
    update: sql.run<[row: InboundRouteRow]>(`
      UPDATE inbound_routes SET ${sql.rowExcept('inbound_routes', ['seq', 'route_id', 'account_id', 'created_at'])}
      WHERE seq = @seq`),
    remove: sql.run<[seq: number]>('DELETE FROM inbound_routes WHERE seq = ?'),
    get: sql.get<[accountId: string, routeId: string], InboundRouteRow>(
      'SELECT * FROM inbound_routes WHERE account_id = ? AND route_id = ?',
    ),
    byMatch: sql.get<[accountId: string, host: string, local: string], InboundRouteRow>(
      'SELECT * FROM inbound_routes WHERE account_id = ? AND host = ? AND local = ?',
    ),
    count: sql.count<[accountId: string]>('SELECT count(*) FROM inbound_routes WHERE account_id = ?'),
    /** Newest first. `search`: part of the name or of the address. */
    list: ({ accountId, beforeSeq, limit, search = '' }: NamedPageFilter): Page<InboundRouteRow> =>
      pageOf(list(accountId, beforeSeq ?? Number.MAX_SAFE_INTEGER, search, limit + 1), limit),
    /** Whether any account has an active route at the host. */
    hasHost: sql.value<[host: string], 1>(
      'SELECT 1 FROM inbound_routes WHERE host = ? AND is_active = 1 LIMIT 1',
    ),
    /**
     * The active route of an address: that of a domain that may send before others, of the domain with the longest name, and its
     * own before `*`. A domain that is not verified does not take the mail of another account's.
     */
    match: sql.get<[{ host: string; local: string }], MatchedRoute>(`
      SELECT r.route_id, r.account_id, r.local, r.webhook_id, r.spam_policy, d.status AS domain_status, a.status AS account_status
      FROM inbound_routes r INDEXED BY inbound_routes_by_host
        JOIN domains d ON d.domain_id = r.domain_id JOIN accounts a ON a.account_id = r.account_id
      WHERE r.host = @host AND r.local IN (@local, '*') AND r.is_active = 1
      ORDER BY d.status IN ('SUCCESS', 'TEMPORARY_FAILURE') DESC, length(d.name) DESC, r.local = '*', r.seq LIMIT 1`),
    /** The hosts of the active routes of a domain, in order. */
    hostsOf: sql.values<[domainId: string, limit: number], string>(`
      SELECT DISTINCT host FROM inbound_routes INDEXED BY inbound_routes_by_domain
      WHERE domain_id = ? AND is_active = 1 ORDER BY host LIMIT +?`),
  };
}
