-- Outcomes of a campaign by the mailbox provider of the recipients, from this version on.
CREATE TABLE campaign_providers (
  campaign_id     TEXT NOT NULL REFERENCES campaigns (campaign_id) ON DELETE CASCADE,
  provider        TEXT NOT NULL,
  delivered       INTEGER NOT NULL DEFAULT 0,
  bounced         INTEGER NOT NULL DEFAULT 0,
  complained      INTEGER NOT NULL DEFAULT 0,
  unsubscribed    INTEGER NOT NULL DEFAULT 0,
  unique_opened   INTEGER NOT NULL DEFAULT 0,
  unique_clicked  INTEGER NOT NULL DEFAULT 0,
  machine_opened  INTEGER NOT NULL DEFAULT 0,
  machine_clicked INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (campaign_id, provider)
) STRICT, WITHOUT ROWID;
