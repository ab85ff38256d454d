-- Webhooks: whom an account wants told of its events, and what became of telling.

-- AUTOINCREMENT: deliveries of a deleted webhook are swept up later, so its number must never come again.
CREATE TABLE webhooks (
  number        INTEGER PRIMARY KEY AUTOINCREMENT,
  webhook_id    TEXT NOT NULL UNIQUE,
  account_id    TEXT NOT NULL REFERENCES accounts (account_id),
  name          TEXT NOT NULL,
  description   TEXT,
  url           TEXT NOT NULL,
  events        TEXT NOT NULL,     -- JSON array of event kinds, or ["*"]
  is_active     INTEGER NOT NULL CHECK (is_active IN (0, 1)),
  -- why it was turned off for its caller: the endpoint answered 410, or did nothing but fail
  off_reason    TEXT CHECK (off_reason IN ('gone', 'failing')),
  failing_since INTEGER,           -- the first failure since the last success
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX webhooks_by_account ON webhooks (account_id, number);

-- What signs: the current secret, and those that a rotation left to sign along for a while.
CREATE TABLE webhook_secrets (
  secret_id  INTEGER PRIMARY KEY,
  webhook    INTEGER NOT NULL REFERENCES webhooks (number) ON DELETE CASCADE,
  secret     BLOB NOT NULL,        -- 32 bytes, sealed
  expires_at INTEGER               -- null: the current one
) STRICT;
CREATE INDEX webhook_secrets_by_webhook ON webhook_secrets (webhook);

-- One event to be told to one webhook; what is told is the event itself, so nobody's data is copied here.
CREATE TABLE webhook_deliveries (
  webhook       INTEGER NOT NULL,
  event_seq     INTEGER NOT NULL,
  delivery_id   TEXT NOT NULL UNIQUE,
  -- ready: its time has come; waiting: it comes at due_at
  state         TEXT NOT NULL CHECK (state IN ('ready', 'waiting', 'succeeded', 'failed')),
  attempts      INTEGER NOT NULL,  -- all that were made
  failures      INTEGER NOT NULL,  -- those of this round: the place in the schedule
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
