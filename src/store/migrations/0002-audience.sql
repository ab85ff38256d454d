-- Contacts of accounts, their consent, and their subscription groups.

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
  CHECK (email IS NOT NULL OR phone IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX contacts_by_email ON contacts (account_id, email_hash) WHERE email_hash IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_phone ON contacts (account_id, phone_hash) WHERE phone_hash IS NOT NULL;
CREATE INDEX contacts_by_account ON contacts (account_id);
CREATE INDEX contacts_by_status ON contacts (account_id, global_status);
CREATE INDEX contacts_by_email_key ON contacts (account_id, email_key) WHERE email_key IS NOT NULL;
CREATE INDEX contacts_by_name_key ON contacts (account_id, name_key) WHERE name_key IS NOT NULL;
CREATE INDEX contacts_by_last_name_key ON contacts (account_id, last_name_key) WHERE last_name_key IS NOT NULL;

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
  said_at     INTEGER NOT NULL,    -- when the person consented or withdrew, according to the caller
  recorded_at INTEGER NOT NULL,
  recorded_by TEXT NOT NULL,       -- an API key's id, import, or recipient
  PRIMARY KEY (contact_seq, n)
) STRICT, WITHOUT ROWID;

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
  updated_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX subscription_groups_by_account ON subscription_groups (account_id) WHERE deleted_at IS NULL;

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
-- Events about a person without a message: refused sends and opt-outs.
CREATE INDEX events_by_person ON events (account_id, data ->> '$.contactIdentifier') WHERE message_seq IS NULL;
