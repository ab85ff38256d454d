-- The filters of lists in the console that people saved under a name.
CREATE TABLE saved_views (
  view_id    TEXT PRIMARY KEY,
  person_id  TEXT NOT NULL REFERENCES people (person_id) ON DELETE CASCADE,
  account_id TEXT REFERENCES accounts (account_id) ON DELETE CASCADE,  -- NULL: of a list about the installation
  page       TEXT NOT NULL,            -- the list
  name       TEXT NOT NULL,
  query      TEXT NOT NULL,            -- JSON: the filters, as parameters of its address
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX saved_views_by_person ON saved_views (person_id, view_id);
CREATE INDEX saved_views_by_account ON saved_views (account_id) WHERE account_id IS NOT NULL;
