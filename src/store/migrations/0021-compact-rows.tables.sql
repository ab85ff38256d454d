-- The whole schema, for new databases and for those that are rebuilt (0021-compact-rows.ts).

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

CREATE TABLE contents (
  content_id INTEGER PRIMARY KEY,
  -- Columns before the body, which can be megabytes long.
  created_at INTEGER NOT NULL,
  size       INTEGER,              -- bytes of the JSON; null: octet_length(body)
  -- Not null: the content is the part of one copy, the rest is in shared_contents, and size is that of both parts.
  shared_id  INTEGER,
  body       ANY NOT NULL          -- mail/stored-content.ts
) STRICT;

CREATE TABLE messages (
  seq                INTEGER PRIMARY KEY AUTOINCREMENT,
  -- Keys are bytes (store/rows/row-keys), or text without the usual shape.
  message_key        ANY NOT NULL UNIQUE,
  -- Numbers (store/rows/id-numbers), or the id of a resource that was deleted before numbers existed.
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
  role_code          INTEGER NOT NULL CHECK (role_code IN (0, 1, 2)),             -- to, cc, bcc
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

CREATE TABLE queue (
  seq          INTEGER PRIMARY KEY REFERENCES messages (seq),
  lane         INTEGER NOT NULL CHECK (lane IN (0, 1)),                            -- transactional, marketing
  account      ANY NOT NULL,
  domain       ANY NOT NULL,
  destination  TEXT NOT NULL,                                                      -- the recipient's domain
  due_at       INTEGER NOT NULL,
  ready        INTEGER NOT NULL CHECK (ready IN (0, 1)),                           -- due_at is in the past
  lease        INTEGER,
  campaign_seq INTEGER
) STRICT;

CREATE TABLE attempts (
  message_seq INTEGER NOT NULL REFERENCES messages (seq),
  attempt     INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  lane_code   INTEGER NOT NULL CHECK (lane_code IN (0, 1, 2)),                     -- primary, secondary, simulator
  report      BLOB NOT NULL,                                                       -- packed JSON (store/rows/packed-json)
  PRIMARY KEY (message_seq, attempt)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE strikes (
  account_id     TEXT NOT NULL,
  recipient_hash TEXT NOT NULL,
  kind           TEXT NOT NULL CHECK (kind IN ('soft', 'unproven')),
  at             INTEGER NOT NULL,
  PRIMARY KEY (account_id, recipient_hash, kind, at)
) STRICT, WITHOUT ROWID;

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
  search_text TEXT,
  CHECK (email IS NOT NULL OR phone IS NOT NULL)
) STRICT;

CREATE TABLE consents (
  contact_seq INTEGER NOT NULL REFERENCES contacts (seq),
  n           INTEGER NOT NULL,
  action      TEXT NOT NULL CHECK (action IN ('given', 'withdrawn', 'left_group', 'returned_to_group')),
  subscription_group_id TEXT,
  method      TEXT,                -- how it was given, or where a group was left: one_click, page, mailto, api
  details     TEXT,
  ip_address  TEXT,
  user_agent  TEXT,
  said_at     INTEGER,    -- when the person consented or withdrew, according to the caller
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

CREATE TABLE group_opt_outs (
  group_seq      INTEGER NOT NULL REFERENCES subscription_groups (seq),
  recipient_hash TEXT NOT NULL,    -- email_<md5> or phone_<md5>
  method         TEXT NOT NULL,    -- one_click, page, mailto, api
  created_at     INTEGER NOT NULL,
  PRIMARY KEY (group_seq, recipient_hash)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE erasures (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id  TEXT NOT NULL,
  person      TEXT NOT NULL,       -- JSON: the values to search for
  before_message INTEGER NOT NULL, -- messages and events from these numbers on are not erased
  before_event   INTEGER NOT NULL,
  at_message  INTEGER NOT NULL,    -- the last message that was cleared
  created_at  INTEGER NOT NULL
) STRICT;

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

CREATE TABLE webhook_secrets (
  secret_id  INTEGER PRIMARY KEY,
  webhook    INTEGER NOT NULL REFERENCES webhooks (number) ON DELETE CASCADE,
  secret     BLOB NOT NULL,        -- 32 bytes, sealed
  expires_at INTEGER               -- null: the current one
) STRICT;

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
  cancelled INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (campaign_id, hour)
) STRICT, WITHOUT ROWID;

CREATE TABLE campaign_links (
  campaign_id TEXT NOT NULL REFERENCES campaigns (campaign_id) ON DELETE CASCADE,
  url         TEXT NOT NULL,
  clicks      INTEGER NOT NULL,
  UNIQUE (campaign_id, url)
) STRICT;

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

CREATE TABLE delay_notices (
  message_seq INTEGER NOT NULL,
  fingerprint BLOB NOT NULL,
  at          INTEGER NOT NULL,
  PRIMARY KEY (message_seq, fingerprint)
) STRICT, WITHOUT ROWID;

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
  network TEXT NOT NULL DEFAULT '',
  signer TEXT NOT NULL DEFAULT '',
  UNIQUE (domain, organization, report_id)
) STRICT;

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
  network TEXT NOT NULL DEFAULT '',
  signer TEXT NOT NULL DEFAULT '',
  UNIQUE (host, organization, report_id, policy_type)
) STRICT;

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

CREATE TABLE campaign_mails (
  campaign_seq INTEGER PRIMARY KEY REFERENCES campaigns (seq) ON DELETE CASCADE,
  mail         TEXT NOT NULL       -- JSON: from, reply address, wording and variables
) STRICT;

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

CREATE TABLE account_limits (       -- NULL: the default of the configuration; -1: unlimited
  account_id          TEXT PRIMARY KEY REFERENCES accounts (account_id),
  domains             INTEGER,
  webhooks            INTEGER,
  templates           INTEGER,
  contacts            INTEGER,
  messages_per_hour   INTEGER,
  messages_per_day    INTEGER,
  concurrent_requests INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE message_counts (
  account_id TEXT NOT NULL,
  slot       INTEGER NOT NULL,      -- epoch ms at which the five minutes begin
  messages   INTEGER NOT NULL,
  PRIMARY KEY (account_id, slot)
) STRICT, WITHOUT ROWID;

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
  UNIQUE (campaign_seq, digest)
) STRICT;
