-- A CHECK with a list of three or more values fills a temporary table at each insert. The constraints are replaced in the schema
-- text, which does not touch the rows (https://sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes").
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (role_code IN (0, 1, 2))   ', 'CHECK (role_code BETWEEN 0 AND 2)')
WHERE type = 'table' AND name = 'messages';
UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (lane_code IN (0, 1, 2))   ', 'CHECK (lane_code BETWEEN 0 AND 2)')
WHERE type = 'table' AND name = 'attempts';
PRAGMA writable_schema = RESET;
