-- Accounts that move between installations.

-- Keys for the tokens of accounts that came from another installation (mail/tokens).
CREATE TABLE token_keys (
  tag        TEXT PRIMARY KEY,     -- 10 hexadecimal digits, derived from the account's id
  account_id TEXT NOT NULL UNIQUE REFERENCES accounts (account_id),
  key        BLOB NOT NULL         -- 32 bytes, sealed
) STRICT, WITHOUT ROWID;

-- Messages that the installation from which an account came has sent: bounces and complaints about them arrive here.
CREATE TABLE moved_messages (
  message_key        ANY PRIMARY KEY,              -- as in messages
  account            ANY NOT NULL,
  recipient_key      ANY NOT NULL,
  use_case_code      INTEGER NOT NULL CHECK (use_case_code IN (0, 1)),
  campaign           ANY,
  subscription_group ANY,
  created_at         INTEGER NOT NULL,
  bounced            INTEGER NOT NULL DEFAULT 0 CHECK (bounced IN (0, 1)),
  complained         INTEGER NOT NULL DEFAULT 0 CHECK (complained IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE INDEX moved_messages_by_time ON moved_messages (created_at);
CREATE INDEX moved_messages_by_account ON moved_messages (account);

-- Imports of accounts that are not complete.
CREATE TABLE account_imports (
  account_id TEXT PRIMARY KEY REFERENCES accounts (account_id),
  digest     TEXT NOT NULL,        -- of the file, hexadecimal SHA-256
  records    INTEGER NOT NULL,     -- that are imported
  started_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
