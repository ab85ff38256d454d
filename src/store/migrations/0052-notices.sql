-- What people of the console are notified of.

ALTER TABLE people ADD COLUMN shortcuts INTEGER NOT NULL DEFAULT 1 CHECK (shortcuts IN (0, 1));       -- keyboard shortcuts of one key
ALTER TABLE people ADD COLUMN failure_mail INTEGER NOT NULL DEFAULT 1 CHECK (failure_mail IN (0, 1)); -- mail about failures of owned accounts

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
