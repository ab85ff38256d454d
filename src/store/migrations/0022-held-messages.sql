-- Messages of a disabled account or a failed domain are held: `due_at` is their expiry. They are released when the account
-- is enabled or the domain verified. The index has an entry for each held message only.
ALTER TABLE queue ADD COLUMN held INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1));
CREATE INDEX queue_held ON queue (domain) WHERE held = 1;
