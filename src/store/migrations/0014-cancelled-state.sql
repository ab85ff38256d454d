-- A cancelled message has a separate state. The CHECK constraint is replaced in the schema text, which does not
-- touch the rows (https://sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes").
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(
  sql,
  '''bounced'', ''failed'', ''complained'')',
  '''bounced'', ''failed'', ''complained'', ''cancelled'')'
) WHERE type = 'table' AND name = 'messages';
PRAGMA writable_schema = RESET;

ALTER TABLE campaign_counts ADD COLUMN cancelled INTEGER NOT NULL DEFAULT 0;
