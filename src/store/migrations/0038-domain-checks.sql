-- What the last check of a domain found for each of its records. Not a column of domains: every message reads that row.
CREATE TABLE domain_checks (
  domain_id TEXT PRIMARY KEY REFERENCES domains (domain_id) ON DELETE CASCADE,
  results   TEXT NOT NULL       -- JSON (domains/verification/record-results.ts)
) STRICT;
