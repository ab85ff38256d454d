import { cachedLookup } from '../cached-rows.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import { type NoticePeriod, noticedCause } from '../people/notices.ts';

/* Sending domains with their verification flags, and their DKIM keys. */

/** Transactional or marketing; the API calls it use case. */
export type Stream = 'tx' | 'mk';
export type DomainStatus = 'PENDING' | 'SUCCESS' | 'TEMPORARY_FAILURE' | 'FAILED';
/** Why the messages of a domain are held. */
export type SendingStop = 'account_disabled' | 'domain_failed' | 'sending_paused';
type Flag = 0 | 1;

/** Columns with the last result of a DNS check: 1 where it passed. */
export const CHECK_COLUMNS = [
  'dkim_enabled',
  'spf_configured',
  'dmarc_configured',
  'mx_configured',
  'alt_dkim_enabled',
  'alt_spf_configured',
  'alt_dmarc_configured',
] as const;
export type CheckColumn = (typeof CHECK_COLUMNS)[number];
export type CheckFlags = Record<CheckColumn, Flag>;

/** One value for each check column. */
export function checkColumns<T>(value: T): Record<CheckColumn, T> {
  const entries = CHECK_COLUMNS.map((column) => [column, value]);
  return Object.fromEntries(entries) as Record<CheckColumn, T>; // the keys are CHECK_COLUMNS
}

export interface DomainRow extends CheckFlags {
  domain_id: string;
  account_id: string;
  group_id: string;
  name: string;
  use_case: Stream;
  region: string;
  status: DomainStatus;
  return_path: 'customer' | 'platform';
  tracking_domain: string | null;
  tracking_host: string | null;
  /** Whether sends track opens, and clicks, that do not state it. */
  track_opens: Flag;
  track_clicks: Flag;
  alt_domain_id: string;
  alt_status: 'PENDING' | 'ACTIVE';
  alt_provisioned: Flag;
  last_checked_at: number | null;
  next_check_at: number;
  check_count: number;
  failing_since: number | null;
  created_at: number;
  updated_at: number;
}

/** SQL: whether the mail of a row `d` of `domains` is stopped, with its stream or alone. */
export const STREAM_PAUSED_SQL = `EXISTS (SELECT 1 FROM sending_limits l WHERE l.account_id = d.account_id
  AND l.stream = d.use_case AND l.domain_id IN ('', d.domain_id) AND l.provider = '' AND l.level = 'pause')`;

/** The columns that never change. */
const FIXED = ['domain_id', 'account_id', 'name', 'use_case', 'region', 'alt_domain_id', 'created_at'];

/**
 * `domains`; `byId`, `named` and `sendingStop` are cached until a write to domains, accounts or sending limits. Checks that are due are
 * read by the index `domains_by_next_check`.
 */
export function domainTable(db: Database) {
  const sql = statements(db);
  const sendingStop = sql.value<[string], SendingStop>(`
    SELECT CASE WHEN a.status = 'disabled' AND a.moved_at IS NULL THEN 'account_disabled' WHEN d.status = 'FAILED' THEN 'domain_failed'
      WHEN ${STREAM_PAUSED_SQL} THEN 'sending_paused' END
    FROM domains d JOIN accounts a ON a.account_id = d.account_id WHERE d.domain_id = ?`);
  const byId = sql.get<[string], DomainRow>('SELECT * FROM domains WHERE domain_id = ?');
  const list = sql.all<[], DomainRow>('SELECT * FROM domains ORDER BY created_at, domain_id');
  const listOf = sql.all<[string], DomainRow>(
    'SELECT * FROM domains WHERE account_id = ? ORDER BY created_at, domain_id',
  );
  const named = sql.all<[string, string], DomainRow>(
    'SELECT * FROM domains WHERE account_id = ? AND name = ? ORDER BY created_at',
  );
  const proven = sql.value<[string, string], Flag>(`
    SELECT max(dkim_enabled) FROM (
      SELECT dkim_enabled FROM domains WHERE tracking_domain = ?
      UNION ALL SELECT dkim_enabled FROM domains WHERE name = ?)`);
  const due = sql.get<[{ now: number; domains: string; accounts: string }], DomainRow>(`
    SELECT * FROM domains
    WHERE next_check_at <= @now AND domain_id NOT IN (SELECT value FROM json_each(@domains))
      AND account_id NOT IN (SELECT value FROM json_each(@accounts))
    ORDER BY next_check_at LIMIT 1`);
  const unprovisioned = sql.get<[{ except: string; after: string }], DomainRow>(`
    SELECT * FROM domains
    WHERE alt_provisioned = 0 AND domain_id NOT IN (SELECT value FROM json_each(@except))
    ORDER BY account_id <= @after, account_id, created_at LIMIT 1`);
  const resetLinkHosts = sql.run<[{ now: number }]>(`
    UPDATE domains SET tracking_host = NULL, next_check_at = min(next_check_at, @now), updated_at = @now
    WHERE tracking_host IS NOT NULL`);
  const stopOf = cachedLookup(db, (domainId: string) => sendingStop(domainId));
  const withId = cachedLookup(db, (domainId: string) => byId(domainId));
  const withName = cachedLookup(db, (accountId: string, name: string) => named(accountId, name));
  return {
    insert: sql.run<[row: DomainRow]>(`INSERT INTO ${sql.row('domains')}`),
    /** Writes the columns that may change. */
    update: sql.run<[row: DomainRow]>(`
      UPDATE domains SET ${sql.rowExcept('domains', FIXED)} WHERE domain_id = @domain_id`),
    /** Why messages of a domain are held; null: they are not, or the domain was deleted. */
    sendingStop: (domainId: string): SendingStop | null => stopOf(domainId),
    /** A domain of any account: for the daemon's work, not for responses to callers. */
    byId: (domainId: string): DomainRow | null => withId(domainId),
    get: sql.get<[accountId: string, domainId: string], DomainRow>(
      'SELECT * FROM domains WHERE account_id = ? AND domain_id = ?',
    ),
    /** The link host of the oldest domain of an account that has one; null: none. */
    linkHost: sql.value<[accountId: string], string>(`
      SELECT tracking_host FROM domains INDEXED BY domains_by_link_host
      WHERE account_id = ? AND tracking_host IS NOT NULL ORDER BY created_at, domain_id LIMIT 1`),
    /** The domains of an account, or with null of all accounts, oldest first. */
    list: (accountId: string | null): DomainRow[] => (accountId === null ? list() : listOf(accountId)),
    /** Domains of all accounts: failed ones first, then failing, verified and pending ones. */
    worstFirst: sql.all<[limit: number], DomainRow>(`
      SELECT * FROM domains
      ORDER BY CASE status WHEN 'FAILED' THEN 0 WHEN 'TEMPORARY_FAILURE' THEN 1 WHEN 'SUCCESS' THEN 2 ELSE 3 END,
        failing_since, last_checked_at, domain_id
      LIMIT +?`),
    /** Verified ones that began to fail in the period, of which nobody was notified. */
    toNotice: sql.all<[period: NoticePeriod], DomainRow>(`
      SELECT * FROM domains
      WHERE status IN ('TEMPORARY_FAILURE', 'FAILED') AND failing_since BETWEEN @from AND @to
        AND NOT EXISTS (${noticedCause('domain', 'domains.account_id', 'domain_id')})
      LIMIT +@limit`),
    /** The registrations of one name by all accounts. */
    ofName: sql.all<[name: string, limit: number], DomainRow>(
      'SELECT * FROM domains WHERE name = ? ORDER BY created_at, domain_id LIMIT +?',
    ),
    count: sql.count('SELECT count(*) FROM domains'),
    /** An account's registrations of one name, one for each use case. */
    named: (accountId: string, name: string): readonly DomainRow[] => withName(accountId, name),
    /** Whether any account has registered the name. */
    isRegistered: sql.exists<[name: string]>('SELECT domain_id FROM domains WHERE name = ? LIMIT 1'),
    /**
     * Whether a domain has the custom link host `host` or the name `name`. `proven`: the DKIM key of such a domain was found
     * in DNS.
     */
    linkHostStatus: (host: string, name: string): 'proven' | 'registered' | null => {
      const flag = proven(host, name);
      return flag === null ? null : flag === 1 ? 'proven' : 'registered';
    },
    /** The account of such a domain, of one whose DKIM key was found if there is one; null: there is no such domain. */
    linkHostOwner: sql.value<[host: string, name: string], string>(`
      SELECT account_id FROM (
        SELECT account_id, dkim_enabled FROM domains WHERE tracking_domain = ?
        UNION ALL SELECT account_id, dkim_enabled FROM domains WHERE name = ?)
      ORDER BY dkim_enabled DESC LIMIT 1`),
    /** The domain whose check has been due for the longest time, without these domains and accounts. */
    dueForCheck: (
      now: number,
      domainIds: readonly string[],
      accountIds: readonly string[],
    ): DomainRow | null =>
      due({ now, domains: JSON.stringify(domainIds), accounts: JSON.stringify(accountIds) }),
    /**
     * The oldest domain whose secondary lane is not provisioned, without those in `exceptIds`, of the next account with one:
     * the accounts take turns in the order of their ids, beginning after `afterAccountId`.
     */
    nextUnprovisioned: (afterAccountId: string, exceptIds: readonly string[]): DomainRow | null =>
      unprovisioned({ after: afterAccountId, except: JSON.stringify(exceptIds) }),
    /** Links use `public.url` until the next check of each domain, which is due now. */
    resetLinkHosts: (now: number): void => resetLinkHosts({ now }),
    /** Deletes its DKIM keys, too. */
    remove: sql.run<[domainId: string]>('DELETE FROM domains WHERE domain_id = ?'),
  };
}

export type Lane = 'primary' | 'secondary';
export type DkimKeyState = 'active' | 'pending' | 'retiring' | 'revoked';
/** The place of a key in the platform's zone (domains/key-slots.ts). */
export type KeySlot = 'a' | 'b' | 'e' | 'f' | 's' | 't';

export interface DkimKeyRow {
  key_id: number;
  domain_id: string;
  lane: Lane;
  /** Null: the owner of the domain publishes the key as a TXT record. */
  slot: KeySlot | null;
  selector: string;
  state: DkimKeyState;
  /** PKCS #8 DER, sealed with `dkimSealContext`. */
  private_key: Buffer;
  /** SubjectPublicKeyInfo DER, base64: the `p=` of the record. */
  public_key: string;
  created_at: number;
  /** When the state last changed. */
  changed_at: number;
}

/** A key to insert. Without a slot, a key of the secondary lane gets that of the required record. */
export type NewDkimKeyRow = Omit<DkimKeyRow, 'key_id' | 'slot' | 'changed_at'> & { slot?: KeySlot | null };

/** A key with the name it signs for. */
export type SigningKeyRow = DkimKeyRow & { name: string };

/** A key as the platform's zone publishes it. */
export interface ZoneKeyRow {
  key_id: number;
  alt_domain_id: string;
  slot: KeySlot;
  state: DkimKeyState;
  public_key: string;
}

/** The context with which a private key is sealed. */
export function dkimSealContext(domainId: string, selector: string): string {
  return `dkim:${domainId}:${selector}`;
}

/**
 * `dkim_keys`; `signing` is cached until a write to keys or domains. Triggers count each change of a key with a slot in
 * `zone_changes`, which the zone compares.
 */
export function dkimKeyTable(db: Database) {
  const sql = statements(db);
  const insert = sql.insert<[Omit<DkimKeyRow, 'key_id'>]>(`INSERT INTO ${sql.row('dkim_keys')}`);
  const signing = sql.all<[string, Lane], SigningKeyRow>(`
    SELECT k.*, d.name FROM dkim_keys k JOIN domains d USING (domain_id)
    WHERE k.domain_id = ? AND k.lane = ? AND k.state = 'active' ORDER BY k.key_id`);
  const signingIn = cachedLookup(db, (domainId: string, lane: Lane) => signing(domainId, lane));
  const setState = sql.run<[DkimKeyState, number, number]>(
    'UPDATE dkim_keys SET state = ?, changed_at = ? WHERE key_id = ?',
  );
  const zoneColumns = 'k.key_id, d.alt_domain_id, k.slot, k.state, k.public_key';
  const zonePage = sql.all<[number, number], ZoneKeyRow>(`
    SELECT ${zoneColumns} FROM dkim_keys k JOIN domains d USING (domain_id)
    WHERE k.key_id > ? AND k.slot IS NOT NULL ORDER BY k.key_id LIMIT +?`);
  return {
    /** Returns its key id. */
    insert: (row: NewDkimKeyRow): number => {
      const slot = row.slot ?? (row.lane === 'secondary' ? 's' : null);
      return insert({ ...row, slot, changed_at: row.created_at });
    },
    /** The keys of a domain, oldest first. */
    of: sql.all<[domainId: string], DkimKeyRow>(
      'SELECT * FROM dkim_keys WHERE domain_id = ? ORDER BY key_id',
    ),
    /** Active keys of a domain in a lane. */
    signing: (domainId: string, lane: Lane): readonly SigningKeyRow[] => signingIn(domainId, lane),
    setState: (keyId: number, state: DkimKeyState, at: number): void => setState(state, at, keyId),
    remove: sql.run<[keyId: number]>('DELETE FROM dkim_keys WHERE key_id = ?'),
    /** Keys that the platform's zone publishes, after the key with this id. */
    zonePage: (after: number, limit: number): ZoneKeyRow[] => zonePage(after, limit),
    /** All keys that the platform's zone publishes: for commands, not for the daemon. */
    zoneKeys: (): ZoneKeyRow[] => zonePage(0, -1),
    /** The keys below one name of the platform's zone. */
    zoneKeysOf: sql.all<[altDomainId: string], ZoneKeyRow>(`
      SELECT ${zoneColumns} FROM domains d JOIN dkim_keys k USING (domain_id)
      WHERE d.alt_domain_id = ? AND k.slot IS NOT NULL ORDER BY k.slot`),
  };
}

/** What the last check of a domain found for each of its records, as JSON. */
export function domainCheckTable(db: Database) {
  const sql = statements(db);
  return {
    put: sql.run<[domainId: string, results: string]>(`
      INSERT INTO domain_checks (domain_id, results) VALUES (?, ?)
      ON CONFLICT DO UPDATE SET results = excluded.results`),
    /** Null before the first check. */
    get: sql.value<[domainId: string], string>('SELECT results FROM domain_checks WHERE domain_id = ?'),
  };
}
