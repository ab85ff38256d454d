-- Templates, compliance templates, and campaigns with their counts.

CREATE TABLE templates (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  template_id TEXT NOT NULL UNIQUE,
  account_id  TEXT NOT NULL REFERENCES accounts (account_id),
  name        TEXT NOT NULL,
  type        TEXT CHECK (type IN ('transactional', 'marketing')),   -- null: for both
  subject     TEXT,
  html        TEXT NOT NULL,
  text        TEXT,                -- null: derived from the html
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX templates_by_account ON templates (account_id, seq);

CREATE TABLE compliance_templates (
  seq          INTEGER PRIMARY KEY AUTOINCREMENT,
  template_id  TEXT NOT NULL UNIQUE,
  account_id   TEXT NOT NULL REFERENCES accounts (account_id),
  name         TEXT NOT NULL,
  type         TEXT NOT NULL CHECK (type IN ('unsubscribe', 'report_abuse', 'company_address')),
  domain       TEXT,               -- A-labels; null: for every From domain without a default
  is_default   INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  html_content TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX compliance_templates_by_account ON compliance_templates (account_id, seq);
-- One default for each type and domain; every send reads it.
CREATE UNIQUE INDEX compliance_templates_default ON compliance_templates (account_id, coalesce(domain, ''), type)
  WHERE is_default = 1;

CREATE TABLE campaigns (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  campaign_id TEXT NOT NULL UNIQUE,
  account_id  TEXT NOT NULL REFERENCES accounts (account_id),
  name        TEXT NOT NULL,
  description TEXT,
  status      TEXT NOT NULL CHECK (status IN ('draft', 'scheduled', 'sending', 'paused', 'sent', 'cancelled')),
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX campaigns_by_account ON campaigns (account_id, seq);

-- Counts of a campaign's events by hour, updated with every event.
CREATE TABLE campaign_counts (
  campaign_id    TEXT NOT NULL REFERENCES campaigns (campaign_id) ON DELETE CASCADE,
  hour           INTEGER NOT NULL, -- epoch ms at which the hour begins
  queued         INTEGER NOT NULL DEFAULT 0,
  sent           INTEGER NOT NULL DEFAULT 0,
  delivered      INTEGER NOT NULL DEFAULT 0,
  deferred       INTEGER NOT NULL DEFAULT 0,
  bounced        INTEGER NOT NULL DEFAULT 0,
  complained     INTEGER NOT NULL DEFAULT 0,
  opened         INTEGER NOT NULL DEFAULT 0,
  unique_opened  INTEGER NOT NULL DEFAULT 0,
  clicked        INTEGER NOT NULL DEFAULT 0,
  unique_clicked INTEGER NOT NULL DEFAULT 0,
  unsubscribed   INTEGER NOT NULL DEFAULT 0,
  failed         INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (campaign_id, hour)
) STRICT, WITHOUT ROWID;

-- Clicks on each URL of a campaign.
CREATE TABLE campaign_links (
  campaign_id TEXT NOT NULL REFERENCES campaigns (campaign_id) ON DELETE CASCADE,
  url         TEXT NOT NULL,
  clicks      INTEGER NOT NULL,
  UNIQUE (campaign_id, url)
) STRICT;
CREATE INDEX campaign_links_by_clicks ON campaign_links (campaign_id, clicks);

-- Suppressions get a number, by which they are listed page by page, newest first.
CREATE TABLE numbered_suppressions (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id     TEXT NOT NULL,
  recipient_hash TEXT NOT NULL,
  stream         TEXT NOT NULL CHECK (stream IN ('all', 'tx', 'mk')),
  reason         TEXT NOT NULL CHECK (reason IN ('hard_bounce', 'soft_bounces', 'complaint', 'unsubscribe', 'manual')),
  email          TEXT,
  message_seq    INTEGER,
  created_at     INTEGER NOT NULL,
  UNIQUE (account_id, recipient_hash, stream, reason)
) STRICT;
INSERT INTO numbered_suppressions (account_id, recipient_hash, stream, reason, email, message_seq, created_at)
  SELECT account_id, recipient_hash, stream, reason, email, message_seq, created_at FROM suppressions ORDER BY created_at;
DROP TABLE suppressions;
ALTER TABLE numbered_suppressions RENAME TO suppressions;
CREATE INDEX suppressions_by_account ON suppressions (account_id, seq);
CREATE INDEX suppressions_by_reason ON suppressions (account_id, reason, seq);
CREATE INDEX suppressions_by_stream ON suppressions (account_id, stream, seq);
