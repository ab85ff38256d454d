-- Which received mails an operator has read. Not a column of kept_mail: it would be behind the mail itself, which SQLite
-- would have to read with it.
CREATE TABLE kept_mail_reads (
  mail_seq INTEGER PRIMARY KEY REFERENCES kept_mail (seq) ON DELETE CASCADE,
  read_at  INTEGER NOT NULL
) STRICT;
