-- A content's body may be a BLOB: the JSON in UTF-8 as raw deflate. Rows from before stay JSON until they are purged.
-- The type of the column is replaced in the schema text, which does not touch the rows
-- (https://sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes").
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(
  sql,
  'body       TEXT NOT NULL,',
  'body       ANY NOT NULL,     -- mail/stored-content.ts'
) WHERE type = 'table' AND name = 'contents';
PRAGMA writable_schema = RESET;

-- Octets of the JSON; null: octet_length(body).
ALTER TABLE contents ADD COLUMN size INTEGER;

-- Not null: the content is one copy's part, the rest is in `shared_contents`, and `size` is that of both together.
ALTER TABLE contents ADD COLUMN shared_id INTEGER;

-- What all copies of a campaign have in common (mail/shared-content.ts); the body as in `contents`. AUTOINCREMENT: the
-- number of a purged row never comes again, so that rows can be cached by it.
CREATE TABLE shared_contents (
  shared_id    INTEGER PRIMARY KEY AUTOINCREMENT,
  campaign_seq INTEGER NOT NULL,
  digest       BLOB NOT NULL,      -- of the body, SHA-256
  created_at   INTEGER NOT NULL,
  copies       INTEGER NOT NULL,   -- rows of `contents` that refer to it
  size         INTEGER NOT NULL,   -- octets of the JSON
  body         ANY NOT NULL,
  UNIQUE (campaign_seq, digest)
) STRICT;
CREATE INDEX shared_contents_unused ON shared_contents (created_at) WHERE copies = 0;

-- Counted rather than looked for: an index of `contents` would make the migration read the whole table. Copies are
-- added by the statement that follows their insertion.
CREATE TRIGGER contents_deleted AFTER DELETE ON contents WHEN OLD.shared_id IS NOT NULL BEGIN
  UPDATE shared_contents SET copies = copies - 1 WHERE shared_id = OLD.shared_id;
END;
