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
