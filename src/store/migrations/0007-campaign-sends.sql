-- Sends of campaigns to groups, with their progress.

CREATE TABLE campaign_sends (
  campaign_seq   INTEGER PRIMARY KEY REFERENCES campaigns (seq) ON DELETE CASCADE,
  account_id     TEXT NOT NULL,
  job_id         TEXT NOT NULL UNIQUE,
  subscription_group_id TEXT NOT NULL,
  scheduled_at   INTEGER,          -- null: immediately
  per_hour       INTEGER,          -- null: as fast as messages are delivered
  members        INTEGER,          -- active ones when sending began; null: it has not begun
  last_seq       INTEGER,          -- contacts after this one joined too late
  at_seq         INTEGER NOT NULL DEFAULT 0,    -- the last contact that was processed
  queued         INTEGER NOT NULL DEFAULT 0,    -- members with a message
  without_email  INTEGER NOT NULL DEFAULT 0,    -- members without a message, by reason
  not_eligible   INTEGER NOT NULL DEFAULT 0,
  not_renderable INTEGER NOT NULL DEFAULT 0,
  next_at        INTEGER NOT NULL, -- no message is queued before this time
  open           INTEGER NOT NULL CHECK (open IN (0, 1)),    -- 1: not complete
  paused_reason  TEXT,             -- why the service paused it; null: it did not
  started_at     INTEGER,
  finished_at    INTEGER,          -- when it was sent completely or cancelled
  created_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX campaign_sends_open ON campaign_sends (campaign_seq) WHERE open = 1;

-- The content of a send, in a separate row: it never changes, while the progress changes with every batch.
CREATE TABLE campaign_mails (
  campaign_seq INTEGER PRIMARY KEY REFERENCES campaigns (seq) ON DELETE CASCADE,
  mail         TEXT NOT NULL       -- JSON: from, reply address, wording and variables
) STRICT;

-- A campaign's messages in the queue, to count and cancel them.
ALTER TABLE queue ADD COLUMN campaign_seq INTEGER;
CREATE INDEX queue_by_campaign ON queue (campaign_seq, ready, due_at) WHERE campaign_seq IS NOT NULL;
