-- Mail that only a blocked address can send waits. The rows are now by site instead of by provider: the state of the
-- addresses is learned again.
DELETE FROM egress_health;
ALTER TABLE egress_health ADD COLUMN blocked INTEGER NOT NULL DEFAULT 0;
