-- Sign-up links that confirm nothing any more: those of a recipient whose form was sent until `until`, because a link was
-- used, or because the person was erased.
CREATE TABLE closed_sign_ups (
  account_id            TEXT NOT NULL,
  recipient_hash        TEXT NOT NULL,
  subscription_group_id TEXT NOT NULL, -- '': links of all groups, after an erasure
  until                 INTEGER NOT NULL,
  expires_at            INTEGER NOT NULL, -- no such link is valid any more
  PRIMARY KEY (account_id, recipient_hash, subscription_group_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX closed_sign_ups_by_expiry ON closed_sign_ups (expires_at);
