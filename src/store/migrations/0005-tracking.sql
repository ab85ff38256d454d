-- Opens, clicks and the hosts that links name.

-- What was done with a message already, as bits: opened by a person 1, by a machine 2, clicked by a person 4,
-- by a machine 8. So that the first time can be told from the next.
ALTER TABLE messages ADD COLUMN visits INTEGER NOT NULL DEFAULT 0;

-- Whose link host is it? Asked by proxies before they get a certificate.
CREATE INDEX domains_by_tracking_domain ON domains (tracking_domain) WHERE tracking_domain IS NOT NULL;
