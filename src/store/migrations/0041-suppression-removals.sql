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
