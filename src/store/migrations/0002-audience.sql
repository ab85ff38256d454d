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
  bits         INTEGER NOT NULL,   -- 1: received, 2: opened, 4: clicked; 0: a message is queued
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

-- The last 90 days, from the counts by hour: without source addresses, and with the type of a bounce by its class.
INSERT INTO reputation_counts
SELECT hour - hour % 86400000 AS start, account, domain, '',
  CASE WHEN provider IN (
    'Google', 'Microsoft', 'Yahoo', 'Apple', 'United Internet', 'Telekom', 'Proton', 'Orange', 'Comcast',
    'Mail.ru', 'Yandex', 'NetEase', 'Tencent', 'IONOS', 'Proofpoint', 'Mimecast', 'Barracuda', 'Cisco',
    'Broadcom', 'Trend Micro', 'Forcepoint', 'Hornetsecurity'
  ) THEN provider ELSE 'other' END AS known,
  -- Codes of outcomes (store/messages/hourly-counts).
  sum(iif(outcome_code = 0, messages, 0)),
  sum(iif(outcome_code = 1, messages, 0)),
  sum(iif(outcome_code = 2 AND NOT is_block, messages, 0)),
  sum(iif(outcome_code = 3 AND is_hard, messages, 0)),
  sum(iif(outcome_code = 3 AND NOT is_hard AND NOT is_block, messages, 0)),
  sum(iif(outcome_code IN (2, 3) AND is_block, messages, 0)),
  sum(iif(outcome_code = 6, messages, 0)),
  sum(iif(outcome_code = 9, messages, 0)),
  sum(iif(outcome_code = 7, messages, 0)),
  sum(iif(outcome_code = 8, messages, 0))
FROM (
  SELECT *,
    class IN ('invalid-recipient', 'invalid-domain', 'inactive-mailbox') AS is_hard,
    class IN ('content-rejected', 'spam-block', 'policy-block', 'authentication-failed', 'reputation-block') AS is_block
  FROM hourly_counts WHERE hour >= (SELECT max(hour) FROM hourly_counts) - 90 * 86400000
)
GROUP BY start, account, domain, known;

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
  figures     TEXT NOT NULL,        -- JSON: the rate because of which the level was set
  per_minute  INTEGER,              -- messages; null: not slowed
  since       INTEGER NOT NULL,     -- of the level
  counts_from INTEGER NOT NULL,     -- what happened before does not count; 0: all of the window counts
  seen_counts TEXT,                 -- JSON: counts of the day of counts_from before it
  UNIQUE (account_id, stream, domain_id, provider)
) STRICT, WITHOUT ROWID;
CREATE INDEX sending_limits_in_force ON sending_limits (since, limit_id) WHERE level IS NOT NULL;
CREATE TRIGGER sending_limits_of_domain AFTER DELETE ON domains BEGIN
  DELETE FROM sending_limits WHERE account_id = OLD.account_id AND domain_id = OLD.domain_id;
END;
CREATE TABLE segments (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  segment_id  TEXT NOT NULL UNIQUE,
  account_id  TEXT NOT NULL REFERENCES accounts (account_id),
  name        TEXT NOT NULL,
  filter      TEXT NOT NULL,       -- JSON (audience/segments/filter.ts)
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  UNIQUE (account_id, name)
) STRICT;
CREATE INDEX segments_by_account ON segments (account_id, seq);

-- Copies of what segments test, by column, for 4096 numbers of contacts each (audience/segments/columns.ts): reading a
-- million contacts takes seconds, reading a column of them milliseconds. While a chunk has a row with the account '', changes
-- of its contacts are noted in segment_changes, and such contacts are read from their own tables. An account without a row is
-- read from them, too.
CREATE TABLE segment_chunks (
  chunk      INTEGER NOT NULL,     -- the number of a contact / 4096
  account_id TEXT NOT NULL,
  copied     BLOB,                 -- 16 bits each: the number of a contact modulo 4096; NULL: the first copy is not stored yet
  others     BLOB NOT NULL,        -- of contacts whose values are too long to be copied
  PRIMARY KEY (chunk, account_id)
) STRICT;
CREATE TABLE segment_columns (
  chunk      INTEGER NOT NULL,
  account_id TEXT NOT NULL,
  name       TEXT NOT NULL,
  data       BLOB NOT NULL,
  PRIMARY KEY (chunk, account_id, name)
) STRICT;
CREATE TABLE segment_changes (
  contact_seq INTEGER PRIMARY KEY,
  n           INTEGER NOT NULL     -- changes since the copy
) STRICT;
CREATE TRIGGER segment_contact_insert AFTER INSERT ON contacts
  WHEN EXISTS (SELECT 1 FROM segment_chunks WHERE chunk = NEW.seq >> 12) BEGIN
  INSERT INTO segment_changes VALUES (NEW.seq, 1) ON CONFLICT (contact_seq) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER segment_contact_update AFTER UPDATE ON contacts
  WHEN EXISTS (SELECT 1 FROM segment_chunks WHERE chunk = NEW.seq >> 12) BEGIN
  INSERT INTO segment_changes VALUES (NEW.seq, 1) ON CONFLICT (contact_seq) DO UPDATE SET n = n + 1;
END;
-- Nothing of a deleted contact remains in copies.
CREATE TRIGGER segment_contact_delete AFTER DELETE ON contacts BEGIN
  DELETE FROM segment_columns WHERE chunk = OLD.seq >> 12;
  DELETE FROM segment_chunks WHERE chunk = OLD.seq >> 12;
  DELETE FROM segment_changes WHERE contact_seq = OLD.seq;
END;
CREATE TRIGGER segment_subscription_insert AFTER INSERT ON subscriptions
  WHEN EXISTS (SELECT 1 FROM segment_chunks WHERE chunk = NEW.contact_seq >> 12) BEGIN
  INSERT INTO segment_changes VALUES (NEW.contact_seq, 1) ON CONFLICT (contact_seq) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER segment_subscription_update AFTER UPDATE ON subscriptions
  WHEN EXISTS (SELECT 1 FROM segment_chunks WHERE chunk = NEW.contact_seq >> 12) BEGIN
  INSERT INTO segment_changes VALUES (NEW.contact_seq, 1) ON CONFLICT (contact_seq) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER segment_subscription_delete AFTER DELETE ON subscriptions
  WHEN EXISTS (SELECT 1 FROM segment_chunks WHERE chunk = OLD.contact_seq >> 12) BEGIN
  INSERT INTO segment_changes VALUES (OLD.contact_seq, 1) ON CONFLICT (contact_seq) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER segment_engagement_insert AFTER INSERT ON contact_engagement
  WHEN EXISTS (SELECT 1 FROM segment_chunks WHERE chunk = NEW.contact_seq >> 12) BEGIN
  INSERT INTO segment_changes VALUES (NEW.contact_seq, 1) ON CONFLICT (contact_seq) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER segment_engagement_update AFTER UPDATE ON contact_engagement
  WHEN EXISTS (SELECT 1 FROM segment_chunks WHERE chunk = NEW.contact_seq >> 12) BEGIN
  INSERT INTO segment_changes VALUES (NEW.contact_seq, 1) ON CONFLICT (contact_seq) DO UPDATE SET n = n + 1;
END;

-- A campaign's audience beyond one group, JSON (campaigns/audience.ts): several groups, a segment, what is excluded. NULL: the
-- group only.
ALTER TABLE campaign_sends ADD COLUMN audience TEXT;

-- Sequences: messages that a contact receives one after the other, from a trigger on (campaigns/sequences).
CREATE TABLE sequences (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  sequence_id   TEXT NOT NULL UNIQUE,
  account_id    TEXT NOT NULL REFERENCES accounts (account_id),
  name          TEXT NOT NULL,
  status        TEXT NOT NULL CHECK (status IN ('draft', 'active', 'paused')),
  paused_reason TEXT,              -- why the service paused it; null: it did not
  version       INTEGER NOT NULL,  -- the version that people begin
  trigger_kind  TEXT NOT NULL CHECK (trigger_kind IN ('joined', 'confirmed', 'event', 'dateField', 'fieldSet')),
  trigger_key   TEXT NOT NULL,     -- id of a group, name of an event or of a custom field
  offset_days   INTEGER NOT NULL,  -- of dateField, otherwise 0
  activated_at  INTEGER,           -- when it was last activated; null: never
  scan_after    INTEGER,           -- contacts up to this one were examined for their dates; null: all were
  missed        INTEGER NOT NULL DEFAULT 0, -- triggers while as many people as possible were in it
  deleted_at    INTEGER,           -- its people are deleted in the background
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX sequences_by_account ON sequences (account_id, seq);
CREATE TRIGGER sequences_bytes_cascade BEFORE DELETE ON sequences BEGIN
  DELETE FROM sequence_versions WHERE sequence_seq = OLD.seq;
END;
CREATE TRIGGER sequences_bytes_insert AFTER INSERT ON sequences BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER sequences_bytes_update AFTER UPDATE OF name ON sequences BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) - (200 + coalesce(octet_length(NEW.name), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER sequences_bytes_delete AFTER DELETE ON sequences BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0)) WHERE account_id = OLD.account_id;
END;

-- What a sequence does. A version is deleted when a later one exists and nobody is in it any more.
CREATE TABLE sequence_versions (
  sequence_seq INTEGER NOT NULL REFERENCES sequences (seq) ON DELETE CASCADE,
  version      INTEGER NOT NULL,
  definition   TEXT NOT NULL,      -- JSON (campaigns/sequences/definition.ts): trigger, steps, goal
  created_at   INTEGER NOT NULL,
  PRIMARY KEY (sequence_seq, version)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER sequence_versions_bytes_insert AFTER INSERT ON sequence_versions BEGIN
  INSERT INTO stored_bytes VALUES ((SELECT account_id FROM sequences WHERE seq = NEW.sequence_seq), 100 + coalesce(octet_length(NEW.definition), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER sequence_versions_bytes_update AFTER UPDATE OF definition ON sequence_versions BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.definition), 0) - (100 + coalesce(octet_length(NEW.definition), 0))) WHERE account_id = (SELECT account_id FROM sequences WHERE seq = NEW.sequence_seq);
END;
CREATE TRIGGER sequence_versions_bytes_delete AFTER DELETE ON sequence_versions BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.definition), 0)) WHERE account_id = (SELECT account_id FROM sequences WHERE seq = OLD.sequence_seq);
END;

-- Contacts in sequences, one row for each occurrence of the trigger.
CREATE TABLE sequence_people (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  sequence_seq   INTEGER NOT NULL REFERENCES sequences (seq),
  contact_seq    INTEGER NOT NULL REFERENCES contacts (seq),
  occurrence     TEXT NOT NULL,    -- of the trigger: the same one begins the sequence once
  version        INTEGER NOT NULL,
  state          TEXT NOT NULL CHECK (state IN ('scheduled', 'active', 'ended')), -- scheduled: its date is in the future
  step           INTEGER NOT NULL, -- the next step, from 0
  due_at         INTEGER NOT NULL, -- of the next step
  reason         TEXT,             -- why it ended
  properties     TEXT,             -- JSON: of the event
  entered_at     INTEGER NOT NULL,
  ended_at       INTEGER,
  event_ended_at INTEGER,          -- ended_at of an occurrence that needs no record: an event
  UNIQUE (sequence_seq, contact_seq, occurrence)
) STRICT;
CREATE UNIQUE INDEX sequence_people_in_progress ON sequence_people (sequence_seq, contact_seq) WHERE state = 'active';
CREATE INDEX sequence_people_due ON sequence_people (sequence_seq, due_at) WHERE state <> 'ended';
-- Lists: SQLite appends seq to every entry.
CREATE INDEX sequence_people_by_sequence ON sequence_people (sequence_seq);
CREATE INDEX sequence_people_by_state ON sequence_people (sequence_seq, state);
CREATE INDEX sequence_people_by_step ON sequence_people (sequence_seq, version, step) WHERE state = 'active';
CREATE INDEX sequence_people_by_contact ON sequence_people (contact_seq);
CREATE INDEX sequence_people_ended ON sequence_people (event_ended_at) WHERE event_ended_at IS NOT NULL;

-- The messages of a person in a sequence: each step sends once.
CREATE TABLE sequence_sends (
  entry_seq INTEGER NOT NULL REFERENCES sequence_people (seq) ON DELETE CASCADE,
  step       INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  sent_at    INTEGER NOT NULL,
  PRIMARY KEY (entry_seq, step)
) STRICT, WITHOUT ROWID;

-- People at each step of a version, and what became of its messages.
CREATE TABLE sequence_counts (
  sequence_seq   INTEGER NOT NULL REFERENCES sequences (seq) ON DELETE CASCADE,
  version        INTEGER NOT NULL,
  step           INTEGER NOT NULL,
  people         INTEGER NOT NULL DEFAULT 0, -- in progress, with this step as the next one
  skipped        INTEGER NOT NULL DEFAULT 0, -- messages that could not be rendered
  queued         INTEGER NOT NULL DEFAULT 0,
  delivered      INTEGER NOT NULL DEFAULT 0,
  bounced        INTEGER NOT NULL DEFAULT 0,
  complained     INTEGER NOT NULL DEFAULT 0,
  unique_opened  INTEGER NOT NULL DEFAULT 0,
  unique_clicked INTEGER NOT NULL DEFAULT 0,
  unsubscribed   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (sequence_seq, version, step)
) STRICT, WITHOUT ROWID;

-- People who are no longer in a sequence, by reason.
CREATE TABLE sequence_ends (
  sequence_seq INTEGER NOT NULL REFERENCES sequences (seq) ON DELETE CASCADE,
  reason       TEXT NOT NULL,
  people       INTEGER NOT NULL,
  PRIMARY KEY (sequence_seq, reason)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER sequence_people_count_insert AFTER INSERT ON sequence_people WHEN NEW.state = 'active' BEGIN
  INSERT INTO sequence_counts (sequence_seq, version, step, people) VALUES (NEW.sequence_seq, NEW.version, NEW.step, 1)
  ON CONFLICT DO UPDATE SET people = people + 1;
END;
CREATE TRIGGER sequence_people_count_begin AFTER UPDATE OF state, version, step ON sequence_people WHEN NEW.state = 'active' BEGIN
  INSERT INTO sequence_counts (sequence_seq, version, step, people) VALUES (NEW.sequence_seq, NEW.version, NEW.step, 1)
  ON CONFLICT DO UPDATE SET people = people + 1;
END;
CREATE TRIGGER sequence_people_count_leave AFTER UPDATE OF state, version, step ON sequence_people WHEN OLD.state = 'active' BEGIN
  UPDATE sequence_counts SET people = people - 1
  WHERE sequence_seq = OLD.sequence_seq AND version = OLD.version AND step = OLD.step;
END;
CREATE TRIGGER sequence_people_count_end AFTER UPDATE OF state ON sequence_people WHEN NEW.state = 'ended' AND OLD.state <> 'ended' BEGIN
  INSERT INTO sequence_ends VALUES (NEW.sequence_seq, NEW.reason, 1) ON CONFLICT DO UPDATE SET people = people + 1;
END;
CREATE TRIGGER sequence_people_count_delete AFTER DELETE ON sequence_people WHEN OLD.state = 'active' BEGIN
  UPDATE sequence_counts SET people = people - 1
  WHERE sequence_seq = OLD.sequence_seq AND version = OLD.version AND step = OLD.step;
END;
CREATE TRIGGER sequence_people_bytes_insert AFTER INSERT ON sequence_people BEGIN
  INSERT INTO stored_bytes VALUES ((SELECT account_id FROM sequences WHERE seq = NEW.sequence_seq), 200 + coalesce(octet_length(NEW.properties), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER sequence_people_bytes_delete AFTER DELETE ON sequence_people BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.properties), 0)) WHERE account_id = (SELECT account_id FROM sequences WHERE seq = OLD.sequence_seq);
END;

-- Public pages: the language of a contact, its pause of marketing mail and its request for erasure.
ALTER TABLE contacts ADD COLUMN language TEXT;                  -- BCP 47
ALTER TABLE contacts ADD COLUMN paused_until INTEGER;           -- no marketing mail until then; null: not paused
ALTER TABLE contacts ADD COLUMN erasure_requested_at INTEGER;   -- null: it was not requested
-- Ended by the loop of audience/pauses, so that no check of a message needs the time.
CREATE INDEX contacts_by_pause ON contacts (paused_until) WHERE paused_until IS NOT NULL;
CREATE INDEX contacts_by_erasure_request ON contacts (account_id, seq) WHERE erasure_requested_at IS NOT NULL;
CREATE INDEX contacts_by_erasure_time ON contacts (account_id, erasure_requested_at) WHERE erasure_requested_at IS NOT NULL;

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

-- Examinations of the addresses of an account's contacts, and what they found (audience/hygiene).
CREATE TABLE hygiene_runs (
  hygiene_id  TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (account_id),
  group_id    TEXT,                -- subscription_group_id; NULL: all contacts
  status      TEXT NOT NULL CHECK (status IN ('waiting', 'running', 'completed', 'cancelled')),
  counts      TEXT NOT NULL,       -- JSON
  created_at  INTEGER NOT NULL,
  finished_at INTEGER              -- NULL: it waits or runs
) STRICT, WITHOUT ROWID;
CREATE INDEX hygiene_runs_of_account ON hygiene_runs (account_id, hygiene_id);
CREATE INDEX hygiene_runs_unfinished ON hygiene_runs (hygiene_id) WHERE finished_at IS NULL;

-- Deleted in portions with the run.
CREATE TABLE hygiene_findings (
  hygiene_id  TEXT NOT NULL REFERENCES hygiene_runs (hygiene_id),
  kind        TEXT NOT NULL,
  contact_seq INTEGER NOT NULL REFERENCES contacts (seq) ON DELETE CASCADE,
  detail      TEXT,                -- the fault, why there is no mail service, or the provider that a typo stands for
  first_seq   INTEGER,             -- of a duplicate: the first contact of the mailbox
  PRIMARY KEY (hygiene_id, kind, contact_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX hygiene_findings_of_contact ON hygiene_findings (contact_seq);

-- What hygiene found in imports in the background.
ALTER TABLE background_imports ADD COLUMN hygiene TEXT;   -- JSON; NULL: of a version before it
ALTER TABLE background_imports ADD COLUMN hygiene_mode TEXT NOT NULL DEFAULT 'report';

-- Owners are notified of automatic limits, too. SQLite changes a CHECK only with a new table.
CREATE TABLE new_failure_notices (
  account_id TEXT NOT NULL REFERENCES accounts (account_id) ON DELETE CASCADE,
  kind       TEXT NOT NULL CHECK (kind IN ('domain', 'webhook', 'limit')),
  cause_id   TEXT NOT NULL,            -- of the domain, webhook or limit
  state      TEXT NOT NULL CHECK (state IN ('failing', 'well')),
  noticed_at INTEGER NOT NULL,         -- of the notice about the failure
  PRIMARY KEY (account_id, kind, cause_id)
) STRICT, WITHOUT ROWID;
INSERT INTO new_failure_notices SELECT account_id, kind, cause_id, state, noticed_at FROM failure_notices;
DROP TABLE failure_notices;
ALTER TABLE new_failure_notices RENAME TO failure_notices;

-- What the html of a template is made from: a design, JSON (mail/blocks/design.ts), or MJML. Both NULL: the html is written by
-- hand. syntax: of subject, html and text.
ALTER TABLE templates ADD COLUMN design TEXT;
ALTER TABLE templates ADD COLUMN syntax TEXT NOT NULL DEFAULT 'simple' CHECK (syntax IN ('simple', 'liquid'));
ALTER TABLE templates ADD COLUMN mjml TEXT;
-- Programs that were written for other providers name templates by an alias or by the id there, which is the name here.
CREATE INDEX templates_by_name ON templates (account_id, name);
ALTER TABLE template_versions ADD COLUMN design TEXT;
ALTER TABLE template_versions ADD COLUMN syntax TEXT NOT NULL DEFAULT 'simple';
ALTER TABLE template_versions ADD COLUMN mjml TEXT;
CREATE TRIGGER templates_source_bytes_insert AFTER INSERT ON templates WHEN coalesce(NEW.design, NEW.mjml) IS NOT NULL BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, coalesce(octet_length(NEW.design), 0) + coalesce(octet_length(NEW.mjml), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER templates_source_bytes_update AFTER UPDATE OF design, mjml ON templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (coalesce(octet_length(OLD.design), 0) + coalesce(octet_length(OLD.mjml), 0) - (coalesce(octet_length(NEW.design), 0) + coalesce(octet_length(NEW.mjml), 0))) WHERE account_id = NEW.account_id;
END;
-- With the versions, which their own trigger does not find any more.
CREATE TRIGGER templates_source_bytes_delete BEFORE DELETE ON templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (coalesce(octet_length(OLD.design), 0) + coalesce(octet_length(OLD.mjml), 0) + (SELECT coalesce(sum(coalesce(octet_length(design), 0) + coalesce(octet_length(mjml), 0)), 0) FROM template_versions WHERE template_seq = OLD.seq)) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER template_versions_source_bytes_insert AFTER INSERT ON template_versions WHEN coalesce(NEW.design, NEW.mjml) IS NOT NULL BEGIN
  INSERT INTO stored_bytes VALUES ((SELECT account_id FROM templates WHERE seq = NEW.template_seq), coalesce(octet_length(NEW.design), 0) + coalesce(octet_length(NEW.mjml), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER template_versions_source_bytes_delete AFTER DELETE ON template_versions WHEN coalesce(OLD.design, OLD.mjml) IS NOT NULL BEGIN
  UPDATE stored_bytes SET bytes = bytes - (coalesce(octet_length(OLD.design), 0) + coalesce(octet_length(OLD.mjml), 0)) WHERE account_id = (SELECT account_id FROM templates WHERE seq = OLD.template_seq);
END;

-- Images that an account has uploaded (media/). Their content is stored once for each account, in parts, so that no unit of work
-- writes or deletes megabytes.
CREATE TABLE media_contents (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id  TEXT NOT NULL REFERENCES accounts (account_id),
  hash        BLOB NOT NULL,       -- SHA-256
  -- storing: its parts are being written; deleting: nothing refers to it, and its parts are being deleted.
  state       TEXT NOT NULL CHECK (state IN ('storing', 'stored', 'deleting')),
  type        TEXT NOT NULL,
  width       INTEGER NOT NULL,
  height      INTEGER NOT NULL,
  frames      INTEGER NOT NULL,
  size        INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX media_contents_by_hash ON media_contents (account_id, hash) WHERE state = 'stored';
CREATE INDEX media_contents_unfinished ON media_contents (state, seq) WHERE state <> 'stored';
CREATE TABLE media_parts (
  content_seq INTEGER NOT NULL REFERENCES media_contents (seq) ON DELETE CASCADE,
  n           INTEGER NOT NULL,
  bytes       BLOB NOT NULL,
  PRIMARY KEY (content_seq, n)
) STRICT;
CREATE TABLE media (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  media_id    TEXT NOT NULL UNIQUE,
  account_id  TEXT NOT NULL REFERENCES accounts (account_id),
  content_seq INTEGER NOT NULL REFERENCES media_contents (seq),
  link        TEXT NOT NULL UNIQUE, -- its public address ends with it
  name        TEXT NOT NULL,
  alt         TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX media_by_account ON media (account_id, seq);
CREATE INDEX media_by_content ON media (content_seq);
CREATE TRIGGER media_contents_bytes_insert AFTER INSERT ON media_contents BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + NEW.size)
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER media_contents_bytes_delete AFTER DELETE ON media_contents BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + OLD.size) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER media_bytes_insert AFTER INSERT ON media BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.alt), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER media_bytes_update AFTER UPDATE OF name, alt ON media BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.alt), 0) - (200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.alt), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER media_bytes_delete AFTER DELETE ON media BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.alt), 0)) WHERE account_id = OLD.account_id;
END;

-- The sunset rule (audience/hygiene/sunset): marketing mail ends to people who do nothing with it.
ALTER TABLE contact_engagement ADD COLUMN unanswered INTEGER NOT NULL DEFAULT 0; -- messages received since the contact did something
ALTER TABLE contact_engagement ADD COLUMN unanswered_since INTEGER;              -- when it received the first of them
ALTER TABLE contact_engagement ADD COLUMN sunset_at INTEGER;                     -- when the rule found the contact
CREATE TABLE sunset_rules (
  account_id    TEXT PRIMARY KEY REFERENCES accounts (account_id),
  enabled       INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  months        INTEGER NOT NULL,
  messages      INTEGER NOT NULL,
  notice_days   INTEGER NOT NULL,  -- between the finding and the end
  enabled_at    INTEGER NOT NULL,  -- what the rule found before does not count
  day           INTEGER NOT NULL,  -- epoch ms at which the day (UTC) of the counts begins
  noticed_today INTEGER NOT NULL,
  ended_today   INTEGER NOT NULL,
  ended         INTEGER NOT NULL,  -- since the rule was created
  updated_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sunset_rules_enabled ON sunset_rules (account_id) WHERE enabled = 1;

ALTER TABLE account_limits ADD COLUMN ramp_skipped INTEGER CHECK (ramp_skipped = 1);    -- null: the ramp of new accounts applies

-- Bytes of segments, of the audiences of campaigns, and of what contacts did with campaigns (50 with the index).
CREATE TRIGGER segments_bytes_insert AFTER INSERT ON segments BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.filter), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER segments_bytes_update AFTER UPDATE OF name, filter ON segments BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.filter), 0) - (200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.filter), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER segments_bytes_delete AFTER DELETE ON segments BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.filter), 0)) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER campaign_sends_bytes_insert AFTER INSERT ON campaign_sends WHEN NEW.audience IS NOT NULL BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, octet_length(NEW.audience))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER campaign_sends_bytes_delete AFTER DELETE ON campaign_sends WHEN OLD.audience IS NOT NULL BEGIN
  UPDATE stored_bytes SET bytes = bytes - octet_length(OLD.audience) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER campaign_contacts_bytes_insert AFTER INSERT ON campaign_contacts BEGIN
  INSERT INTO stored_bytes VALUES ((SELECT account_id FROM contacts WHERE seq = NEW.contact_seq), 50)
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER campaign_contacts_bytes_delete AFTER DELETE ON campaign_contacts BEGIN
  UPDATE stored_bytes SET bytes = bytes - 50 WHERE account_id = (SELECT account_id FROM contacts WHERE seq = OLD.contact_seq);
END;

-- Finds the link host of an account for the addresses of its images and archives.
CREATE INDEX domains_by_link_host ON domains (account_id, created_at, domain_id) WHERE tracking_host IS NOT NULL;

-- The time for which the sender scheduled a message, while it is in the queue. Earlier only marketing mail could be scheduled: its
-- lifetime, in whole seconds, began at that time.
ALTER TABLE queue ADD COLUMN scheduled_at INTEGER;
UPDATE queue SET scheduled_at = coalesce(due_before_hold, due_at)
WHERE ready = 0 AND lane = 1 AND EXISTS (
  SELECT 1 FROM messages m WHERE m.seq = queue.seq AND m.status_code = 2
    AND m.expires_at > coalesce(queue.due_before_hold, queue.due_at)
    AND (m.expires_at - coalesce(queue.due_before_hold, queue.due_at)) % 1000 = 0);

-- Partials of templates in Liquid (templates/partials).
CREATE TABLE partials (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  partial_id TEXT NOT NULL UNIQUE,
  account_id TEXT NOT NULL REFERENCES accounts (account_id),
  name       TEXT NOT NULL,
  html       TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (account_id, name)
) STRICT;
CREATE INDEX partials_by_account ON partials (account_id, seq);
CREATE TRIGGER partials_bytes_insert AFTER INSERT ON partials BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.html), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER partials_bytes_update AFTER UPDATE OF name, html ON partials BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.html), 0) - (200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.html), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER partials_bytes_delete AFTER DELETE ON partials BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.html), 0)) WHERE account_id = OLD.account_id;
END;

-- Tags and metadata of messages (store/messages/labels), and their rows by tag.
ALTER TABLE messages ADD COLUMN labels TEXT;                        -- JSON; null: none
CREATE TABLE message_tags (
  account     ANY NOT NULL,
  tag         TEXT NOT NULL,
  message_seq INTEGER NOT NULL,
  PRIMARY KEY (account, tag, message_seq)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER messages_tags_delete AFTER DELETE ON messages WHEN OLD.labels IS NOT NULL BEGIN
  DELETE FROM message_tags WHERE account = OLD.account AND message_seq = OLD.seq
    AND tag IN (SELECT value FROM json_each(OLD.labels, '$.tags'));
  UPDATE stored_bytes SET bytes = bytes - octet_length(OLD.labels) WHERE account_id = OLD.account;
END;
CREATE TRIGGER messages_tags_update AFTER UPDATE OF labels ON messages WHEN OLD.labels IS NOT NULL BEGIN
  DELETE FROM message_tags WHERE account = OLD.account AND message_seq = OLD.seq
    AND tag IN (SELECT value FROM json_each(OLD.labels, '$.tags'));
  UPDATE stored_bytes SET bytes = bytes - octet_length(OLD.labels) WHERE account_id = OLD.account;
END;

-- Outcomes of messages with a tag by hour, the codes as in hourly_counts.
CREATE TABLE tag_counts (
  hour         INTEGER NOT NULL,
  account      ANY NOT NULL,
  tag          TEXT NOT NULL,
  outcome_code INTEGER NOT NULL,
  messages     INTEGER NOT NULL,
  PRIMARY KEY (hour, account, tag, outcome_code)
) STRICT, WITHOUT ROWID;

-- Archives: the campaigns of a group as public pages (campaigns/archive.ts). The key is in the address of a private group; null: the
-- group has no archive.
ALTER TABLE subscription_groups ADD COLUMN archive_key TEXT;
CREATE UNIQUE INDEX subscription_groups_by_archive_key ON subscription_groups (archive_key) WHERE archive_key IS NOT NULL;
-- Campaigns that were sent to all members of a group, whether it has an archive or not. Rows of a deleted group stay until the
-- campaign is deleted.
CREATE TABLE archived_campaigns (
  group_id     TEXT NOT NULL,
  sent_at      INTEGER NOT NULL,   -- when sending began
  campaign_seq INTEGER NOT NULL REFERENCES campaigns (seq) ON DELETE CASCADE,
  PRIMARY KEY (group_id, sent_at, campaign_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX archived_campaigns_by_campaign ON archived_campaigns (campaign_seq);
CREATE TRIGGER archived_campaigns_update AFTER UPDATE OF finished_at ON campaign_sends
WHEN OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL AND NEW.queued > 0 BEGIN
  INSERT OR IGNORE INTO archived_campaigns
  SELECT NEW.subscription_group_id, coalesce(NEW.started_at, NEW.created_at), NEW.campaign_seq WHERE NEW.audience IS NULL
  UNION ALL SELECT value, coalesce(NEW.started_at, NEW.created_at), NEW.campaign_seq FROM json_each(NEW.audience, '$.groupIds')
  WHERE json_extract(NEW.audience, '$.segmentId') IS NULL AND json_array_length(NEW.audience, '$.excludeSegmentIds') = 0
    AND json_array_length(NEW.audience, '$.excludeCampaignIds') = 0;
END;
CREATE TRIGGER archived_campaigns_insert AFTER INSERT ON campaign_sends WHEN NEW.finished_at IS NOT NULL AND NEW.queued > 0 BEGIN
  INSERT OR IGNORE INTO archived_campaigns
  SELECT NEW.subscription_group_id, coalesce(NEW.started_at, NEW.created_at), NEW.campaign_seq WHERE NEW.audience IS NULL
  UNION ALL SELECT value, coalesce(NEW.started_at, NEW.created_at), NEW.campaign_seq FROM json_each(NEW.audience, '$.groupIds')
  WHERE json_extract(NEW.audience, '$.segmentId') IS NULL AND json_array_length(NEW.audience, '$.excludeSegmentIds') = 0
    AND json_array_length(NEW.audience, '$.excludeCampaignIds') = 0;
END;
-- Those of versions without segments.
INSERT INTO archived_campaigns
SELECT subscription_group_id, coalesce(started_at, created_at), campaign_seq FROM campaign_sends
WHERE finished_at IS NOT NULL AND queued > 0 AND audience IS NULL;

-- A/B tests of campaigns (campaigns/variants.ts).
ALTER TABLE campaign_sends ADD COLUMN test TEXT;            -- JSON: the variants, the share, how the winner is found; null: one content
ALTER TABLE campaign_sends ADD COLUMN decide_at INTEGER;    -- null: messages of the test wait for their first attempt
ALTER TABLE campaign_sends ADD COLUMN decision TEXT;        -- JSON: the variant for the rest of the audience, and why; null: none yet
ALTER TABLE campaign_sends ADD COLUMN in_rest INTEGER NOT NULL DEFAULT 0 CHECK (in_rest IN (0, 1)); -- 1: the rest of the audience is processed
CREATE TRIGGER campaign_sends_test_bytes_insert AFTER INSERT ON campaign_sends WHEN NEW.test IS NOT NULL BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, octet_length(NEW.test))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER campaign_sends_test_bytes_delete AFTER DELETE ON campaign_sends WHEN OLD.test IS NOT NULL BEGIN
  UPDATE stored_bytes SET bytes = bytes - octet_length(OLD.test) WHERE account_id = OLD.account_id;
END;

-- What people did with the messages of a test. Their variant is in campaign_contacts.bits: 16 * its number, from 1.
CREATE TABLE campaign_variants (
  campaign_seq INTEGER NOT NULL REFERENCES campaigns (seq) ON DELETE CASCADE,
  variant      INTEGER NOT NULL,
  queued       INTEGER NOT NULL DEFAULT 0,
  delivered    INTEGER NOT NULL DEFAULT 0,
  opened       INTEGER NOT NULL DEFAULT 0, -- by people, as clicked
  clicked      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (campaign_seq, variant)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER campaign_contacts_variant AFTER UPDATE OF bits ON campaign_contacts
  WHEN OLD.bits >= 16 AND NEW.bits <> OLD.bits BEGIN
  UPDATE campaign_variants SET
    delivered = delivered + ((NEW.bits & 1) > (OLD.bits & 1)),
    opened = opened + ((NEW.bits & 2) > (OLD.bits & 2)),
    clicked = clicked + ((NEW.bits & 4) > (OLD.bits & 4))
  WHERE campaign_seq = NEW.campaign_seq AND variant = NEW.bits >> 4;
END;

-- Inbound mail (inbound/): addresses under the domains of an account whose mail is received, and that mail.
CREATE TABLE inbound_routes (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  route_id    TEXT NOT NULL UNIQUE,
  account_id  TEXT NOT NULL REFERENCES accounts (account_id),
  domain_id   TEXT NOT NULL REFERENCES domains (domain_id) ON DELETE CASCADE,
  name        TEXT NOT NULL,
  local       TEXT NOT NULL,       -- lower case; '*': every address of the host without a route of its own
  host        TEXT NOT NULL,       -- A-labels, lower case: the domain or a name below it
  action      TEXT NOT NULL CHECK (action IN ('store', 'webhook')),
  webhook_id  TEXT,                -- that of the action webhook
  spam_policy TEXT NOT NULL CHECK (spam_policy IN ('mark', 'reject')),
  is_active   INTEGER NOT NULL CHECK (is_active IN (0, 1)),
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  UNIQUE (account_id, host, local)
) STRICT;
CREATE INDEX inbound_routes_by_account ON inbound_routes (account_id, seq);
CREATE INDEX inbound_routes_by_domain ON inbound_routes (domain_id, host);
-- Finds the route of a recipient.
CREATE INDEX inbound_routes_by_host ON inbound_routes (host, local);
CREATE TRIGGER inbound_routes_without_webhook AFTER DELETE ON webhooks BEGIN
  UPDATE inbound_routes SET action = 'store', webhook_id = NULL
  WHERE account_id = OLD.account_id AND webhook_id = OLD.webhook_id;
END;

-- The bytes of a received mail, once for all routes of an account that it came to, in parts, so that no unit of work writes or
-- deletes megabytes.
CREATE TABLE inbound_sources (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id TEXT NOT NULL REFERENCES accounts (account_id),
  -- storing: its parts are being written; deleting: no mail refers to it, and its parts are being deleted.
  state      TEXT NOT NULL CHECK (state IN ('storing', 'stored', 'deleting')),
  size       INTEGER NOT NULL
) STRICT;
CREATE INDEX inbound_sources_of_account ON inbound_sources (account_id);
CREATE INDEX inbound_sources_unfinished ON inbound_sources (state, seq) WHERE state <> 'stored';
CREATE TABLE inbound_parts (
  source_seq INTEGER NOT NULL REFERENCES inbound_sources (seq) ON DELETE CASCADE,
  n          INTEGER NOT NULL,
  bytes      BLOB NOT NULL,
  PRIMARY KEY (source_seq, n)
) STRICT;
CREATE TABLE inbound_mails (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  inbound_id     TEXT NOT NULL UNIQUE,
  account_id     TEXT NOT NULL REFERENCES accounts (account_id),
  route_id       TEXT NOT NULL,    -- stays when the route is deleted
  source_seq     INTEGER NOT NULL REFERENCES inbound_sources (seq),
  status         TEXT NOT NULL CHECK (status IN ('received', 'parsed')),
  sender         TEXT NOT NULL,    -- of the envelope; '': none
  recipient      TEXT NOT NULL,    -- of the envelope
  helo           TEXT NOT NULL,
  remote_address TEXT NOT NULL,
  received_at    INTEGER NOT NULL,
  -- Found by parsing.
  from_address   TEXT NOT NULL,    -- lower case; '': none, or not parsed
  subject        TEXT NOT NULL,
  answers        TEXT,             -- message_id of the message of the account that it answers
  automatic      TEXT,             -- which program sent it; NULL: none is declared
  is_loop        INTEGER NOT NULL CHECK (is_loop IN (0, 1)),
  attachments    INTEGER NOT NULL,
  parse_error    TEXT,
  authentication TEXT,             -- JSON; NULL: not checked yet
  content        TEXT              -- JSON: what a reader of the mail sees; NULL: not parsed yet
) STRICT;
CREATE INDEX inbound_mails_of_account ON inbound_mails (account_id, seq);
CREATE INDEX inbound_mails_of_route ON inbound_mails (account_id, route_id, seq);
CREATE INDEX inbound_mails_from ON inbound_mails (account_id, from_address, seq);
CREATE INDEX inbound_mails_by_sender ON inbound_mails (account_id, sender, seq);
CREATE INDEX inbound_mails_of_source ON inbound_mails (source_seq);
CREATE INDEX inbound_mails_answering ON inbound_mails (account_id, answers, seq) WHERE answers IS NOT NULL;
CREATE INDEX inbound_mails_unparsed ON inbound_mails (account_id, seq) WHERE status = 'received';
CREATE TRIGGER inbound_sources_without_mail AFTER DELETE ON inbound_mails
WHEN NOT EXISTS (SELECT 1 FROM inbound_mails WHERE source_seq = OLD.source_seq) BEGIN
  UPDATE inbound_sources SET state = 'deleting' WHERE seq = OLD.source_seq;
END;
CREATE TRIGGER inbound_routes_bytes_insert AFTER INSERT ON inbound_routes BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 400 + coalesce(octet_length(NEW.name), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER inbound_routes_bytes_update AFTER UPDATE OF name ON inbound_routes BEGIN
  UPDATE stored_bytes SET bytes = bytes - (400 + coalesce(octet_length(OLD.name), 0) - (400 + coalesce(octet_length(NEW.name), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER inbound_routes_bytes_delete AFTER DELETE ON inbound_routes BEGIN
  UPDATE stored_bytes SET bytes = bytes - (400 + coalesce(octet_length(OLD.name), 0)) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER inbound_sources_bytes_insert AFTER INSERT ON inbound_sources BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + NEW.size)
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER inbound_sources_bytes_delete AFTER DELETE ON inbound_sources BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + OLD.size) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER inbound_mails_bytes_insert AFTER INSERT ON inbound_mails BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 1000 + coalesce(octet_length(NEW.content), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER inbound_mails_bytes_update AFTER UPDATE OF content ON inbound_mails BEGIN
  UPDATE stored_bytes SET bytes = bytes - (1000 + coalesce(octet_length(OLD.content), 0) - (1000 + coalesce(octet_length(NEW.content), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER inbound_mails_bytes_delete AFTER DELETE ON inbound_mails BEGIN
  UPDATE stored_bytes SET bytes = bytes - (1000 + coalesce(octet_length(OLD.content), 0)) WHERE account_id = OLD.account_id;
END;

-- Test keys, and campaigns that were sent with one.
ALTER TABLE api_keys ADD COLUMN simulates INTEGER NOT NULL DEFAULT 0 CHECK (simulates IN (0, 1));
ALTER TABLE campaign_sends ADD COLUMN simulated INTEGER NOT NULL DEFAULT 0 CHECK (simulated IN (0, 1));

-- Which events of its kinds a webhook gets (events/webhook-filter).
ALTER TABLE webhooks ADD COLUMN filter TEXT;                        -- JSON; null: all

-- Headers that an account adds to the calls of a webhook: a JSON object of names and sealed values (webhooks/secrets).
ALTER TABLE webhooks ADD COLUMN headers TEXT;                       -- null: none

-- What sends from a domain track that do not state it.
ALTER TABLE domains ADD COLUMN track_opens INTEGER NOT NULL DEFAULT 0 CHECK (track_opens IN (0, 1));
ALTER TABLE domains ADD COLUMN track_clicks INTEGER NOT NULL DEFAULT 0 CHECK (track_clicks IN (0, 1));

-- Keys whose requests are signed (signature version 4): the verifier needs the secret, sealed (accounts/keys).
ALTER TABLE api_keys ADD COLUMN signing_secret BLOB;                -- null: requests have the secret itself

-- Whose bodies the calls of a webhook have (webhooks/formats).
ALTER TABLE webhooks ADD COLUMN format TEXT NOT NULL DEFAULT 'postrider'
  CHECK (format IN ('postrider', 'postmark', 'sendgrid', 'mailgun', 'resend', 'ses'));

-- Accounts that move to another installation (transfer/). While an account has a row here, the recipients and idempotency keys
-- whose rows change are noted in account_changes: a second file has only those, after one that was written while the account
-- was in use.
ALTER TABLE accounts ADD COLUMN moved_at INTEGER;                   -- it was exported, and is disabled since; its queue is still sent
ALTER TABLE account_imports ADD COLUMN move_id TEXT;                -- everything is imported that the move had in its first file
CREATE TABLE account_moves (
  account_id    TEXT PRIMARY KEY REFERENCES accounts (account_id),
  move_id       TEXT NOT NULL,
  started_at    INTEGER NOT NULL,
  -- The last rows in the first file; NULL: it is not complete.
  last_message  INTEGER,
  last_content  INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE account_changes (
  account_id TEXT NOT NULL,
  kind       TEXT NOT NULL CHECK (kind IN ('recipient', 'answer')),
  key        TEXT NOT NULL,        -- the hash of a recipient; endpoint and idempotency key
  PRIMARY KEY (account_id, kind, key)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER moving_contact_insert AFTER INSERT ON contacts
  WHEN EXISTS (SELECT 1 FROM account_moves WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO account_changes SELECT NEW.account_id, 'recipient', key FROM (SELECT NEW.email_hash AS key UNION ALL SELECT NEW.phone_hash) WHERE key IS NOT NULL ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_contact_update AFTER UPDATE ON contacts
  WHEN EXISTS (SELECT 1 FROM account_moves WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO account_changes SELECT NEW.account_id, 'recipient', key FROM (SELECT OLD.email_hash AS key UNION ALL SELECT OLD.phone_hash UNION ALL SELECT NEW.email_hash AS key UNION ALL SELECT NEW.phone_hash) WHERE key IS NOT NULL ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_contact_delete AFTER DELETE ON contacts
  WHEN EXISTS (SELECT 1 FROM account_moves WHERE account_id = OLD.account_id) BEGIN
  INSERT INTO account_changes SELECT OLD.account_id, 'recipient', key FROM (SELECT OLD.email_hash AS key UNION ALL SELECT OLD.phone_hash) WHERE key IS NOT NULL ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_consent_insert AFTER INSERT ON consents
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (NEW.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_consent_update AFTER UPDATE ON consents
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (OLD.contact_seq, NEW.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_consent_delete AFTER DELETE ON consents
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (OLD.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_subscription_insert AFTER INSERT ON subscriptions
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (NEW.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_subscription_update AFTER UPDATE ON subscriptions
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (OLD.contact_seq, NEW.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_subscription_delete AFTER DELETE ON subscriptions
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (OLD.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_engagement_insert AFTER INSERT ON contact_engagement
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (NEW.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_engagement_update AFTER UPDATE ON contact_engagement
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (OLD.contact_seq, NEW.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_engagement_delete AFTER DELETE ON contact_engagement
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (OLD.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_campaign_contact_insert AFTER INSERT ON campaign_contacts
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (NEW.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_campaign_contact_update AFTER UPDATE ON campaign_contacts
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (OLD.contact_seq, NEW.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_campaign_contact_delete AFTER DELETE ON campaign_contacts
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (OLD.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_sequence_person_insert AFTER INSERT ON sequence_people
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (NEW.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_sequence_person_update AFTER UPDATE ON sequence_people
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (OLD.contact_seq, NEW.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_sequence_person_delete AFTER DELETE ON sequence_people
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', coalesce(email_hash, phone_hash) FROM contacts
  WHERE seq IN (OLD.contact_seq) AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_opt_out_insert AFTER INSERT ON group_opt_outs
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', NEW.recipient_hash FROM subscription_groups
  WHERE seq = NEW.group_seq AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_opt_out_update AFTER UPDATE ON group_opt_outs
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', OLD.recipient_hash FROM subscription_groups
  WHERE seq = OLD.group_seq AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
  INSERT INTO account_changes SELECT account_id, 'recipient', NEW.recipient_hash FROM subscription_groups
  WHERE seq = NEW.group_seq AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_opt_out_delete AFTER DELETE ON group_opt_outs
  WHEN EXISTS (SELECT 1 FROM account_moves) BEGIN
  INSERT INTO account_changes SELECT account_id, 'recipient', OLD.recipient_hash FROM subscription_groups
  WHERE seq = OLD.group_seq AND account_id IN (SELECT account_id FROM account_moves) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_suppression_insert AFTER INSERT ON suppressions
  WHEN EXISTS (SELECT 1 FROM account_moves WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO account_changes SELECT NEW.account_id, 'recipient', NEW.recipient_hash WHERE true ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_suppression_update AFTER UPDATE ON suppressions
  WHEN EXISTS (SELECT 1 FROM account_moves WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO account_changes SELECT OLD.account_id, 'recipient', OLD.recipient_hash WHERE true ON CONFLICT DO NOTHING;
  INSERT INTO account_changes SELECT NEW.account_id, 'recipient', NEW.recipient_hash WHERE true ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_suppression_delete AFTER DELETE ON suppressions
  WHEN EXISTS (SELECT 1 FROM account_moves WHERE account_id = OLD.account_id) BEGIN
  INSERT INTO account_changes SELECT OLD.account_id, 'recipient', OLD.recipient_hash WHERE true ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_strike_insert AFTER INSERT ON strikes
  WHEN EXISTS (SELECT 1 FROM account_moves WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO account_changes SELECT NEW.account_id, 'recipient', NEW.recipient_hash WHERE true ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_strike_update AFTER UPDATE ON strikes
  WHEN EXISTS (SELECT 1 FROM account_moves WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO account_changes SELECT OLD.account_id, 'recipient', OLD.recipient_hash WHERE true ON CONFLICT DO NOTHING;
  INSERT INTO account_changes SELECT NEW.account_id, 'recipient', NEW.recipient_hash WHERE true ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_strike_delete AFTER DELETE ON strikes
  WHEN EXISTS (SELECT 1 FROM account_moves WHERE account_id = OLD.account_id) BEGIN
  INSERT INTO account_changes SELECT OLD.account_id, 'recipient', OLD.recipient_hash WHERE true ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_answer_insert AFTER INSERT ON idempotency
  WHEN EXISTS (SELECT 1 FROM account_moves WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO account_changes SELECT NEW.account_id, 'answer', NEW.endpoint || ' ' || NEW.key WHERE true ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_answer_update AFTER UPDATE ON idempotency
  WHEN EXISTS (SELECT 1 FROM account_moves WHERE account_id = NEW.account_id) BEGIN
  INSERT INTO account_changes SELECT OLD.account_id, 'answer', OLD.endpoint || ' ' || OLD.key WHERE true ON CONFLICT DO NOTHING;
  INSERT INTO account_changes SELECT NEW.account_id, 'answer', NEW.endpoint || ' ' || NEW.key WHERE true ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER moving_answer_delete AFTER DELETE ON idempotency
  WHEN EXISTS (SELECT 1 FROM account_moves WHERE account_id = OLD.account_id) BEGIN
  INSERT INTO account_changes SELECT OLD.account_id, 'answer', OLD.endpoint || ' ' || OLD.key WHERE true ON CONFLICT DO NOTHING;
END;
