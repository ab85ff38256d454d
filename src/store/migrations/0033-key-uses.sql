-- When each API key was last used. Not a column of api_keys: writes to that table empty the cache of all keys.
CREATE TABLE api_key_uses (
  key_id  TEXT PRIMARY KEY REFERENCES api_keys (key_id) ON DELETE CASCADE,
  used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Accounts and keys are listed page by page, oldest first.
CREATE INDEX accounts_by_creation ON accounts (created_at, account_id);
DROP INDEX api_keys_by_account;
CREATE INDEX api_keys_by_account ON api_keys (account_id, created_at, key_id);
