-- The text that migration 0035 replaces does not occur in the schema, so that these constraints stayed lists.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (role_code IN (0, 1, 2))', 'CHECK (role_code BETWEEN 0 AND 2)')
WHERE type = 'table' AND name = 'messages';
UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (lane_code IN (0, 1, 2))', 'CHECK (lane_code BETWEEN 0 AND 2)')
WHERE type = 'table' AND name = 'attempts';
PRAGMA writable_schema = RESET;
