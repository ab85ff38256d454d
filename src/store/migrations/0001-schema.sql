-- The whole schema of a new database, with the reasons of its tables. A change of it is a migration with the next number.

-- Numbers that stand for ids in rows of messages, events and the queue (store/rows/id-numbers). A number remains when
-- its resource is deleted.
CREATE TABLE account_numbers (
  number INTEGER PRIMARY KEY,
  id     TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE domain_numbers (
  number INTEGER PRIMARY KEY,
  id     TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE campaign_numbers (
  number INTEGER PRIMARY KEY,
  id     TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE subscription_group_numbers (
  number INTEGER PRIMARY KEY,
  id     TEXT NOT NULL UNIQUE
) STRICT;

-- Values about this database: the daemon's generation, whether the queue is paused.
CREATE TABLE settings (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE accounts (
  account_id      TEXT PRIMARY KEY,
  name            TEXT NOT NULL,
  status          TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
  company_name    TEXT,
  company_address TEXT,            -- JSON: line1, line2?, city, region?, postalCode, country
  abuse_email     TEXT,
  logo_url        TEXT,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL
) STRICT;
-- Accounts and keys are listed page by page, oldest first.
CREATE INDEX accounts_by_creation ON accounts (created_at, account_id);

-- Only the SHA-256 of a key is stored.
CREATE TABLE api_keys (
  key_id     TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (account_id),
  name       TEXT NOT NULL,
  hash       BLOB NOT NULL UNIQUE,
  scopes     TEXT NOT NULL,        -- JSON array of setup, marketing, transactional
  allow_ips  TEXT NOT NULL,        -- JSON array of addresses and CIDRs, empty: any
  allow_from TEXT NOT NULL,        -- JSON array of From domains, empty: any
  created_at INTEGER NOT NULL,
  revoked_at INTEGER,
  allow_essential INTEGER NOT NULL DEFAULT 1 CHECK (allow_essential IN (0, 1)),
  strict_compliance INTEGER NOT NULL DEFAULT 0 CHECK (strict_compliance IN (0, 1))
) STRICT;
CREATE INDEX api_keys_by_account ON api_keys (account_id, created_at, key_id);
-- Revoked keys are deleted after a time.
CREATE INDEX api_keys_by_revocation ON api_keys (revoked_at) WHERE revoked_at IS NOT NULL;

CREATE TABLE domain_groups (
  group_id    TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (account_id),
  name        TEXT NOT NULL,
  description TEXT,
  color       TEXT,
  icon        TEXT,
  is_default  INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX domain_groups_by_account ON domain_groups (account_id, created_at, group_id);

CREATE TABLE domains (
  domain_id        TEXT PRIMARY KEY,
  account_id       TEXT NOT NULL REFERENCES accounts (account_id),
  group_id         TEXT NOT NULL REFERENCES domain_groups (group_id),
  name             TEXT NOT NULL,  -- A-labels, lower case
  use_case         TEXT NOT NULL CHECK (use_case IN ('tx', 'mk')),
  region           TEXT NOT NULL,
  status           TEXT NOT NULL CHECK (status IN ('PENDING', 'SUCCESS', 'TEMPORARY_FAILURE', 'FAILED')),
  dkim_enabled     INTEGER NOT NULL DEFAULT 0,
  spf_configured   INTEGER NOT NULL DEFAULT 0,
  dmarc_configured INTEGER NOT NULL DEFAULT 0,
  mx_configured    INTEGER NOT NULL DEFAULT 0,
  return_path      TEXT NOT NULL DEFAULT 'customer' CHECK (return_path IN ('customer', 'platform')),
  tracking_domain  TEXT,           -- custom link host
  tracking_host    TEXT,           -- the host that links use now, null: public.url
  alt_domain_id    TEXT NOT NULL UNIQUE,
  alt_status       TEXT NOT NULL CHECK (alt_status IN ('PENDING', 'ACTIVE')),
  alt_provisioned  INTEGER NOT NULL DEFAULT 0,
  alt_dkim_enabled INTEGER NOT NULL DEFAULT 0,
  alt_spf_configured   INTEGER NOT NULL DEFAULT 0,
  alt_dmarc_configured INTEGER NOT NULL DEFAULT 0,
  last_checked_at  INTEGER,
  next_check_at    INTEGER NOT NULL,
  check_count      INTEGER NOT NULL DEFAULT 0,   -- automatic checks since the status last changed
  failing_since    INTEGER,
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  UNIQUE (account_id, name, use_case, region)
) STRICT;
CREATE INDEX domains_by_group ON domains (group_id);
CREATE INDEX domains_by_next_check ON domains (next_check_at);
-- Finds the domain of a link host, for proxies that request a certificate.
CREATE INDEX domains_by_tracking_domain ON domains (tracking_domain) WHERE tracking_domain IS NOT NULL;
-- Finds the domain of a return host, for every recipient of incoming mail.
CREATE INDEX domains_by_name ON domains (name);

-- The content of a request, one row for all its messages (mail/content.ts as JSON).
CREATE TABLE contents (
  content_id INTEGER PRIMARY KEY,
  -- Columns before the body, which can be megabytes long.
  created_at INTEGER NOT NULL,
  size       INTEGER NOT NULL,     -- bytes of the JSON
  -- Not null: the content is the part of one copy, the rest is in shared_contents, and size is that of both parts.
  shared_id  INTEGER,
  body       ANY NOT NULL,         -- mail/stored-content.ts
  account    INTEGER               -- NULL: of no account
) STRICT;
CREATE TRIGGER contents_deleted AFTER DELETE ON contents WHEN OLD.shared_id IS NOT NULL BEGIN
  UPDATE shared_contents SET copies = copies - 1 WHERE shared_id = OLD.shared_id;
END;
CREATE TRIGGER contents_bytes_insert AFTER INSERT ON contents WHEN NEW.account IS NOT NULL BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account, 100 + octet_length(NEW.body))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER contents_bytes_delete AFTER DELETE ON contents WHEN OLD.account IS NOT NULL BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + octet_length(OLD.body)) WHERE account_id = OLD.account;
END;
CREATE TRIGGER contents_bytes_update AFTER UPDATE OF body ON contents WHEN NEW.account IS NOT NULL BEGIN
  UPDATE stored_bytes SET bytes = bytes - (octet_length(OLD.body) - octet_length(NEW.body)) WHERE account_id = NEW.account;
END;

-- One row per recipient. AUTOINCREMENT: the number of a deleted row is not assigned again.
CREATE TABLE messages (
  seq                INTEGER PRIMARY KEY AUTOINCREMENT,
  -- Keys are bytes (store/rows/row-keys), or text without the usual shape.
  message_key        ANY NOT NULL UNIQUE,
  -- Numbers (store/rows/id-numbers).
  account            ANY NOT NULL,
  content_id         INTEGER NOT NULL,
  use_case_code      INTEGER NOT NULL CHECK (use_case_code IN (0, 1)),           -- tx, mk
  domain             ANY NOT NULL,
  job_key            ANY,
  campaign           ANY,
  subscription_group ANY,
  from_address       TEXT NOT NULL,
  recipient          TEXT NOT NULL,
  recipient_key      ANY NOT NULL,                                                 -- the MD5 of email_<md5>
  role_code          INTEGER NOT NULL CHECK (role_code BETWEEN 0 AND 2),           -- to, cc, bcc
  subject            TEXT NOT NULL,
  -- queued, sending, delivered, deferred, bounced, failed, complained, cancelled; one byte each
  status_code        INTEGER NOT NULL CHECK (status_code BETWEEN 2 AND 9),
  attempts           INTEGER NOT NULL DEFAULT 0,
  simulated          INTEGER NOT NULL CHECK (simulated IN (0, 1)),
  track_clicks       INTEGER NOT NULL CHECK (track_clicks IN (0, 1)),
  track_opens        INTEGER NOT NULL CHECK (track_opens IN (0, 1)),
  essential          INTEGER NOT NULL CHECK (essential IN (0, 1)),
  visits             INTEGER NOT NULL DEFAULT 0,
  created_at         INTEGER NOT NULL,
  updated_at         INTEGER NOT NULL,
  expires_at         INTEGER NOT NULL,
  -- Negative until it is known, so that the row keeps its size.
  sent_time          INTEGER NOT NULL,                                             -- email_sent was recorded
  final_time         INTEGER NOT NULL                                              -- no further delivery attempt
) STRICT;
-- SQLite appends seq to every entry.
CREATE INDEX messages_by_account ON messages (account);
CREATE INDEX messages_by_recipient ON messages (account, recipient_key);
CREATE INDEX messages_by_campaign ON messages (campaign) WHERE campaign IS NOT NULL;
CREATE INDEX messages_by_job ON messages (job_key) WHERE job_key IS NOT NULL;
CREATE INDEX messages_by_content ON messages (content_id);
CREATE INDEX messages_by_status ON messages (account, status_code) WHERE status_code <> 4;
CREATE INDEX messages_by_domain ON messages (domain);

-- Messages to be delivered, one row per message until it is final. A lease is the
-- generation of the daemon that took it; leases of older generations are void.
CREATE TABLE queue (
  seq          INTEGER PRIMARY KEY REFERENCES messages (seq),
  lane         INTEGER NOT NULL CHECK (lane IN (0, 1)),                            -- transactional, marketing
  account      ANY NOT NULL,
  domain       ANY NOT NULL,
  destination  TEXT NOT NULL,                                                      -- the recipient's domain
  due_at       INTEGER NOT NULL,
  ready        INTEGER NOT NULL CHECK (ready IN (0, 1)),                           -- due_at is in the past
  lease        INTEGER,
  campaign_seq INTEGER,
  -- 1: the message of a disabled account or a failed domain. `due_at` is its expiry; it is released when the account is
  -- enabled or the domain verified.
  held         INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1)),
  secondary    INTEGER NOT NULL DEFAULT 0 CHECK (secondary IN (0, 1)),             -- 1: sent over the secondary lane
  reroute      INTEGER,                                                            -- queue_reroutes
  due_before_hold INTEGER                                                          -- of a message that a restore holds
) STRICT;
CREATE INDEX queue_due ON queue (due_at) WHERE ready = 0;
CREATE INDEX queue_ready ON queue (lane, account, destination) WHERE ready = 1 AND lease IS NULL;
CREATE INDEX queue_by_campaign ON queue (campaign_seq, ready, due_at) WHERE campaign_seq IS NOT NULL;
CREATE INDEX queue_held ON queue (domain) WHERE held = 1;
CREATE INDEX queue_rerouted ON queue (reroute) WHERE reroute IS NOT NULL;

-- Delivery attempts of messages.
CREATE TABLE attempts (
  message_seq INTEGER NOT NULL REFERENCES messages (seq),
  attempt     INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  lane_code   INTEGER NOT NULL CHECK (lane_code BETWEEN 0 AND 2),                   -- primary, secondary, simulator
  report      BLOB NOT NULL,                                                       -- packed JSON (store/rows/packed-json)
  PRIMARY KEY (message_seq, attempt)
) STRICT, WITHOUT ROWID;

-- Events in order, append-only: the feed that callers read. Fields of the message are joined.
CREATE TABLE events (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  event_key   ANY NOT NULL,                                                        -- without the time where that is `at`
  account     ANY NOT NULL,
  kind_code   ANY NOT NULL,                                                        -- or the text of a kind without a code
  at          INTEGER NOT NULL,
  message_seq INTEGER,
  domain      ANY,
  -- The fields of this kind: packed JSON, NULL for none; JSON where message_seq is NULL.
  data        ANY
) STRICT;
CREATE INDEX events_by_account ON events (account);
CREATE INDEX events_by_message ON events (message_seq) WHERE message_seq IS NOT NULL;
CREATE INDEX events_by_kind ON events (account, kind_code) WHERE kind_code <> 0 AND kind_code <> 1;
CREATE INDEX events_without_message ON events (account) WHERE message_seq IS NULL;
-- Events about a person without a message: refused sends and opt-outs.
CREATE INDEX events_by_person ON events (account, data ->> '$.contactIdentifier') WHERE message_seq IS NULL;

-- Responses to requests with an idempotency key, for 24 hours.
CREATE TABLE idempotency (
  account_id  TEXT NOT NULL,
  endpoint    TEXT NOT NULL,
  key         TEXT NOT NULL,
  fingerprint BLOB NOT NULL,
  status      INTEGER NOT NULL,
  body        TEXT NOT NULL,
  expires_at  INTEGER NOT NULL,
  PRIMARY KEY (account_id, endpoint, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);

-- Bounces that suppress a recipient only when they are repeated: soft ones, and hard ones that one reply does not prove.
CREATE TABLE strikes (
  account_id     TEXT NOT NULL,
  recipient_hash TEXT NOT NULL,
  kind           TEXT NOT NULL CHECK (kind IN ('soft', 'unproven')),
  at             INTEGER NOT NULL,
  PRIMARY KEY (account_id, recipient_hash, kind, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX strikes_by_time ON strikes (at);

CREATE TABLE contacts (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id     TEXT NOT NULL REFERENCES accounts (account_id),
  user_id        TEXT NOT NULL,    -- UUID v7
  email          TEXT,
  email_hash     TEXT,             -- email_<md5>
  phone          TEXT,             -- E.164
  phone_hash     TEXT,             -- phone_<md5>
  first_name     TEXT,
  last_name      TEXT,
  custom_fields  TEXT NOT NULL,    -- JSON object
  global_status  TEXT NOT NULL CHECK (global_status IN ('active', 'unsubscribed', 'bounced', 'complained', 'suppressed')),
  consent_n      INTEGER,          -- the entry of consents that holds now, null: there is none
  source         TEXT NOT NULL,    -- api, import
  added_by       TEXT NOT NULL,    -- an API key's id, or import
  -- The first characters, folded, for searches by prefix. Short, so that no index contains a full name.
  email_key      TEXT,
  name_key       TEXT,
  last_name_key  TEXT,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  search_text    TEXT NOT NULL,    -- folded address, name and number, one on each line
  CHECK (email IS NOT NULL OR phone IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX contacts_by_email ON contacts (account_id, email_hash) WHERE email_hash IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_phone ON contacts (account_id, phone_hash) WHERE phone_hash IS NOT NULL;
CREATE INDEX contacts_by_account ON contacts (account_id);
CREATE INDEX contacts_by_status ON contacts (account_id, global_status);
CREATE INDEX contacts_by_email_key ON contacts (account_id, email_key) WHERE email_key IS NOT NULL;
CREATE INDEX contacts_by_name_key ON contacts (account_id, name_key) WHERE name_key IS NOT NULL;
CREATE INDEX contacts_by_last_name_key ON contacts (account_id, last_name_key) WHERE last_name_key IS NOT NULL;
CREATE TRIGGER contacts_count_insert AFTER INSERT ON contacts BEGIN
  INSERT INTO contact_counts VALUES (NEW.account_id, 1) ON CONFLICT (account_id) DO UPDATE SET contacts = contacts + 1;
END;
CREATE TRIGGER contacts_count_delete AFTER DELETE ON contacts BEGIN
  UPDATE contact_counts SET contacts = contacts - 1 WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER contacts_bytes_insert AFTER INSERT ON contacts BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 400 + coalesce(octet_length(NEW.email), 0) + coalesce(octet_length(NEW.phone), 0) + coalesce(octet_length(NEW.first_name), 0) + coalesce(octet_length(NEW.last_name), 0) + coalesce(octet_length(NEW.custom_fields), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER contacts_bytes_update AFTER UPDATE OF email, phone, first_name, last_name, custom_fields ON contacts BEGIN
  UPDATE stored_bytes SET bytes = bytes - (400 + coalesce(octet_length(OLD.email), 0) + coalesce(octet_length(OLD.phone), 0) + coalesce(octet_length(OLD.first_name), 0) + coalesce(octet_length(OLD.last_name), 0) + coalesce(octet_length(OLD.custom_fields), 0) - (400 + coalesce(octet_length(NEW.email), 0) + coalesce(octet_length(NEW.phone), 0) + coalesce(octet_length(NEW.first_name), 0) + coalesce(octet_length(NEW.last_name), 0) + coalesce(octet_length(NEW.custom_fields), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER contacts_bytes_delete AFTER DELETE ON contacts BEGIN
  UPDATE stored_bytes SET bytes = bytes - (400 + coalesce(octet_length(OLD.email), 0) + coalesce(octet_length(OLD.phone), 0) + coalesce(octet_length(OLD.first_name), 0) + coalesce(octet_length(OLD.last_name), 0) + coalesce(octet_length(OLD.custom_fields), 0)) WHERE account_id = OLD.account_id;
END;

-- The consent history of a contact, numbered and append-only.
CREATE TABLE consents (
  contact_seq INTEGER NOT NULL REFERENCES contacts (seq),
  n           INTEGER NOT NULL,
  action      TEXT NOT NULL CHECK (action IN ('given', 'withdrawn', 'left_group', 'returned_to_group')),
  subscription_group_id TEXT,
  method      TEXT,                -- how it was given, or where a group was left: one_click, page, mailto, api
  details     TEXT,
  ip_address  TEXT,
  user_agent  TEXT,
  said_at     INTEGER,             -- when the person consented or withdrew, according to the caller
  recorded_at INTEGER NOT NULL,
  recorded_by TEXT NOT NULL,       -- an API key's id, import, or recipient
  PRIMARY KEY (contact_seq, n)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER consents_bytes_insert AFTER INSERT ON consents BEGIN
  INSERT INTO stored_bytes VALUES ((SELECT account_id FROM contacts WHERE seq = NEW.contact_seq), 100 + coalesce(octet_length(NEW.method), 0) + coalesce(octet_length(NEW.details), 0) + coalesce(octet_length(NEW.user_agent), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER consents_bytes_update AFTER UPDATE OF method, details, user_agent ON consents BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.method), 0) + coalesce(octet_length(OLD.details), 0) + coalesce(octet_length(OLD.user_agent), 0) - (100 + coalesce(octet_length(NEW.method), 0) + coalesce(octet_length(NEW.details), 0) + coalesce(octet_length(NEW.user_agent), 0))) WHERE account_id = (SELECT account_id FROM contacts WHERE seq = NEW.contact_seq);
END;
CREATE TRIGGER consents_bytes_delete AFTER DELETE ON consents BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.method), 0) + coalesce(octet_length(OLD.details), 0) + coalesce(octet_length(OLD.user_agent), 0)) WHERE account_id = (SELECT account_id FROM contacts WHERE seq = OLD.contact_seq);
END;

CREATE TABLE subscription_groups (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  subscription_group_id TEXT NOT NULL UNIQUE,
  account_id    TEXT NOT NULL REFERENCES accounts (account_id),
  name          TEXT NOT NULL,
  description   TEXT,
  is_active     INTEGER NOT NULL CHECK (is_active IN (0, 1)),
  total_subscribers  INTEGER NOT NULL DEFAULT 0,    -- updated with every change of a membership
  active_subscribers INTEGER NOT NULL DEFAULT 0,
  import_status TEXT CHECK (import_status IN ('running', 'completed', 'interrupted')),   -- null: never
  tags          TEXT NOT NULL,     -- JSON array of strings
  unsubscribe_template_id     TEXT,
  report_abuse_template_id    TEXT,
  company_address_template_id TEXT,
  deleted_at    INTEGER,           -- deleted for callers; its memberships are being deleted
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  sign_up       TEXT               -- JSON: the sign-up form; null: it has none
) STRICT;
CREATE INDEX subscription_groups_by_account ON subscription_groups (account_id) WHERE deleted_at IS NULL;
CREATE TRIGGER subscription_groups_bytes_insert AFTER INSERT ON subscription_groups BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.tags), 0) + coalesce(octet_length(NEW.sign_up), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER subscription_groups_bytes_update AFTER UPDATE OF name, description, tags, sign_up ON subscription_groups BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.tags), 0) + coalesce(octet_length(OLD.sign_up), 0) - (200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.tags), 0) + coalesce(octet_length(NEW.sign_up), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER subscription_groups_bytes_delete AFTER DELETE ON subscription_groups BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.tags), 0) + coalesce(octet_length(OLD.sign_up), 0)) WHERE account_id = OLD.account_id;
END;

-- Memberships of contacts in groups.
CREATE TABLE subscriptions (
  group_seq       INTEGER NOT NULL REFERENCES subscription_groups (seq),
  contact_seq     INTEGER NOT NULL REFERENCES contacts (seq),
  is_active       INTEGER NOT NULL CHECK (is_active IN (0, 1)),
  source          TEXT NOT NULL,   -- api, import
  consent_method  TEXT NOT NULL,
  consent_details TEXT,
  joined_at       INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  PRIMARY KEY (group_seq, contact_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX subscriptions_by_activity ON subscriptions (group_seq, is_active, contact_seq);
CREATE INDEX subscriptions_by_contact ON subscriptions (contact_seq);

-- Opt-outs from groups. They remain after the membership and the person are deleted, until the person subscribes again.
CREATE TABLE group_opt_outs (
  group_seq      INTEGER NOT NULL REFERENCES subscription_groups (seq),
  recipient_hash TEXT NOT NULL,    -- email_<md5> or phone_<md5>
  method         TEXT NOT NULL,    -- one_click, page, mailto, api
  created_at     INTEGER NOT NULL,
  PRIMARY KEY (group_seq, recipient_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_opt_outs_by_recipient ON group_opt_outs (recipient_hash);

-- Progress of an import, committed with the imported rows, so that it continues where it stopped.
CREATE TABLE contact_imports (
  import_key  TEXT PRIMARY KEY,    -- SHA-256 over the file's identity, the account and the group
  account_id  TEXT NOT NULL,
  at_byte     INTEGER NOT NULL,    -- the first byte that is not yet read
  at_line     INTEGER NOT NULL,    -- lines before it
  counts      TEXT NOT NULL,       -- JSON
  report_bytes INTEGER NOT NULL,   -- of the report of rejected rows
  started_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Erasures that are not complete. A row is deleted when nothing is left to clear.
CREATE TABLE erasures (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id  TEXT NOT NULL,
  person      TEXT NOT NULL,       -- JSON: the values to search for
  before_message INTEGER NOT NULL, -- messages and events from these numbers on are not erased
  before_event   INTEGER NOT NULL,
  at_message  INTEGER NOT NULL,    -- the last message that was cleared
  created_at  INTEGER NOT NULL
) STRICT;

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
  updated_at  INTEGER NOT NULL,
  variables   TEXT                 -- JSON: the variables that the client of a template declares; null: none
) STRICT;
CREATE INDEX templates_by_account ON templates (account_id, seq);
-- Rows that are deleted with their parent, which their own triggers do not find any more.
CREATE TRIGGER templates_bytes_cascade BEFORE DELETE ON templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (SELECT coalesce(sum(100 + coalesce(octet_length(name), 0) + coalesce(octet_length(subject), 0) + coalesce(octet_length(html), 0) + coalesce(octet_length(text), 0)), 0) FROM template_versions WHERE template_seq = OLD.seq) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER templates_bytes_insert AFTER INSERT ON templates BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.subject), 0) + coalesce(octet_length(NEW.html), 0) + coalesce(octet_length(NEW.text), 0) + coalesce(octet_length(NEW.variables), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER templates_bytes_update AFTER UPDATE OF name, subject, html, text, variables ON templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.subject), 0) + coalesce(octet_length(OLD.html), 0) + coalesce(octet_length(OLD.text), 0) + coalesce(octet_length(OLD.variables), 0) - (200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.subject), 0) + coalesce(octet_length(NEW.html), 0) + coalesce(octet_length(NEW.text), 0) + coalesce(octet_length(NEW.variables), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER templates_bytes_delete AFTER DELETE ON templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.subject), 0) + coalesce(octet_length(OLD.html), 0) + coalesce(octet_length(OLD.text), 0) + coalesce(octet_length(OLD.variables), 0)) WHERE account_id = OLD.account_id;
END;

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
CREATE TRIGGER compliance_templates_bytes_insert AFTER INSERT ON compliance_templates BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.html_content), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER compliance_templates_bytes_update AFTER UPDATE OF name, html_content ON compliance_templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.html_content), 0) - (200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.html_content), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER compliance_templates_bytes_delete AFTER DELETE ON compliance_templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.html_content), 0)) WHERE account_id = OLD.account_id;
END;

CREATE TABLE campaigns (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  campaign_id TEXT NOT NULL UNIQUE,
  account_id  TEXT NOT NULL REFERENCES accounts (account_id),
  name        TEXT NOT NULL,
  description TEXT,
  status      TEXT NOT NULL CHECK (status IN ('draft', 'scheduled', 'sending', 'paused', 'sent', 'cancelled')),
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  -- JSON (campaigns/prepared.ts): what was prepared for a campaign that is not sent; null: nothing.
  prepared    TEXT
) STRICT;
CREATE INDEX campaigns_by_account ON campaigns (account_id, seq);
CREATE TRIGGER campaigns_bytes_insert AFTER INSERT ON campaigns BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.prepared), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER campaigns_bytes_update AFTER UPDATE OF name, description, prepared ON campaigns BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.prepared), 0) - (200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.prepared), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER campaigns_bytes_delete AFTER DELETE ON campaigns BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.prepared), 0)) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER campaigns_bytes_cascade BEFORE DELETE ON campaigns BEGIN
  UPDATE stored_bytes SET bytes = bytes - (SELECT coalesce(sum(100 + coalesce(octet_length(mail), 0)), 0) FROM campaign_mails WHERE campaign_seq = OLD.seq) WHERE account_id = OLD.account_id;
END;

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
  cancelled      INTEGER NOT NULL DEFAULT 0,
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

-- Recipients that an account may not send to. The hash remains after the person's erasure.
CREATE TABLE suppressions (
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
CREATE INDEX suppressions_by_account ON suppressions (account_id, seq);
CREATE INDEX suppressions_by_stream_and_reason ON suppressions (account_id, stream, reason);
CREATE TRIGGER suppressions_count_insert AFTER INSERT ON suppressions BEGIN
  INSERT INTO suppression_counts VALUES (NEW.account_id, 1)
  ON CONFLICT (account_id) DO UPDATE SET suppressions = suppressions + 1;
END;
CREATE TRIGGER suppressions_count_delete AFTER DELETE ON suppressions BEGIN
  UPDATE suppression_counts SET suppressions = suppressions - 1 WHERE account_id = OLD.account_id;
END;

-- Mail for the operator, and returned mail that changed nothing.
CREATE TABLE kept_mail (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  box            TEXT NOT NULL CHECK (box IN ('postmaster', 'abuse', 'bounce', 'feedback', 'unsubscribe', 'dmarc', 'tlsrpt')),
  kind           TEXT NOT NULL,    -- how the parser classified it, or why it could not be parsed
  recipient      TEXT NOT NULL,
  sender         TEXT NOT NULL,    -- of the envelope, '' for none
  remote_address TEXT NOT NULL,
  message_seq    INTEGER,          -- the message that it is about
  size           INTEGER NOT NULL,
  received_at    INTEGER NOT NULL,
  raw            BLOB NOT NULL,     -- its first 256 KiB
  network TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX kept_mail_by_box ON kept_mail (box, seq);
CREATE INDEX kept_mail_by_network ON kept_mail (box, network, seq);

-- Recorded delay warnings: a server whose connection breaks sends its report again.
CREATE TABLE delay_notices (
  message_seq INTEGER NOT NULL,
  fingerprint BLOB NOT NULL,
  at          INTEGER NOT NULL,
  PRIMARY KEY (message_seq, fingerprint)
) STRICT, WITHOUT ROWID;
CREATE INDEX delay_notices_by_time ON delay_notices (at);

-- DMARC aggregate reports (RFC 9990): results of receivers for mail in a domain's name, by source.
CREATE TABLE dmarc_reports (
  seq           INTEGER PRIMARY KEY,
  domain        TEXT NOT NULL,     -- the domain of the address that received it
  policy_domain TEXT NOT NULL,
  organization  TEXT NOT NULL,
  report_id     TEXT NOT NULL,
  begin_at      INTEGER NOT NULL,
  end_at        INTEGER NOT NULL,
  policy        TEXT NOT NULL,     -- JSON: p, sp, np, adkim, aspf, testing
  truncated     INTEGER NOT NULL CHECK (truncated IN (0, 1)),
  received_at   INTEGER NOT NULL,
  network       TEXT NOT NULL DEFAULT '',
  signer        TEXT NOT NULL DEFAULT '',
  -- Whether the DKIM signature of the report belongs to the organization that it names.
  verified      INTEGER NOT NULL DEFAULT 0 CHECK (verified IN (0, 1)),
  UNIQUE (domain, organization, report_id)
) STRICT;
CREATE INDEX dmarc_reports_by_end ON dmarc_reports (domain, end_at);
CREATE INDEX dmarc_reports_by_network ON dmarc_reports (domain, network);
CREATE INDEX dmarc_reports_by_signer ON dmarc_reports (domain, signer);

CREATE TABLE dmarc_sources (
  report_seq  INTEGER NOT NULL REFERENCES dmarc_reports (seq) ON DELETE CASCADE,
  source_ip   TEXT NOT NULL,
  header_from TEXT NOT NULL,
  disposition TEXT NOT NULL,
  dkim        TEXT NOT NULL,       -- as DMARC evaluated them: with alignment
  spf         TEXT NOT NULL,
  messages    INTEGER NOT NULL,
  PRIMARY KEY (report_seq, source_ip, header_from, disposition, dkim, spf)
) STRICT, WITHOUT ROWID;

-- SMTP TLS reports (RFC 8460): how often others could encrypt to our return hosts.
CREATE TABLE tls_reports (
  seq          INTEGER PRIMARY KEY,
  host         TEXT NOT NULL,      -- the policy domain: return-a.<domain>, or the platform's own name
  policy_type  TEXT NOT NULL,
  organization TEXT NOT NULL,
  report_id    TEXT NOT NULL,
  begin_at     INTEGER NOT NULL,
  end_at       INTEGER NOT NULL,
  successful   INTEGER NOT NULL,
  failed       INTEGER NOT NULL,
  received_at  INTEGER NOT NULL,
  network      TEXT NOT NULL DEFAULT '',
  signer       TEXT NOT NULL DEFAULT '',
  verified     INTEGER NOT NULL DEFAULT 0 CHECK (verified IN (0, 1)), -- as of dmarc_reports
  UNIQUE (host, organization, report_id, policy_type)
) STRICT;
CREATE INDEX tls_reports_by_end ON tls_reports (host, end_at);
CREATE INDEX tls_reports_by_network ON tls_reports (host, network);
CREATE INDEX tls_reports_by_signer ON tls_reports (host, signer);

CREATE TABLE tls_failures (
  report_seq     INTEGER NOT NULL REFERENCES tls_reports (seq) ON DELETE CASCADE,
  type           TEXT NOT NULL,
  receiving_host TEXT NOT NULL,
  reason         TEXT NOT NULL,
  sessions       INTEGER NOT NULL,
  PRIMARY KEY (report_seq, type, receiving_host, reason)
) STRICT, WITHOUT ROWID;

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
CREATE TRIGGER campaign_mails_bytes_insert AFTER INSERT ON campaign_mails BEGIN
  INSERT INTO stored_bytes VALUES ((SELECT account_id FROM campaigns WHERE seq = NEW.campaign_seq), 100 + coalesce(octet_length(NEW.mail), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER campaign_mails_bytes_update AFTER UPDATE OF mail ON campaign_mails BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.mail), 0) - (100 + coalesce(octet_length(NEW.mail), 0))) WHERE account_id = (SELECT account_id FROM campaigns WHERE seq = NEW.campaign_seq);
END;
CREATE TRIGGER campaign_mails_bytes_delete AFTER DELETE ON campaign_mails BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.mail), 0)) WHERE account_id = (SELECT account_id FROM campaigns WHERE seq = OLD.campaign_seq);
END;

-- Certificates of the public pages, and the attempts to obtain them.
CREATE TABLE certificates (
  host        TEXT PRIMARY KEY,    -- A-labels
  private_key BLOB,                -- sealed PEM; NULL, as the next two, until there is a certificate
  chain       TEXT,                -- PEM, the host's own certificate first
  not_after   INTEGER,
  due_at      INTEGER NOT NULL,    -- when the next order begins
  tried_at    INTEGER NOT NULL,
  failures    INTEGER NOT NULL,
  last_error  TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX certificates_due ON certificates (due_at) WHERE chain IS NOT NULL;
CREATE INDEX certificates_by_try ON certificates (tried_at);

-- Limits of single accounts, and the counters that are compared with them.
CREATE TABLE account_limits (       -- NULL: the default of the configuration; -1: unlimited
  account_id          TEXT PRIMARY KEY REFERENCES accounts (account_id),
  domains             INTEGER,
  webhooks            INTEGER,
  templates           INTEGER,
  contacts            INTEGER,
  messages_per_hour   INTEGER,
  messages_per_day    INTEGER,
  concurrent_requests INTEGER,
  stored_bytes        INTEGER,
  campaigns           INTEGER,
  subscription_groups INTEGER,
  suppressions        INTEGER
) STRICT, WITHOUT ROWID;

-- Messages accepted in each five minutes of the last day.
CREATE TABLE message_counts (
  account_id TEXT NOT NULL,
  slot       INTEGER NOT NULL,      -- epoch ms at which the five minutes begin
  messages   INTEGER NOT NULL,
  PRIMARY KEY (account_id, slot)
) STRICT, WITHOUT ROWID;

-- Number of contacts of each account, which can be millions.
CREATE TABLE contact_counts (
  account_id TEXT PRIMARY KEY,
  contacts   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE contact_search USING fts5(
  trigrams, content = '', columnsize = 0, detail = none, tokenize = "ascii tokenchars '_'"
);
INSERT INTO contact_search (contact_search, rank) VALUES ('secure-delete', 1);

CREATE TABLE shared_contents (
  shared_id    INTEGER PRIMARY KEY AUTOINCREMENT,
  campaign_seq INTEGER NOT NULL,
  digest       BLOB NOT NULL,      -- of the body, SHA-256
  created_at   INTEGER NOT NULL,
  copies       INTEGER NOT NULL,   -- rows of `contents` that refer to it
  size         INTEGER NOT NULL,   -- bytes of the JSON
  body         ANY NOT NULL,
  account      INTEGER,
  UNIQUE (campaign_seq, digest)
) STRICT;
CREATE INDEX shared_contents_unused ON shared_contents (created_at) WHERE copies = 0;
CREATE TRIGGER shared_contents_bytes_insert AFTER INSERT ON shared_contents WHEN NEW.account IS NOT NULL BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account, 100 + octet_length(NEW.body))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER shared_contents_bytes_delete AFTER DELETE ON shared_contents WHEN OLD.account IS NOT NULL BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + octet_length(OLD.body)) WHERE account_id = OLD.account;
END;

-- Outcomes of messages by hour, for `postrider stats`. Written once per commit (store/messages/hourly-counts).
CREATE TABLE hourly_counts (
  hour         INTEGER NOT NULL,   -- epoch ms at which the hour begins
  -- Numbers (store/rows/id-numbers), as in messages.
  account      ANY NOT NULL,
  provider     TEXT NOT NULL,      -- a mailbox provider, the recipients' domain, or 'other'
  domain       ANY NOT NULL,
  stream_code  INTEGER NOT NULL CHECK (stream_code IN (0, 1)),    -- tx, mk
  outcome_code INTEGER NOT NULL,
  class        TEXT NOT NULL,      -- of a bounce, a deferral or a failure; else empty
  messages     INTEGER NOT NULL,
  PRIMARY KEY (hour, account, provider, domain, stream_code, outcome_code, class)
) STRICT, WITHOUT ROWID;

-- MTA-STS policies of recipient domains (RFC 8461), cached until they expire; at most 20,000 (store/tls/sts-policies).
CREATE TABLE sts_policies (
  domain     TEXT PRIMARY KEY,     -- A-labels
  policy_id  TEXT NOT NULL,        -- of the TXT record for which the policy was fetched
  mode       TEXT NOT NULL CHECK (mode IN ('enforce', 'testing', 'none')),
  mx         TEXT NOT NULL,        -- JSON: patterns
  max_age    INTEGER NOT NULL,     -- seconds
  fetched_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  refresh_at INTEGER NOT NULL,     -- the next fetch in the background
  used_at    INTEGER NOT NULL      -- the day of the last use
) STRICT, WITHOUT ROWID;
CREATE INDEX sts_policies_refresh ON sts_policies (refresh_at);
CREATE INDEX sts_policies_expiry ON sts_policies (expires_at);
CREATE INDEX sts_policies_use ON sts_policies (used_at);

-- TLS sessions with mail servers by day and policy, for reports to their domains (RFC 8460); deleted with the report.
CREATE TABLE tls_sessions (
  seq           INTEGER PRIMARY KEY,
  day           INTEGER NOT NULL,  -- days since 1970-01-01, UTC
  domain        TEXT NOT NULL,     -- the recipients'
  policy_type   TEXT NOT NULL,     -- sts, tlsa, no-policy-found
  policy_domain TEXT NOT NULL,
  policy        TEXT NOT NULL,     -- JSON: what was published
  successful    INTEGER NOT NULL,
  failed        INTEGER NOT NULL,
  UNIQUE (day, domain, policy_type, policy_domain, policy)
) STRICT;

CREATE TABLE tls_session_failures (
  session_seq    INTEGER NOT NULL REFERENCES tls_sessions (seq) ON DELETE CASCADE,
  type           TEXT NOT NULL,
  source_ip      TEXT NOT NULL,
  receiving_host TEXT NOT NULL,
  receiving_ip   TEXT NOT NULL,
  reason         TEXT NOT NULL,
  sessions       INTEGER NOT NULL,
  PRIMARY KEY (session_seq, type, source_ip, receiving_host, receiving_ip, reason)
) STRICT, WITHOUT ROWID;

-- Limits that receivers imposed, which survive a restart. Changed rows are written once per second
-- (delivery/shaping/site-store).
CREATE TABLE site_limits (
  site            TEXT NOT NULL,      -- MX hosts or shaping profile, and egress pool
  account         TEXT NOT NULL,      -- account id; '': the site as a whole
  level           INTEGER NOT NULL,   -- steps below the configured limits; 0: none
  pace            REAL NOT NULL,      -- messages per second at which the first step halved
  paused_until    INTEGER NOT NULL,   -- epoch ms, like all times here; 0: not paused
  since           INTEGER NOT NULL,
  stepped_at      INTEGER NOT NULL,
  suspensions     INTEGER NOT NULL,   -- in a row, because no host could be reached
  suspended_until INTEGER NOT NULL,
  greylist_ms     INTEGER,            -- wait after which greylisted mail was accepted; NULL: not known
  updated_at      INTEGER NOT NULL,
  PRIMARY KEY (site, account)
) STRICT, WITHOUT ROWID;
CREATE INDEX site_limits_by_age ON site_limits (updated_at);

-- Replies that no rule matches, without addresses and numbers (mail/classify/unclassified), and how often they were received.
CREATE TABLE unclassified_replies (
  code     INTEGER NOT NULL,
  enhanced TEXT NOT NULL,             -- '': none
  phase    TEXT NOT NULL,
  text     TEXT NOT NULL,
  host     TEXT NOT NULL,             -- MX host of the last one; '': not known
  replies  INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at  INTEGER NOT NULL,
  PRIMARY KEY (code, enhanced, phase, text)
) STRICT, WITHOUT ROWID;
CREATE INDEX unclassified_replies_by_age ON unclassified_replies (last_at);

-- Use of each source address (an entry of delivery.egress) by mailbox provider and day, for its warm-up. Written once per
-- commit (store/egress/egress-counts).
CREATE TABLE egress_counts (
  day           INTEGER NOT NULL,  -- epoch ms at which the day (UTC) begins
  entry         TEXT NOT NULL,     -- its name
  provider      TEXT NOT NULL,     -- a mailbox provider, or 'other'
  -- Attempts that a server of the provider answered.
  transactional INTEGER NOT NULL,
  marketing     INTEGER NOT NULL,
  -- Results of these attempts; an attempt for a recipient that does not exist is in none of them.
  delivered     INTEGER NOT NULL,
  throttled     INTEGER NOT NULL,
  refused       INTEGER NOT NULL,
  complained    INTEGER NOT NULL,
  PRIMARY KEY (day, entry, provider)
) STRICT, WITHOUT ROWID;

-- Where a warm-up differs from the configured schedule: after a step back, or after a command of the operator.
CREATE TABLE egress_warmup (
  entry      TEXT NOT NULL,
  provider   TEXT NOT NULL,        -- '': all providers
  started    TEXT NOT NULL,        -- the configured start that the row belongs to; others are obsolete
  shift      INTEGER NOT NULL,     -- days behind the schedule; negative: ahead
  finished   INTEGER NOT NULL CHECK (finished IN (0, 1)),
  changed_at INTEGER NOT NULL,
  reason     TEXT NOT NULL,
  PRIMARY KEY (entry, provider)
) STRICT, WITHOUT ROWID;

-- Source addresses that a provider refuses.
CREATE TABLE egress_health (
  entry      TEXT NOT NULL,
  provider   TEXT NOT NULL,
  since      INTEGER NOT NULL,
  probe_at   INTEGER NOT NULL,     -- when the next message is sent from the address
  failures   INTEGER NOT NULL,     -- refusals of probes in a row; the first refusal included
  passed     INTEGER NOT NULL,     -- probes accepted in a row
  reply      TEXT NOT NULL,        -- the last refusal, without mail addresses
  blocked    INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (entry, provider)
) STRICT, WITHOUT ROWID;

-- Orders of the operator about queued mail: pauses, and the rejection of a destination's mail (delivery/control). The
-- absence of a row is the normal state.
CREATE TABLE queue_controls (
  scope      TEXT NOT NULL CHECK (scope IN ('destination', 'site', 'account', 'pool')),
  target     TEXT NOT NULL,
  action     TEXT NOT NULL CHECK (action IN ('pause', 'bounce')),
  reason     TEXT NOT NULL,
  until      INTEGER,            -- epoch ms; null: until it is removed
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,      -- a key id, or the program that the operator used
  PRIMARY KEY (scope, target)
) STRICT, WITHOUT ROWID;

-- Where messages go instead of to the hosts of their destination.
CREATE TABLE queue_reroutes (
  reroute INTEGER PRIMARY KEY,
  host    TEXT,                  -- null: the hosts of the destination
  port    INTEGER,
  tls     TEXT,
  pool    TEXT,                  -- egress pool; null: that of the domain
  CHECK (host IS NOT NULL OR pool IS NOT NULL)
) STRICT;

-- DKIM keys in the platform's zone rotate without a change in the domain's zone: each has a slot, which names its selector
-- and the CNAME of the domain. Keys without a slot are published by the owner of the domain as TXT records.
CREATE TABLE dkim_keys (
  key_id      INTEGER PRIMARY KEY,
  domain_id   TEXT NOT NULL REFERENCES domains (domain_id) ON DELETE CASCADE,
  lane        TEXT NOT NULL CHECK (lane IN ('primary', 'secondary')),
  -- domains/key-slots.ts; null: the TXT record of the domain's owner
  slot        TEXT CHECK (slot IN ('a', 'b', 'e', 'f', 's', 't')),
  selector    TEXT NOT NULL,
  -- active: signs; pending: not yet found in DNS; retiring: signed before the last rotation; revoked: its record is empty
  state       TEXT NOT NULL CHECK (state IN ('active', 'pending', 'retiring', 'revoked')),
  private_key BLOB NOT NULL,       -- PKCS #8 DER, sealed
  public_key  TEXT NOT NULL,       -- SubjectPublicKeyInfo DER, base64
  created_at  INTEGER NOT NULL,
  changed_at  INTEGER NOT NULL,    -- since when it has its state
  UNIQUE (domain_id, selector)
) STRICT;
CREATE TRIGGER dkim_keys_zone_insert AFTER INSERT ON dkim_keys WHEN NEW.slot IS NOT NULL BEGIN
  UPDATE zone_changes SET changes = changes + 1 WHERE id = 1;
END;
CREATE TRIGGER dkim_keys_zone_update AFTER UPDATE OF state, public_key ON dkim_keys WHEN NEW.slot IS NOT NULL BEGIN
  UPDATE zone_changes SET changes = changes + 1 WHERE id = 1;
END;
CREATE TRIGGER dkim_keys_zone_delete AFTER DELETE ON dkim_keys WHEN OLD.slot IS NOT NULL BEGIN
  UPDATE zone_changes SET changes = changes + 1 WHERE id = 1;
END;

-- Keys of the platform's own signature.
CREATE TABLE platform_keys (
  key_id      INTEGER PRIMARY KEY,
  selector    TEXT NOT NULL UNIQUE,
  state       TEXT NOT NULL CHECK (state IN ('active', 'pending', 'retiring', 'revoked')),
  private_key BLOB NOT NULL,       -- PKCS #8 DER, sealed
  public_key  TEXT NOT NULL,       -- SubjectPublicKeyInfo DER, base64
  created_at  INTEGER NOT NULL,
  changed_at  INTEGER NOT NULL
) STRICT;
CREATE TRIGGER platform_keys_zone_insert AFTER INSERT ON platform_keys BEGIN
  UPDATE zone_changes SET changes = changes + 1 WHERE id = 1;
END;
CREATE TRIGGER platform_keys_zone_update AFTER UPDATE OF state ON platform_keys BEGIN
  UPDATE zone_changes SET changes = changes + 1 WHERE id = 1;
END;
CREATE TRIGGER platform_keys_zone_delete AFTER DELETE ON platform_keys BEGIN
  UPDATE zone_changes SET changes = changes + 1 WHERE id = 1;
END;

-- Counts the changes of keys in the platform's zone, for its serial number.
CREATE TABLE zone_changes (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  changes INTEGER NOT NULL
) STRICT;
INSERT INTO zone_changes (id, changes) VALUES (1, 0);

-- Keys for the tokens of accounts that came from another installation (mail/tokens).
CREATE TABLE token_keys (
  tag        TEXT PRIMARY KEY,     -- 10 hexadecimal digits, derived from the account's id
  account_id TEXT NOT NULL UNIQUE REFERENCES accounts (account_id),
  key        BLOB NOT NULL         -- 32 bytes, sealed
) STRICT, WITHOUT ROWID;

-- Messages that the installation from which an account came has sent: bounces and complaints about them arrive here.
CREATE TABLE moved_messages (
  message_key        ANY PRIMARY KEY,              -- as in messages
  account            ANY NOT NULL,
  recipient_key      ANY NOT NULL,
  use_case_code      INTEGER NOT NULL CHECK (use_case_code IN (0, 1)),
  campaign           ANY,
  subscription_group ANY,
  created_at         INTEGER NOT NULL,
  bounced            INTEGER NOT NULL DEFAULT 0 CHECK (bounced IN (0, 1)),
  complained         INTEGER NOT NULL DEFAULT 0 CHECK (complained IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE INDEX moved_messages_by_time ON moved_messages (created_at);
CREATE INDEX moved_messages_by_account ON moved_messages (account);

-- Imports of accounts that are not complete.
CREATE TABLE account_imports (
  account_id TEXT PRIMARY KEY REFERENCES accounts (account_id),
  digest     TEXT NOT NULL,        -- of the file, hexadecimal SHA-256
  records    INTEGER NOT NULL,     -- that are imported
  started_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Operators and members of accounts.
CREATE TABLE people (
  person_id     TEXT PRIMARY KEY,
  email         TEXT NOT NULL,
  email_key     TEXT NOT NULL UNIQUE,  -- in lower case
  name          TEXT NOT NULL,
  operator      INTEGER NOT NULL CHECK (operator IN (0, 1)),
  operator_by_group INTEGER NOT NULL CHECK (operator_by_group IN (0, 1)),  -- operator because of a group of the OIDC provider
  status        TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
  language      TEXT,
  password      TEXT,                  -- scrypt with its parameters
  totp          BLOB,                  -- the secret, sealed
  totp_used     INTEGER NOT NULL DEFAULT 0,  -- the newest time step whose code was accepted
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  signed_in_at  INTEGER,
  shortcuts     INTEGER NOT NULL DEFAULT 1 CHECK (shortcuts IN (0, 1)),
  failure_mail  INTEGER NOT NULL DEFAULT 1 CHECK (failure_mail IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE TABLE memberships (
  person_id  TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  account_id TEXT NOT NULL REFERENCES accounts (account_id) ON DELETE CASCADE,
  role       TEXT NOT NULL CHECK (role IN ('owner', 'author', 'sender', 'developer', 'viewer')),
  -- 'group': assigned by a group of the OIDC provider, and removed with it.
  source     TEXT NOT NULL CHECK (source IN ('invitation', 'group')),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (person_id, account_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships_by_account ON memberships (account_id);

-- Links that sign a person in once.
CREATE TABLE sign_in_links (
  link_hash  BLOB PRIMARY KEY,         -- SHA-256 of the token
  person_id  TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  purpose    TEXT NOT NULL CHECK (purpose IN ('sign-in', 'invitation', 'recovery')),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_links_by_person ON sign_in_links (person_id);
CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);

CREATE TABLE console_sessions (
  session_hash     BLOB PRIMARY KEY,   -- SHA-256 of the cookie's value
  session_id       TEXT NOT NULL UNIQUE,
  person_id        TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  method           TEXT NOT NULL CHECK (method IN ('link', 'password', 'passkey', 'oidc')),
  user_agent       TEXT NOT NULL,
  remote_address   TEXT NOT NULL,
  created_at       INTEGER NOT NULL,
  authenticated_at INTEGER NOT NULL,   -- when the person last proved who they are
  seen_at          INTEGER NOT NULL,
  expires_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX console_sessions_by_person ON console_sessions (person_id, created_at);
CREATE INDEX console_sessions_by_expiry ON console_sessions (expires_at);

CREATE TABLE passkeys (
  credential_id TEXT PRIMARY KEY,      -- base64url
  person_id     TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  name          TEXT NOT NULL,
  public_key    BLOB NOT NULL,
  counter       INTEGER NOT NULL,
  transports    TEXT NOT NULL,         -- JSON array
  created_at    INTEGER NOT NULL,
  used_at       INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX passkeys_by_person ON passkeys (person_id);

-- People at an OIDC provider.
CREATE TABLE external_identities (
  issuer    TEXT NOT NULL,
  subject   TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX external_identities_by_person ON external_identities (person_id);

-- Who did what with the console. A record remains when its person or account is deleted.
CREATE TABLE audit_records (
  seq            INTEGER PRIMARY KEY,
  recorded_at    INTEGER NOT NULL,
  person_id      TEXT,                 -- NULL: nobody was signed in
  person_email   TEXT NOT NULL,
  account_id     TEXT,                 -- NULL: the installation
  operation      TEXT NOT NULL,
  target         TEXT NOT NULL,        -- JSON object: ids in the path
  outcome        TEXT NOT NULL CHECK (outcome IN ('done', 'denied', 'refused', 'failed')),
  detail         TEXT NOT NULL,
  remote_address TEXT NOT NULL
) STRICT;
CREATE INDEX audit_records_by_account ON audit_records (account_id, seq);
CREATE INDEX audit_records_by_person ON audit_records (person_id, seq);

-- When each API key was last used. Not a column of api_keys: writes to that table empty the cache of all keys.
CREATE TABLE api_key_uses (
  key_id  TEXT PRIMARY KEY REFERENCES api_keys (key_id) ON DELETE CASCADE,
  used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which received mails an operator has read. Not a column of kept_mail: it would be behind the mail itself, which SQLite
-- would have to read with it.
CREATE TABLE kept_mail_reads (
  mail_seq INTEGER PRIMARY KEY REFERENCES kept_mail (seq) ON DELETE CASCADE,
  read_at  INTEGER NOT NULL
) STRICT;

-- What templates were before their last changes.
CREATE TABLE template_versions (
  seq          INTEGER PRIMARY KEY,
  template_seq INTEGER NOT NULL REFERENCES templates (seq) ON DELETE CASCADE,
  version      INTEGER NOT NULL,          -- from 1
  name         TEXT NOT NULL,
  type         TEXT,
  subject      TEXT,
  html         TEXT NOT NULL,
  text         TEXT,
  saved_at     INTEGER NOT NULL,          -- when it became the content of the template
  UNIQUE (template_seq, version)
) STRICT;
CREATE TRIGGER template_versions_bytes_insert AFTER INSERT ON template_versions BEGIN
  INSERT INTO stored_bytes VALUES ((SELECT account_id FROM templates WHERE seq = NEW.template_seq), 100 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.subject), 0) + coalesce(octet_length(NEW.html), 0) + coalesce(octet_length(NEW.text), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER template_versions_bytes_update AFTER UPDATE OF name, subject, html, text ON template_versions BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.subject), 0) + coalesce(octet_length(OLD.html), 0) + coalesce(octet_length(OLD.text), 0) - (100 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.subject), 0) + coalesce(octet_length(NEW.html), 0) + coalesce(octet_length(NEW.text), 0))) WHERE account_id = (SELECT account_id FROM templates WHERE seq = NEW.template_seq);
END;
CREATE TRIGGER template_versions_bytes_delete AFTER DELETE ON template_versions BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.subject), 0) + coalesce(octet_length(OLD.html), 0) + coalesce(octet_length(OLD.text), 0)) WHERE account_id = (SELECT account_id FROM templates WHERE seq = OLD.template_seq);
END;

-- What the last check of a domain found for each of its records. Not a column of domains: every message reads that row.
CREATE TABLE domain_checks (
  domain_id TEXT PRIMARY KEY REFERENCES domains (domain_id) ON DELETE CASCADE,
  results   TEXT NOT NULL       -- JSON (domains/verification/record-results.ts)
) STRICT;

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

-- Imports of contacts that the daemon runs after the upload; each file is in the directory `imports` until its import ends.
CREATE TABLE background_imports (
  import_id     TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL REFERENCES accounts (account_id),
  group_id      TEXT,                       -- subscription_group_id of every row
  file_name     TEXT,                       -- as the caller named it
  format        TEXT NOT NULL CHECK (format IN ('csv', 'ndjson')),
  columns       TEXT,                       -- JSON: fields by the names of columns
  actor         TEXT NOT NULL,              -- JSON, for the consent history
  bytes         INTEGER NOT NULL,           -- length of the file
  at_byte       INTEGER NOT NULL DEFAULT 0, -- the first byte that is not yet imported, and the lines before it
  at_line       INTEGER NOT NULL DEFAULT 0,
  counts        TEXT NOT NULL,              -- JSON
  rejected_rows TEXT NOT NULL DEFAULT '[]', -- JSON: the first 100
  ignored       TEXT NOT NULL DEFAULT '[]', -- JSON: columns without a field
  status        TEXT NOT NULL CHECK (status IN ('waiting', 'running', 'completed', 'failed', 'cancelled')),
  reason        TEXT,                       -- why it failed
  created_at    INTEGER NOT NULL,
  started_at    INTEGER,
  finished_at   INTEGER
) STRICT;
CREATE INDEX background_imports_of_account ON background_imports (account_id, import_id);
CREATE INDEX background_imports_unfinished ON background_imports (account_id, import_id) WHERE finished_at IS NULL;

-- Suppressions that the account removed, and why: evidence for those who ask later why an address was written to again.
CREATE TABLE suppression_removals (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id     TEXT NOT NULL,
  recipient_hash TEXT NOT NULL,
  stream         TEXT NOT NULL,
  reason         TEXT NOT NULL,
  suppressed_at  INTEGER NOT NULL,
  note           TEXT,               -- null: none was given, or the person was erased
  removed_by     TEXT NOT NULL,      -- an API key, a person of the console, or 'command line'
  removed_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX suppression_removals_of_recipient ON suppression_removals (account_id, recipient_hash, seq);

-- Sign-up links that confirm nothing any more: those of a recipient whose form was sent until `until`, because a link was
-- used, or because the person was erased.
CREATE TABLE closed_sign_ups (
  account_id            TEXT NOT NULL,
  recipient_hash        TEXT NOT NULL,
  subscription_group_id TEXT NOT NULL, -- '': links of all groups, after an erasure
  until                 INTEGER NOT NULL,
  expires_at            INTEGER NOT NULL, -- no such link is valid any more
  PRIMARY KEY (account_id, recipient_hash, subscription_group_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX closed_sign_ups_by_expiry ON closed_sign_ups (expires_at);

-- Bytes that an account stores, for its limit: texts, and a number for the rest of a row and its indexes. Triggers count them, so that
-- every statement and every program counts.
CREATE TABLE stored_bytes (
  account_id ANY PRIMARY KEY,      -- the id: what the account manages; its number (account_numbers): contents of its messages
  bytes      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Suppressions of each account, which can be millions.
CREATE TABLE suppression_counts (
  account_id   TEXT PRIMARY KEY,
  suppressions INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The filters of lists in the console that people saved under a name.
CREATE TABLE saved_views (
  view_id    TEXT PRIMARY KEY,
  person_id  TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  account_id TEXT REFERENCES accounts (account_id) ON DELETE CASCADE,  -- NULL: of a list about the installation
  page       TEXT NOT NULL,            -- the list
  name       TEXT NOT NULL,
  query      TEXT NOT NULL,            -- JSON: the filters, as parameters of its address
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX saved_views_by_person ON saved_views (person_id, view_id);
CREATE INDEX saved_views_by_account ON saved_views (account_id) WHERE account_id IS NOT NULL;

-- What a person has seen of what needs attention.
CREATE TABLE attention_seen (
  person_id  TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  account_id TEXT NOT NULL,            -- '': the installation
  seen       TEXT NOT NULL,            -- JSON array
  PRIMARY KEY (person_id, account_id)
) STRICT, WITHOUT ROWID;

-- Failures of which the owners of an account were notified.
CREATE TABLE failure_notices (
  account_id TEXT NOT NULL REFERENCES accounts (account_id) ON DELETE CASCADE,
  kind       TEXT NOT NULL CHECK (kind IN ('domain', 'webhook')),
  cause_id   TEXT NOT NULL,            -- of the domain or webhook
  state      TEXT NOT NULL CHECK (state IN ('failing', 'well')),
  noticed_at INTEGER NOT NULL,         -- of the notice about the failure
  PRIMARY KEY (account_id, kind, cause_id)
) STRICT, WITHOUT ROWID;

-- Mail about them that was not accepted yet.
CREATE TABLE notice_mails (
  mail_id    TEXT PRIMARY KEY,
  person_id  TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  subject    TEXT NOT NULL,
  text       TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('waiting', 'sending')),
  attempts   INTEGER NOT NULL,
  due_at     INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX notice_mails_by_person ON notice_mails (person_id);
CREATE INDEX notice_mails_by_time ON notice_mails (state, due_at);
