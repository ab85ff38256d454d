-- Limits that receivers imposed, which survive a restart. Changed rows are written once per second
-- (delivery/shaping/site-store).
CREATE TABLE site_limits (
  site            TEXT NOT NULL,      -- MX hosts or shaping profile, and egress pool
  account         TEXT NOT NULL,      -- account id; '': the site as a whole
  level           INTEGER NOT NULL,   -- steps below the configured limits; 0: none
  pace            REAL NOT NULL,      -- messages per second at which the first step halved
  paused_until    INTEGER NOT NULL,   -- epoch ms, like all times here; 0: not paused
  since           INTEGER NOT NULL,
  stepped_at      INTEGER NOT NULL,
  suspensions     INTEGER NOT NULL,   -- in a row, because no host could be reached
  suspended_until INTEGER NOT NULL,
  greylist_ms     INTEGER,            -- wait after which greylisted mail was accepted; NULL: not known
  updated_at      INTEGER NOT NULL,
  PRIMARY KEY (site, account)
) STRICT, WITHOUT ROWID;
CREATE INDEX site_limits_by_age ON site_limits (updated_at);

-- Replies that no rule matches, without addresses and numbers (mail/classify/unclassified), and how often they were received.
CREATE TABLE unclassified_replies (
  code     INTEGER NOT NULL,
  enhanced TEXT NOT NULL,             -- '': none
  phase    TEXT NOT NULL,
  text     TEXT NOT NULL,
  host     TEXT NOT NULL,             -- MX host of the last one; '': not known
  replies  INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at  INTEGER NOT NULL,
  PRIMARY KEY (code, enhanced, phase, text)
) STRICT, WITHOUT ROWID;
CREATE INDEX unclassified_replies_by_age ON unclassified_replies (last_at);
