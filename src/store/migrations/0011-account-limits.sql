-- Limits of single accounts, and the counters that are compared with them.
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
INSERT INTO contact_counts SELECT account_id, count(*) FROM contacts GROUP BY account_id;
CREATE TRIGGER contacts_count_insert AFTER INSERT ON contacts BEGIN
  INSERT INTO contact_counts VALUES (NEW.account_id, 1) ON CONFLICT (account_id) DO UPDATE SET contacts = contacts + 1;
END;
CREATE TRIGGER contacts_count_delete AFTER DELETE ON contacts BEGIN
  UPDATE contact_counts SET contacts = contacts - 1 WHERE account_id = OLD.account_id;
END;
