-- Incoming mail: stored messages, recorded delay warnings, and reports of other servers.

-- Finds the domain of a return host, for every recipient of incoming mail.
CREATE INDEX domains_by_name ON domains (name);

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
  raw            BLOB NOT NULL     -- its first 256 KiB
) STRICT;
CREATE INDEX kept_mail_by_box ON kept_mail (box, seq);

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
  UNIQUE (domain, organization, report_id)
) STRICT;
CREATE INDEX dmarc_reports_by_end ON dmarc_reports (domain, end_at);
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
  UNIQUE (host, organization, report_id, policy_type)
) STRICT;
CREATE INDEX tls_reports_by_end ON tls_reports (host, end_at);
CREATE TABLE tls_failures (
  report_seq     INTEGER NOT NULL REFERENCES tls_reports (seq) ON DELETE CASCADE,
  type           TEXT NOT NULL,
  receiving_host TEXT NOT NULL,
  reason         TEXT NOT NULL,
  sessions       INTEGER NOT NULL,
  PRIMARY KEY (report_seq, type, receiving_host, reason)
) STRICT, WITHOUT ROWID;
