-- When a message that a restore holds was due before. Null: it is not held, or was held by an older version.
ALTER TABLE queue ADD COLUMN due_before_hold INTEGER;
