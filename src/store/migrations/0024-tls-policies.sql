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
