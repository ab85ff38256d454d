-- Accounts, domains, messages, the queue and events. Times are epoch ms; booleans 0 or 1.

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
  revoked_at INTEGER
) STRICT;
CREATE INDEX api_keys_by_account ON api_keys (account_id);

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
CREATE INDEX domain_groups_by_account ON domain_groups (account_id);

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

CREATE TABLE dkim_keys (
  key_id      INTEGER PRIMARY KEY,
  domain_id   TEXT NOT NULL REFERENCES domains (domain_id) ON DELETE CASCADE,
  lane        TEXT NOT NULL CHECK (lane IN ('primary', 'secondary')),
  selector    TEXT NOT NULL,
  -- active: signs; pending: not yet found in DNS; retiring: signed before the last rotation
  state       TEXT NOT NULL CHECK (state IN ('active', 'pending', 'retiring')),
  private_key BLOB NOT NULL,       -- PKCS #8 DER, sealed
  public_key  TEXT NOT NULL,       -- SubjectPublicKeyInfo DER, base64
  created_at  INTEGER NOT NULL,
  UNIQUE (domain_id, selector)
) STRICT;

-- The content of a request, one row for all its messages (mail/content.ts as JSON).
CREATE TABLE contents (
  content_id INTEGER PRIMARY KEY,
  body       TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- One row per recipient. AUTOINCREMENT: the number of a deleted row is not assigned again.
CREATE TABLE messages (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  message_id     TEXT NOT NULL UNIQUE,
  account_id     TEXT NOT NULL REFERENCES accounts (account_id),
  content_id     INTEGER NOT NULL,
  use_case       TEXT NOT NULL CHECK (use_case IN ('tx', 'mk')),
  domain_id      TEXT NOT NULL,
  job_id         TEXT,
  campaign_id    TEXT,
  subscription_group_id TEXT,
  from_address   TEXT NOT NULL,
  recipient      TEXT NOT NULL,
  recipient_hash TEXT NOT NULL,    -- email_<md5>
  role           TEXT NOT NULL CHECK (role IN ('to', 'cc', 'bcc')),
  subject        TEXT NOT NULL,
  status         TEXT NOT NULL CHECK (status IN ('queued', 'sending', 'delivered', 'deferred', 'bounced', 'failed', 'complained')),
  attempts       INTEGER NOT NULL DEFAULT 0,
  simulated      INTEGER NOT NULL CHECK (simulated IN (0, 1)),
  track_clicks   INTEGER NOT NULL CHECK (track_clicks IN (0, 1)),
  track_opens    INTEGER NOT NULL CHECK (track_opens IN (0, 1)),
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  expires_at     INTEGER NOT NULL,
  sent_at        INTEGER,          -- email_sent was recorded
  final_at       INTEGER           -- no further delivery attempt
) STRICT;
CREATE INDEX messages_by_account ON messages (account_id, seq);
CREATE INDEX messages_by_recipient ON messages (account_id, recipient_hash, seq);
CREATE INDEX messages_by_content ON messages (content_id);
CREATE INDEX messages_by_job ON messages (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX messages_by_campaign ON messages (campaign_id, seq) WHERE campaign_id IS NOT NULL;

-- Messages to be delivered, one row per message until it is final. A lease is the
-- generation of the daemon that took it; leases of older generations are void.
CREATE TABLE queue (
  seq        INTEGER PRIMARY KEY REFERENCES messages (seq),
  lane       INTEGER NOT NULL CHECK (lane IN (0, 1)),     -- 0 transactional, 1 marketing
  account_id TEXT NOT NULL,
  domain_id  TEXT NOT NULL,
  destination TEXT NOT NULL,                              -- the recipient's domain
  due_at     INTEGER NOT NULL,
  ready      INTEGER NOT NULL CHECK (ready IN (0, 1)),    -- due_at is in the past
  lease      INTEGER
) STRICT;
CREATE INDEX queue_ready ON queue (lane, account_id, destination, seq) WHERE ready = 1 AND lease IS NULL;
CREATE INDEX queue_due ON queue (due_at) WHERE ready = 0;
CREATE INDEX queue_by_domain ON queue (domain_id);

-- Delivery attempts of messages.
CREATE TABLE attempts (
  message_seq INTEGER NOT NULL REFERENCES messages (seq),
  attempt     INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  lane        TEXT NOT NULL CHECK (lane IN ('primary', 'secondary', 'simulator')),
  report      TEXT NOT NULL,       -- JSON: conclusion, classification, reply, sessions
  PRIMARY KEY (message_seq, attempt)
) STRICT, WITHOUT ROWID;

-- Events in order, append-only: the feed that callers read. Fields of the message are joined.
CREATE TABLE events (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id    TEXT NOT NULL,
  account_id  TEXT NOT NULL,
  kind        TEXT NOT NULL,
  at          INTEGER NOT NULL,
  message_seq INTEGER,
  domain_id   TEXT,
  data        TEXT NOT NULL        -- JSON: the fields of this kind
) STRICT;
CREATE INDEX events_by_account ON events (account_id, seq);
CREATE INDEX events_by_message ON events (message_seq) WHERE message_seq IS NOT NULL;

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

-- Recipients that an account may not send to. The hash remains after the person's erasure.
CREATE TABLE suppressions (
  account_id     TEXT NOT NULL,
  recipient_hash TEXT NOT NULL,
  stream         TEXT NOT NULL CHECK (stream IN ('all', 'tx', 'mk')),
  reason         TEXT NOT NULL CHECK (reason IN ('hard_bounce', 'soft_bounces', 'complaint', 'unsubscribe', 'manual')),
  email          TEXT,
  message_seq    INTEGER,
  created_at     INTEGER NOT NULL,
  PRIMARY KEY (account_id, recipient_hash, stream, reason)
) STRICT, WITHOUT ROWID;

-- Bounces that suppress a recipient only when they are repeated: soft ones, and hard ones that one reply does not prove.
CREATE TABLE strikes (
  account_id     TEXT NOT NULL,
  recipient_hash TEXT NOT NULL,
  kind           TEXT NOT NULL CHECK (kind IN ('soft', 'unproven')),
  at             INTEGER NOT NULL,
  PRIMARY KEY (account_id, recipient_hash, kind, at)
) STRICT, WITHOUT ROWID;
