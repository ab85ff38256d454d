-- Segments: when a contact last received marketing mail, opened and clicked; independent of the retention of messages.
CREATE TABLE contact_engagement (
  contact_seq INTEGER PRIMARY KEY REFERENCES contacts (seq),
  received_at INTEGER,
  opened_at   INTEGER,
  clicked_at  INTEGER
) STRICT;

-- Segments: what a contact did with a campaign. Without a foreign key: a deleted campaign has up to a row for each contact
-- of its account, which are deleted in the background.
CREATE TABLE campaign_contacts (
  campaign_seq INTEGER NOT NULL,
  contact_seq  INTEGER NOT NULL REFERENCES contacts (seq),
  bits         INTEGER NOT NULL,   -- 1: received, 2: opened, 4: clicked
  PRIMARY KEY (campaign_seq, contact_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX campaign_contacts_by_contact ON campaign_contacts (contact_seq);

-- What a person saw and did before the consent: the sign-up form and the confirmation mail (audience/sign-ups.ts, as JSON).
ALTER TABLE consents ADD COLUMN evidence TEXT;
DROP TRIGGER consents_bytes_insert;
DROP TRIGGER consents_bytes_update;
DROP TRIGGER consents_bytes_delete;
CREATE TRIGGER consents_bytes_insert AFTER INSERT ON consents BEGIN
  INSERT INTO stored_bytes VALUES ((SELECT account_id FROM contacts WHERE seq = NEW.contact_seq), 100 + coalesce(octet_length(NEW.method), 0) + coalesce(octet_length(NEW.details), 0) + coalesce(octet_length(NEW.user_agent), 0) + coalesce(octet_length(NEW.evidence), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER consents_bytes_update AFTER UPDATE OF method, details, user_agent, evidence ON consents BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.method), 0) + coalesce(octet_length(OLD.details), 0) + coalesce(octet_length(OLD.user_agent), 0) + coalesce(octet_length(OLD.evidence), 0) - (100 + coalesce(octet_length(NEW.method), 0) + coalesce(octet_length(NEW.details), 0) + coalesce(octet_length(NEW.user_agent), 0) + coalesce(octet_length(NEW.evidence), 0))) WHERE account_id = (SELECT account_id FROM contacts WHERE seq = NEW.contact_seq);
END;
CREATE TRIGGER consents_bytes_delete AFTER DELETE ON consents BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.method), 0) + coalesce(octet_length(OLD.details), 0) + coalesce(octet_length(OLD.user_agent), 0) + coalesce(octet_length(OLD.evidence), 0)) WHERE account_id = (SELECT account_id FROM contacts WHERE seq = OLD.contact_seq);
END;
-- Outcomes by day, source address and mailbox provider, of which there are few: a row changes in many units of work.
CREATE TABLE reputation_counts (
  day          INTEGER NOT NULL,   -- epoch ms at which the day (UTC) begins
  -- Numbers (store/rows/id-numbers), as in messages.
  account      ANY NOT NULL,
  domain       ANY NOT NULL,
  source       TEXT NOT NULL,      -- an entry of delivery.egress; '' where it is not known
  provider     TEXT NOT NULL,      -- a mailbox provider, or 'other'
  volume       INTEGER NOT NULL,   -- accepted messages
  -- Attempts by their result.
  delivered    INTEGER NOT NULL,
  deferred     INTEGER NOT NULL,
  hard_bounced INTEGER NOT NULL,
  soft_bounced INTEGER NOT NULL,
  blocked      INTEGER NOT NULL,
  -- What recipients did.
  complained   INTEGER NOT NULL,
  unsubscribed INTEGER NOT NULL,
  opened       INTEGER NOT NULL,
  clicked      INTEGER NOT NULL,
  PRIMARY KEY (day, account, domain, source, provider)
) STRICT, WITHOUT ROWID;

-- Spam rates that providers state (Postmaster Tools, SNDS), entered or imported by the account.
CREATE TABLE spam_rates (
  account_id  TEXT NOT NULL REFERENCES accounts (account_id),
  provider    TEXT NOT NULL,
  -- A domain, or the address of a server.
  about     TEXT NOT NULL,
  day         INTEGER NOT NULL,    -- epoch ms at which the day (UTC) begins
  rate        REAL NOT NULL,       -- a share, 0 to 1
  recorded_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, day, provider, about)
) STRICT, WITHOUT ROWID;
CREATE INDEX spam_rates_by_day ON spam_rates (day);

-- Automatic limits (reputation/).

ALTER TABLE campaign_counts ADD COLUMN hard_bounced INTEGER NOT NULL DEFAULT 0;    -- of bounced
ALTER TABLE campaign_counts ADD COLUMN blocked INTEGER NOT NULL DEFAULT 0;         -- of bounced and deferred

ALTER TABLE campaign_sends ADD COLUMN paused_figures TEXT;    -- JSON: why it was stopped automatically; null: it was not
ALTER TABLE campaign_sends ADD COLUMN seen_counts TEXT;       -- JSON: what does not count since it was resumed; null: nothing

-- Streams of accounts and domains whose rates are or were too high. A row without a level has the beginning of the counts.
CREATE TABLE sending_limits (
  limit_id    TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (account_id) ON DELETE CASCADE,
  stream      TEXT NOT NULL CHECK (stream IN ('tx', 'mk')),
  domain_id   TEXT NOT NULL,        -- '': all domains of the account
  provider    TEXT NOT NULL,        -- '': all providers
  level       TEXT CHECK (level IN ('notice', 'slow', 'pause')),    -- null: not limited
  figures     TEXT NOT NULL,        -- JSON: the rate that was judged last
  per_minute  INTEGER,              -- messages; null: not slowed
  since       INTEGER NOT NULL,     -- of the level
  counts_from INTEGER NOT NULL,     -- what happened before does not count; 0: all of the window counts
  seen_counts TEXT,                 -- JSON: counts of the day of counts_from before it
  UNIQUE (account_id, stream, domain_id, provider)
) STRICT, WITHOUT ROWID;
CREATE INDEX sending_limits_in_force ON sending_limits (since, limit_id) WHERE level IS NOT NULL;
CREATE INDEX sending_limits_slowing ON sending_limits (since, limit_id) WHERE level = 'slow';
CREATE TRIGGER sending_limits_of_domain AFTER DELETE ON domains BEGIN
  DELETE FROM sending_limits WHERE account_id = OLD.account_id AND domain_id = OLD.domain_id;
END;

-- Public pages: the language of a contact, its pause of marketing mail and its request for erasure.
ALTER TABLE contacts ADD COLUMN language TEXT;                  -- BCP 47
ALTER TABLE contacts ADD COLUMN paused_until INTEGER;           -- no marketing mail until then; null: not paused
ALTER TABLE contacts ADD COLUMN erasure_requested_at INTEGER;   -- null: it was not requested
-- Ended by the loop of audience/pauses, so that no check of a message needs the time.
CREATE INDEX contacts_by_pause ON contacts (paused_until) WHERE paused_until IS NOT NULL;
CREATE INDEX contacts_by_erasure_request ON contacts (account_id, seq) WHERE erasure_requested_at IS NOT NULL;

-- Whether the preference page shows a group; null: if it has a sign-up form.
ALTER TABLE subscription_groups ADD COLUMN is_public INTEGER CHECK (is_public IN (0, 1));
CREATE INDEX subscription_groups_on_pages ON subscription_groups (account_id, seq)
  WHERE deleted_at IS NULL AND is_active = 1 AND coalesce(is_public, sign_up IS NOT NULL) = 1;

-- What an account changes on its public pages (accounts/public-pages).
CREATE TABLE public_pages (
  account_id TEXT PRIMARY KEY REFERENCES accounts (account_id),
  settings   TEXT NOT NULL,    -- JSON
  updated_at INTEGER NOT NULL
) STRICT;
