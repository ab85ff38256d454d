-- Certificates of the public pages, and the attempts to obtain them.
CREATE TABLE certificates (
  host        TEXT PRIMARY KEY,    -- A-labels
  private_key BLOB,                -- sealed PEM; NULL, as the next two, until there is a certificate
  chain       TEXT,                -- PEM, the host's own certificate first
  not_after   INTEGER,
  due_at      INTEGER NOT NULL,    -- when the next order begins
  tried_at    INTEGER NOT NULL,
  failures    INTEGER NOT NULL,
  last_error  TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX certificates_due ON certificates (due_at) WHERE chain IS NOT NULL;
CREATE INDEX certificates_by_try ON certificates (tried_at);
