-- Essential mail ignores a transactional opt-out, and API keys may be forbidden to send it. Messages of a strict key must
-- contain the compliance variables: nothing is appended to messages that it submits over SMTP.
ALTER TABLE messages ADD COLUMN essential INTEGER NOT NULL DEFAULT 0 CHECK (essential IN (0, 1));
ALTER TABLE api_keys ADD COLUMN allow_essential INTEGER NOT NULL DEFAULT 1 CHECK (allow_essential IN (0, 1));
ALTER TABLE api_keys ADD COLUMN strict_compliance INTEGER NOT NULL DEFAULT 0 CHECK (strict_compliance IN (0, 1));
