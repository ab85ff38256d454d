-- The console: people, their roles, credentials and sessions, and the audit log.

-- Operators and members of accounts.
CREATE TABLE people (
  person_id     TEXT PRIMARY KEY,
  email         TEXT NOT NULL,
  email_key     TEXT NOT NULL UNIQUE,  -- in lower case
  name          TEXT NOT NULL,
  operator      INTEGER NOT NULL CHECK (operator IN (0, 1)),
  operator_by_group INTEGER NOT NULL CHECK (operator_by_group IN (0, 1)),  -- operator because of a group of the OIDC provider
  status        TEXT NOT NULL CHECK (status IN ('active', 'disabled')),
  language      TEXT,
  password      TEXT,                  -- scrypt with its parameters
  totp          BLOB,                  -- the secret, sealed
  totp_used     INTEGER NOT NULL DEFAULT 0,  -- the newest time step whose code was accepted
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  signed_in_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE memberships (
  person_id  TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  account_id TEXT NOT NULL REFERENCES accounts (account_id) ON DELETE CASCADE,
  role       TEXT NOT NULL CHECK (role IN ('owner', 'author', 'sender', 'developer', 'viewer')),
  -- 'group': assigned by a group of the OIDC provider, and removed with it.
  source     TEXT NOT NULL CHECK (source IN ('invitation', 'group')),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (person_id, account_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX memberships_by_account ON memberships (account_id);

-- Links that sign a person in once.
CREATE TABLE sign_in_links (
  link_hash  BLOB PRIMARY KEY,         -- SHA-256 of the token
  person_id  TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  purpose    TEXT NOT NULL CHECK (purpose IN ('sign-in', 'invitation', 'recovery')),
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_in_links_by_person ON sign_in_links (person_id);
CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);

CREATE TABLE console_sessions (
  session_hash     BLOB PRIMARY KEY,   -- SHA-256 of the cookie's value
  session_id       TEXT NOT NULL UNIQUE,
  person_id        TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  method           TEXT NOT NULL CHECK (method IN ('link', 'password', 'passkey', 'oidc')),
  user_agent       TEXT NOT NULL,
  remote_address   TEXT NOT NULL,
  created_at       INTEGER NOT NULL,
  authenticated_at INTEGER NOT NULL,   -- when the person last proved who they are
  seen_at          INTEGER NOT NULL,
  expires_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX console_sessions_by_person ON console_sessions (person_id, created_at);
CREATE INDEX console_sessions_by_expiry ON console_sessions (expires_at);

CREATE TABLE passkeys (
  credential_id TEXT PRIMARY KEY,      -- base64url
  person_id     TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  name          TEXT NOT NULL,
  public_key    BLOB NOT NULL,
  counter       INTEGER NOT NULL,
  transports    TEXT NOT NULL,         -- JSON array
  created_at    INTEGER NOT NULL,
  used_at       INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX passkeys_by_person ON passkeys (person_id);

-- People at an OIDC provider.
CREATE TABLE external_identities (
  issuer    TEXT NOT NULL,
  subject   TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;

CREATE INDEX external_identities_by_person ON external_identities (person_id);

-- Who did what with the console. A record remains when its person or account is deleted.
CREATE TABLE audit_records (
  seq            INTEGER PRIMARY KEY,
  recorded_at    INTEGER NOT NULL,
  person_id      TEXT,                 -- NULL: nobody was signed in
  person_email   TEXT NOT NULL,
  account_id     TEXT,                 -- NULL: the installation
  operation      TEXT NOT NULL,
  target         TEXT NOT NULL,        -- JSON object: ids in the path
  outcome        TEXT NOT NULL CHECK (outcome IN ('done', 'denied', 'refused', 'failed')),
  detail         TEXT NOT NULL,
  remote_address TEXT NOT NULL
) STRICT;

CREATE INDEX audit_records_by_account ON audit_records (account_id, seq);
CREATE INDEX audit_records_by_person ON audit_records (person_id, seq);
