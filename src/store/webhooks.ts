import { cachedLookup } from './cached-rows.ts';
import type { Database } from './database/database.ts';
import { statements } from './database/statements.ts';
import { type NoticePeriod, noticedCause } from './people/notices.ts';

/** Webhooks and the secrets that sign their calls. */
export interface WebhookRow {
  number: number;
  webhook_id: string;
  account_id: string;
  name: string;
  description: string | null;
  url: string;
  /** Whose bodies its calls have. */
  format: 'postrider' | 'postmark' | 'sendgrid' | 'mailgun' | 'resend' | 'ses';
  /** JSON array of event kinds, or `["*"]`. */
  events: string;
  /** JSON: which events of these kinds it gets; null: all. */
  filter: string | null;
  /** JSON: headers that are added to its calls, by name, their values sealed, in base64; null: none. */
  headers: string | null;
  is_active: 0 | 1;
  /** Why the daemon disabled it; null when its account did, or when it is active. */
  off_reason: 'gone' | 'failing' | null;
  /** Epoch ms of the first failure since the last success. */
  failing_since: number | null;
  created_at: number;
  updated_at: number;
}

/** What decides which events of its kinds a webhook gets. */
export type WebhookSelection = Pick<WebhookRow, 'filter' | 'format'>;

export type NewWebhook = Omit<WebhookRow, 'number'>;

/** A sealed secret and until when it signs; null: it is the current one. */
export interface WebhookSecretRow {
  secret: Buffer;
  expires_at: number | null;
}

/**
 * `webhooks` and `webhook_secrets`; `subscribed` and `selection` are cached until a write to webhooks. The caller seals and
 * opens the secrets.
 */
export function webhookTable(db: Database) {
  const sql = statements(db);
  const get = sql.get<[string, string], WebhookRow>(
    'SELECT * FROM webhooks WHERE webhook_id = ? AND account_id = ?',
  );
  // Kinds are quoted in the JSON, so that none is found inside another.
  const subscribed = sql.values<[string, string], number>(`
    SELECT number FROM webhooks
    WHERE account_id = ? AND is_active = 1 AND (events = '["*"]' OR instr(events, ?) > 0)`);
  const subscribers = cachedLookup(db, (accountId: string, kind: string) =>
    subscribed(accountId, `"${kind}"`),
  );
  const selectionOf = sql.get<[number], WebhookSelection>(
    'SELECT filter, format FROM webhooks WHERE number = ?',
  );
  const selections = cachedLookup(db, (number: string) => selectionOf(Number(number)));
  const setFailingSince = sql.run<[number | null, number]>(
    'UPDATE webhooks SET failing_since = ? WHERE number = ?',
  );
  const turnOff = sql.changed<[string, number, number]>(
    'UPDATE webhooks SET is_active = 0, off_reason = ?, updated_at = ? WHERE number = ? AND is_active = 1',
  );
  const retireSecret = sql.run<[number, number]>(
    'UPDATE webhook_secrets SET expires_at = ? WHERE webhook = ? AND expires_at IS NULL',
  );
  const removeExpired = sql.run<[number, number]>(
    'DELETE FROM webhook_secrets WHERE webhook = ? AND expires_at <= ?',
  );

  return {
    /** Returns its number. */
    insert: sql.insert<[row: NewWebhook]>(`INSERT INTO ${sql.row('webhooks')}`),
    update: sql.run<[row: WebhookRow]>(`
      UPDATE webhooks SET ${sql.rowExcept('webhooks', ['number', 'webhook_id', 'account_id', 'created_at'])}
      WHERE number = @number`),
    get: (accountId: string, webhookId: string): WebhookRow | null => get(webhookId, accountId),
    byNumber: sql.get<[number: number], WebhookRow>('SELECT * FROM webhooks WHERE number = ?'),
    /** Oldest first, active or not. */
    list: sql.all<[accountId: string], WebhookRow>(
      'SELECT * FROM webhooks WHERE account_id = ? ORDER BY number',
    ),
    /** Failing webhooks of all accounts: disabled ones first, then those that have failed for the longest time. */
    failing: sql.all<[limit: number], WebhookRow>(`
      SELECT * FROM webhooks WHERE failing_since IS NOT NULL OR off_reason IS NOT NULL
      ORDER BY is_active, failing_since LIMIT +?`),
    /** Those that began to fail in the period, of which nobody was notified. One that its account disabled needs nobody. */
    toNotice: sql.all<[period: NoticePeriod], WebhookRow>(`
      SELECT * FROM webhooks
      WHERE (CASE is_active WHEN 1 THEN failing_since ELSE off_reason END) IS NOT NULL
        AND coalesce(failing_since, updated_at) BETWEEN @from AND @to
        AND NOT EXISTS (${noticedCause('webhook', 'webhooks.account_id', 'webhook_id')})
      LIMIT +@limit`),
    /** Deletes its secrets, too; `webhookDeliveries.purgeOrphans` deletes its deliveries. */
    remove: sql.run<[number: number]>('DELETE FROM webhooks WHERE number = ?'),
    /** Numbers of the active webhooks that subscribe to a kind. Runs for every event. */
    subscribed: (accountId: string, kind: string): readonly number[] => subscribers(accountId, kind),
    selection: (number: number): WebhookSelection | null => selections(String(number)),
    setFailingSince: (number: number, since: number | null): void => setFailingSince(since, number),
    /** Returns false when it is not active or does not exist. */
    turnOff: (number: number, reason: 'gone' | 'failing', at: number): boolean => turnOff(reason, at, number),
    addSecret: sql.run<[number: number, sealed: Buffer]>(
      'INSERT INTO webhook_secrets (webhook, secret, expires_at) VALUES (?, ?, NULL)',
    ),
    /** The secrets that sign at this time, the current one first. */
    secrets: sql.all<[number: number, now: number], WebhookSecretRow>(`
      SELECT secret, expires_at FROM webhook_secrets WHERE webhook = ? AND (expires_at IS NULL OR expires_at > ?)
      ORDER BY secret_id DESC`),
    /** Sets the expiry of the current secret to `until`, and deletes expired secrets. */
    retireSecret: (number: number, until: number, now: number): void => {
      retireSecret(until, number);
      removeExpired(number, now);
    },
  };
}
