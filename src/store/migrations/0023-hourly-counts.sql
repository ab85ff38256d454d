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
