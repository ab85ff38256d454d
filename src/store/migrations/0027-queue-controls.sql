-- Orders of the operator about queued mail: pauses, and the rejection of a destination's mail (delivery/control). The
-- absence of a row is the normal state.
CREATE TABLE queue_controls (
  scope      TEXT NOT NULL CHECK (scope IN ('destination', 'site', 'account', 'pool')),
  target     TEXT NOT NULL,
  action     TEXT NOT NULL CHECK (action IN ('pause', 'bounce')),
  reason     TEXT NOT NULL,
  until      INTEGER,            -- epoch ms; null: until it is removed
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,      -- a key id, or the program that the operator used
  PRIMARY KEY (scope, target)
) STRICT, WITHOUT ROWID;
-- Where messages go instead of to the hosts of their destination.
CREATE TABLE queue_reroutes (
  reroute INTEGER PRIMARY KEY,
  host    TEXT,                  -- null: the hosts of the destination
  port    INTEGER,
  tls     TEXT,
  pool    TEXT,                  -- egress pool; null: that of the domain
  CHECK (host IS NOT NULL OR pool IS NOT NULL)
) STRICT;
-- 1: sent over the secondary lane from now on.
ALTER TABLE queue ADD COLUMN secondary INTEGER NOT NULL DEFAULT 0 CHECK (secondary IN (0, 1));
ALTER TABLE queue ADD COLUMN reroute INTEGER;
CREATE INDEX queue_rerouted ON queue (reroute) WHERE reroute IS NOT NULL;
