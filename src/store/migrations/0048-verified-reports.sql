-- Whether the DKIM signature of a report belongs to the organization that it names. Of stored reports only those are known to be
-- verified whose organization is a name of the signer.
ALTER TABLE dmarc_reports ADD COLUMN verified INTEGER NOT NULL DEFAULT 0 CHECK (verified IN (0, 1));
ALTER TABLE tls_reports ADD COLUMN verified INTEGER NOT NULL DEFAULT 0 CHECK (verified IN (0, 1));
UPDATE dmarc_reports SET verified = 1
  WHERE signer <> '' AND (lower(organization) = signer OR substr(lower(organization), -length(signer) - 1) = '.' || signer);
UPDATE tls_reports SET verified = 1
  WHERE signer <> '' AND (lower(organization) = signer OR substr(lower(organization), -length(signer) - 1) = '.' || signer);
