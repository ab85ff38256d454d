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
