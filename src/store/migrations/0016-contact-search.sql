-- Contacts are found by any part of their address, name, number or identifiers. `search_text` is the indexed text of a
-- contact, folded; null: not yet indexed, the daemon does it in the background. The index contains the trigrams of that
-- text with the account as prefix, so that a search reads no other account's entries; it contains no text, and deleted
-- entries are removed from it (secure-delete, https://sqlite.org/fts5.html).
ALTER TABLE contacts ADD COLUMN search_text TEXT;
CREATE INDEX contacts_not_indexed ON contacts (account_id, seq) WHERE search_text IS NULL;
CREATE VIRTUAL TABLE contact_search USING fts5(
  trigrams, content = '', columnsize = 0, detail = none, tokenize = "ascii tokenchars '_'"
);
INSERT INTO contact_search (contact_search, rank) VALUES ('secure-delete', 1);

-- The time of a consent is evidence: null where it is unknown. The constraint is replaced in the schema text, which
-- does not touch the rows (https://sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes").
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'said_at     INTEGER NOT NULL', 'said_at     INTEGER')
WHERE type = 'table' AND name = 'consents';
PRAGMA writable_schema = RESET;
