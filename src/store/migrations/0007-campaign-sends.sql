-- Campaigns on their way to whole groups: to whom, and how far they have come.

CREATE TABLE campaign_sends (
  campaign_seq   INTEGER PRIMARY KEY REFERENCES campaigns (seq) ON DELETE CASCADE,
  account_id     TEXT NOT NULL,
  job_id         TEXT NOT NULL UNIQUE,
  subscription_group_id TEXT NOT NULL,
  scheduled_at   INTEGER,          -- null: at once
  per_hour       INTEGER,          -- null: as fast as mail leaves
  members        INTEGER,          -- active ones when sending began; null: it has not begun
  last_seq       INTEGER,          -- contacts after this one joined too late
  at_seq         INTEGER NOT NULL DEFAULT 0,    -- the last contact that was dealt with
  queued         INTEGER NOT NULL DEFAULT 0,    -- members with a message
  without_email  INTEGER NOT NULL DEFAULT 0,    -- members without: why
  not_eligible   INTEGER NOT NULL DEFAULT 0,
  not_renderable INTEGER NOT NULL DEFAULT 0,
  next_at        INTEGER NOT NULL, -- nothing is queued before
  open           INTEGER NOT NULL CHECK (open IN (0, 1)),    -- something is left to do
  paused_reason  TEXT,             -- why the service paused it; null: it did not
  started_at     INTEGER,
  finished_at    INTEGER,          -- sent, or cancelled
  created_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX campaign_sends_open ON campaign_sends (campaign_seq) WHERE open = 1;

-- What is sent, in a row of its own: it never changes, while how far it has come does a thousand times.
CREATE TABLE campaign_mails (
  campaign_seq INTEGER PRIMARY KEY REFERENCES campaigns (seq) ON DELETE CASCADE,
  mail         TEXT NOT NULL       -- JSON: from, reply address, wording and variables
) STRICT;

-- A campaign's messages that wait, for a look at how many are under way and for calling them off.
ALTER TABLE queue ADD COLUMN campaign_seq INTEGER;
CREATE INDEX queue_by_campaign ON queue (campaign_seq, ready, due_at) WHERE campaign_seq IS NOT NULL;
