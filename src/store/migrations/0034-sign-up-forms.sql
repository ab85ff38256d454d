-- The sign-up form of a group: a JSON object, null: it has none.
ALTER TABLE subscription_groups ADD COLUMN sign_up TEXT;
