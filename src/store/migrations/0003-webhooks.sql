-- Webhooks, their secrets, and the deliveries of events to them.

-- AUTOINCREMENT: deliveries of a deleted webhook are deleted later, so its number must not be assigned again.
CREATE TABLE webhooks (
  number        INTEGER PRIMARY KEY AUTOINCREMENT,
  webhook_id    TEXT NOT NULL UNIQUE,
  account_id    TEXT NOT NULL REFERENCES accounts (account_id),
  name          TEXT NOT NULL,
  description   TEXT,
  url           TEXT NOT NULL,
  events        TEXT NOT NULL,     -- JSON array of event kinds, or ["*"]
  is_active     INTEGER NOT NULL CHECK (is_active IN (0, 1)),
  -- why the daemon deactivated it: the endpoint responded with 410, or calls failed for too long
  off_reason    TEXT CHECK (off_reason IN ('gone', 'failing')),
  failing_since INTEGER,           -- the first failure since the last success
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX webhooks_by_account ON webhooks (account_id, number);

-- Secrets that sign calls: the current one, and older ones until they expire.
CREATE TABLE webhook_secrets (
  secret_id  INTEGER PRIMARY KEY,
  webhook    INTEGER NOT NULL REFERENCES webhooks (number) ON DELETE CASCADE,
  secret     BLOB NOT NULL,        -- 32 bytes, sealed
  expires_at INTEGER               -- null: the current one
) STRICT;
CREATE INDEX webhook_secrets_by_webhook ON webhook_secrets (webhook);

-- Deliveries of one event to one webhook. The payload is the event, so no personal data is copied here.
CREATE TABLE webhook_deliveries (
  webhook       INTEGER NOT NULL,
  event_seq     INTEGER NOT NULL,
  delivery_id   TEXT NOT NULL UNIQUE,
  -- ready: due; waiting: due at due_at
  state         TEXT NOT NULL CHECK (state IN ('ready', 'waiting', 'succeeded', 'failed')),
  attempts      INTEGER NOT NULL,  -- all calls
  failures      INTEGER NOT NULL,  -- failed calls since the schedule began: the position in it
  due_at        INTEGER NOT NULL,
  attempted_at  INTEGER,
  response_code INTEGER,
  response_body TEXT,              -- its first 1 KiB
  error         TEXT,              -- why there was no response, or what was wrong with it
  created_at    INTEGER NOT NULL,
  PRIMARY KEY (webhook, event_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (state, webhook, event_seq) WHERE state <> 'succeeded';
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at) WHERE state = 'waiting';
