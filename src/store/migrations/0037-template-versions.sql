-- What templates were before their last changes.
CREATE TABLE template_versions (
  seq          INTEGER PRIMARY KEY,
  template_seq INTEGER NOT NULL REFERENCES templates (seq) ON DELETE CASCADE,
  version      INTEGER NOT NULL,          -- from 1
  name         TEXT NOT NULL,
  type         TEXT,
  subject      TEXT,
  html         TEXT NOT NULL,
  text         TEXT,
  saved_at     INTEGER NOT NULL,          -- when it became the content of the template
  UNIQUE (template_seq, version)
) STRICT;
