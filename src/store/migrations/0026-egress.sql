-- Use of each source address (an entry of delivery.egress) by mailbox provider and day, for its warm-up. Written once per
-- commit (store/egress/egress-counts).
CREATE TABLE egress_counts (
  day           INTEGER NOT NULL,  -- epoch ms at which the day (UTC) begins
  entry         TEXT NOT NULL,     -- its name
  provider      TEXT NOT NULL,     -- a mailbox provider, or 'other'
  -- Attempts that a server of the provider answered.
  transactional INTEGER NOT NULL,
  marketing     INTEGER NOT NULL,
  -- Results of these attempts; an attempt for a recipient that does not exist is in none of them.
  delivered     INTEGER NOT NULL,
  throttled     INTEGER NOT NULL,
  refused       INTEGER NOT NULL,
  complained    INTEGER NOT NULL,
  PRIMARY KEY (day, entry, provider)
) STRICT, WITHOUT ROWID;

-- Where a warm-up differs from the configured schedule: after a step back, or after a command of the operator.
CREATE TABLE egress_warmup (
  entry      TEXT NOT NULL,
  provider   TEXT NOT NULL,        -- '': all providers
  started    TEXT NOT NULL,        -- the configured start that the row belongs to; others are obsolete
  shift      INTEGER NOT NULL,     -- days behind the schedule; negative: ahead
  finished   INTEGER NOT NULL CHECK (finished IN (0, 1)),
  changed_at INTEGER NOT NULL,
  reason     TEXT NOT NULL,
  PRIMARY KEY (entry, provider)
) STRICT, WITHOUT ROWID;

-- Source addresses that a provider refuses.
CREATE TABLE egress_health (
  entry      TEXT NOT NULL,
  provider   TEXT NOT NULL,
  since      INTEGER NOT NULL,
  probe_at   INTEGER NOT NULL,     -- when the next message is sent from the address
  failures   INTEGER NOT NULL,     -- refusals of probes in a row; the first refusal included
  passed     INTEGER NOT NULL,     -- probes accepted in a row
  reply      TEXT NOT NULL,        -- the last refusal, without mail addresses
  PRIMARY KEY (entry, provider)
) STRICT, WITHOUT ROWID;
