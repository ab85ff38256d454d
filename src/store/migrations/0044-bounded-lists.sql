-- A page of the domain groups of an account is read in the order of the list.
DROP INDEX domain_groups_by_account;
CREATE INDEX domain_groups_by_account ON domain_groups (account_id, created_at, group_id);
-- Revoked keys are deleted after a time.
CREATE INDEX api_keys_by_revocation ON api_keys (revoked_at) WHERE revoked_at IS NOT NULL;
