import { type Database, openConnection, readNumber } from '../database/connection.ts';
import { statements } from '../database/statements.ts';
import { dkimSealContext } from '../domains/domains.ts';
import { keyRecord } from '../master-key.ts';
import { knownMigrations, newestOf, readSchema } from '../migrate/migrations.ts';
import { STATUS_CODES } from '../rows/row-keys.ts';
import { settingsTable } from '../settings.ts';
import { GENERATION, INSTANCE, isCopy, markAsCopy } from './identity.ts';

/** What a database file contains, for the manifest of a backup. */
export interface DatabaseContent {
  /** `PRAGMA user_version`. */
  schema: number;
  instanceId: string | null;
  generation: number;
  /** Whether it is a copy, on which no daemon may start before a restore. */
  isCopy: boolean;
  /** Fingerprint of the master key, in hexadecimal; null: no secret was sealed yet. */
  keyFingerprint: string | null;
  /** See `KeyRecord.ring`. */
  keyRing: string | null;
  /** Null when the schema is not that of this program. */
  counts: ContentCounts | null;
  /** A sealed DKIM key, for testing a master key; null: there is none, or the database was not checked. */
  sealed: SealedSample | null;
  /** What `PRAGMA integrity_check` found, at most 20 findings; null: not checked. */
  damage: string[] | null;
}

export interface SealedSample {
  sealed: Uint8Array;
  /** See `Seal.open`. */
  context: string;
}

export interface ContentCounts {
  accounts: number;
  domains: number;
  contacts: number;
  /** Messages by state. */
  messages: Record<string, number>;
  /** Messages in the queue: a restore holds them. */
  queued: number;
  /** Webhook deliveries that are not finished: a restore holds them. */
  webhookDeliveries: number;
}

const MAX_FINDINGS = 20;

/** Reads a file that no process writes to. Throws SQLite's errors when it is not a database. */
export function describeDatabase(file: string, { check }: { check: boolean }): DatabaseContent {
  const db = openConnection(file, { readonly: true, fileMustExist: true });
  try {
    const damage = check ? integrityOf(db) : null;
    const schema = readSchema(db);
    const settings = settingsTable(db);
    const { fingerprint, ring } = keyRecord({ settings });
    return {
      schema,
      instanceId: settings.get(INSTANCE),
      generation: Number(settings.get(GENERATION) ?? 0),
      isCopy: isCopy({ settings }),
      keyFingerprint: fingerprint,
      keyRing: ring,
      counts: schema === newestOf(knownMigrations()) ? countsOf(db) : null,
      sealed: check && (damage?.length ?? 0) === 0 ? sealedSample(db) : null,
      damage,
    };
  } finally {
    db.close();
  }
}

/**
 * Completes the file that SQLite's backup API has written: a single file without a write-ahead log, marked as a copy on
 * which no daemon starts. Returns its content.
 */
export function sealCopy(file: string): DatabaseContent {
  const db = openConnection(file, { fileMustExist: true });
  try {
    db.exec('PRAGMA journal_mode = DELETE');
    markAsCopy({ settings: settingsTable(db) });
  } finally {
    db.close();
  }
  return describeDatabase(file, { check: false });
}

function integrityOf(db: Database): string[] {
  const found = db.prepare<[], string>(`PRAGMA integrity_check(${MAX_FINDINGS})`).pluck().all();
  return found.length === 1 && found[0] === 'ok' ? [] : found;
}

function sealedSample(db: Database): SealedSample | null {
  const found = db
    .prepare<[], { domain_id: string; selector: string; private_key: Buffer }>(
      'SELECT domain_id, selector, private_key FROM dkim_keys ORDER BY key_id LIMIT 1',
    )
    .get();
  if (found === undefined) return null;
  return { sealed: found.private_key, context: dkimSealContext(found.domain_id, found.selector) };
}

function countsOf(db: Database): ContentCounts {
  const sql = statements(db);
  const messages: Record<string, number> = {};
  // Nearly all messages are delivered, and the index of the others is small.
  const delivered = STATUS_CODES.sql('delivered');
  const others = sql.all<[], { status_code: number; n: number }>(`
    SELECT status_code, count(*) AS n FROM messages INDEXED BY messages_by_status
    WHERE status_code <> ${delivered} GROUP BY status_code`);
  let left = readNumber(db, 'SELECT count(*) FROM messages');
  for (const { status_code, n } of others()) {
    messages[STATUS_CODES.value(status_code)] = n;
    left -= n;
  }
  if (left > 0) messages['delivered'] = left;
  return {
    accounts: readNumber(db, 'SELECT count(*) FROM accounts'),
    domains: readNumber(db, 'SELECT count(*) FROM domains'),
    contacts: readNumber(db, 'SELECT sum(contacts) FROM contact_counts'),
    messages,
    queued: readNumber(db, 'SELECT count(*) FROM queue'),
    webhookDeliveries: readNumber(
      db,
      "SELECT count(*) FROM webhook_deliveries INDEXED BY webhook_deliveries_open WHERE state <> 'succeeded' AND state IN ('ready', 'waiting')",
    ),
  };
}
