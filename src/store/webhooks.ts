import { cachedLookup } from './cached-rows.ts';
import type { Database } from './database/database.ts';
import { type NoticePeriod, noticedCause } from './people/notices.ts';

/** Webhooks and the secrets that sign their calls. */
export interface WebhookRow {
  number: number;
  webhook_id: string;
  account_id: string;
  name: string;
  description: string | null;
  url: string;
  /** JSON array of event kinds, or `["*"]`. */
  events: string;
  is_active: 0 | 1;
  /** Why the daemon disabled it; null when its account did, or when it is active. */
  off_reason: 'gone' | 'failing' | null;
  /** Epoch ms of the first failure since the last success. */
  failing_since: number | null;
  created_at: number;
  updated_at: number;
}

export type NewWebhook = Omit<WebhookRow, 'number'>;

/** A sealed secret and until when it signs; null: it is the current one. */
export interface WebhookSecretRow {
  secret: Buffer;
  expires_at: number | null;
}

/**
 * `webhooks` and `webhook_secrets`; `subscribed` is cached until a write to webhooks. The caller seals and opens the
 * secrets.
 */
export function webhookTable(db: Database) {
  const insert = db.prepare<NewWebhook>(`
    INSERT INTO webhooks (webhook_id, account_id, name, description, url, events, is_active, off_reason, failing_since,
      created_at, updated_at)
    VALUES (@webhook_id, @account_id, @name, @description, @url, @events, @is_active, @off_reason, @failing_since,
      @created_at, @updated_at)`);
  const update = db.prepare<WebhookRow>(`
    UPDATE webhooks SET name = @name, description = @description, url = @url, events = @events, is_active = @is_active,
      off_reason = @off_reason, failing_since = @failing_since, updated_at = @updated_at
    WHERE number = @number`);
  const get = db.prepare<[string, string], WebhookRow>(
    'SELECT * FROM webhooks WHERE webhook_id = ? AND account_id = ?',
  );
  const byNumber = db.prepare<[number], WebhookRow>('SELECT * FROM webhooks WHERE number = ?');
  const list = db.prepare<[string], WebhookRow>(
    'SELECT * FROM webhooks WHERE account_id = ? ORDER BY number',
  );
  const failing = db.prepare<[number], WebhookRow>(`
    SELECT * FROM webhooks WHERE failing_since IS NOT NULL OR off_reason IS NOT NULL
    ORDER BY is_active, failing_since LIMIT +?`);
  const toNotice = db.prepare<NoticePeriod, WebhookRow>(`
    SELECT * FROM webhooks
    WHERE (CASE is_active WHEN 1 THEN failing_since ELSE off_reason END) IS NOT NULL
      AND coalesce(failing_since, updated_at) BETWEEN @from AND @to
      AND NOT EXISTS (${noticedCause('webhook', 'webhooks.account_id', 'webhook_id')})
    LIMIT +@limit`);
  const remove = db.prepare<[number]>('DELETE FROM webhooks WHERE number = ?');
  // Kinds are quoted in the JSON, so that none is found inside another.
  const subscribed = db
    .prepare<[string, string], number>(`
      SELECT number FROM webhooks
      WHERE account_id = ? AND is_active = 1 AND (events = '["*"]' OR instr(events, ?) > 0)`)
    .pluck();
  const subscribers = cachedLookup(db, (accountId: string, kind: string) =>
    subscribed.all(accountId, `"${kind}"`),
  );
  const setFailingSince = db.prepare<[number | null, number]>(
    'UPDATE webhooks SET failing_since = ? WHERE number = ?',
  );
  const turnOff = db.prepare<[string, number, number]>(
    'UPDATE webhooks SET is_active = 0, off_reason = ?, updated_at = ? WHERE number = ? AND is_active = 1',
  );
  const addSecret = db.prepare<[number, Buffer]>(
    'INSERT INTO webhook_secrets (webhook, secret, expires_at) VALUES (?, ?, NULL)',
  );
  const secrets = db.prepare<[number, number], WebhookSecretRow>(`
    SELECT secret, expires_at FROM webhook_secrets WHERE webhook = ? AND (expires_at IS NULL OR expires_at > ?)
    ORDER BY secret_id DESC`);
  const retireSecret = db.prepare<[number, number]>(
    'UPDATE webhook_secrets SET expires_at = ? WHERE webhook = ? AND expires_at IS NULL',
  );
  const removeExpired = db.prepare<[number, number]>(
    'DELETE FROM webhook_secrets WHERE webhook = ? AND expires_at <= ?',
  );

  return {
    /** Returns its number. */
    insert: (row: NewWebhook): number => Number(insert.run(row).lastInsertRowid),
    update: (row: WebhookRow): void => {
      update.run(row);
    },
    get: (accountId: string, webhookId: string): WebhookRow | null => get.get(webhookId, accountId) ?? null,
    byNumber: (number: number): WebhookRow | null => byNumber.get(number) ?? null,
    /** Oldest first, active or not. */
    list: (accountId: string): WebhookRow[] => list.all(accountId),
    /** Failing webhooks of all accounts: disabled ones first, then those that have failed for the longest time. */
    failing: (limit: number): WebhookRow[] => failing.all(limit),
    /** Those that began to fail in the period, of which nobody was notified. One that its account disabled needs nobody. */
    toNotice: (period: NoticePeriod): WebhookRow[] => toNotice.all(period),
    /** Deletes its secrets, too; `webhookDeliveries.purgeOrphans` deletes its deliveries. */
    remove: (number: number): void => {
      remove.run(number);
    },
    /** Numbers of the active webhooks that subscribe to a kind. Runs for every event. */
    subscribed: (accountId: string, kind: string): readonly number[] => subscribers(accountId, kind),
    setFailingSince: (number: number, since: number | null): void => {
      setFailingSince.run(since, number);
    },
    /** Returns false when it is not active or does not exist. */
    turnOff: (number: number, reason: 'gone' | 'failing', at: number): boolean =>
      turnOff.run(reason, at, number).changes === 1,
    addSecret: (number: number, sealed: Buffer): void => {
      addSecret.run(number, sealed);
    },
    /** The secrets that sign at this time, the current one first. */
    secrets: (number: number, now: number): WebhookSecretRow[] => secrets.all(number, now),
    /** Sets the expiry of the current secret to `until`, and deletes expired secrets. */
    retireSecret: (number: number, until: number, now: number): void => {
      retireSecret.run(until, number);
      removeExpired.run(number, now);
    },
  };
}
