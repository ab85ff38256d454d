-- Opens, clicks and the hosts that links name.

-- Bits of the visits that a message had: opened by a person 1, by a machine 2, clicked by a person 4, by a machine 8.
-- They distinguish the first visit from later ones.
ALTER TABLE messages ADD COLUMN visits INTEGER NOT NULL DEFAULT 0;

-- Finds the domain of a link host, for proxies that request a certificate.
CREATE INDEX domains_by_tracking_domain ON domains (tracking_domain) WHERE tracking_domain IS NOT NULL;
