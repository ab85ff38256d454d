-- Origin of incoming mail, so that a flood from one network or in one organization's name displaces only itself.

ALTER TABLE kept_mail ADD COLUMN network TEXT NOT NULL DEFAULT '';
-- In the form of callerNetwork; for an IPv6 address, which SQL cannot shorten, the address.
UPDATE kept_mail SET network = iif(
  remote_address LIKE '%.%.%.%' AND remote_address NOT LIKE '%:%',
  rtrim(remote_address, '0123456789') || '0/24',
  remote_address
);
CREATE INDEX kept_mail_by_network ON kept_mail (box, network, seq);

ALTER TABLE dmarc_reports ADD COLUMN network TEXT NOT NULL DEFAULT '';
ALTER TABLE dmarc_reports ADD COLUMN signer TEXT NOT NULL DEFAULT '';  -- organization whose DKIM signature verified, '' for none
-- Not recorded before: each organization counts as one network.
UPDATE dmarc_reports SET network = 'of ' || organization;
CREATE INDEX dmarc_reports_by_network ON dmarc_reports (domain, network);
CREATE INDEX dmarc_reports_by_signer ON dmarc_reports (domain, signer);

ALTER TABLE tls_reports ADD COLUMN network TEXT NOT NULL DEFAULT '';
ALTER TABLE tls_reports ADD COLUMN signer TEXT NOT NULL DEFAULT '';
UPDATE tls_reports SET network = 'of ' || organization;
CREATE INDEX tls_reports_by_network ON tls_reports (host, network);
CREATE INDEX tls_reports_by_signer ON tls_reports (host, signer);
