-- Contacts are found by any part of their address, name, number or identifiers. `search_text` is what is indexed of a
-- contact, folded; null: not yet indexed, the daemon does it in the background. The index holds the trigrams of that
-- text with the account in front, so that a search reads no other account's entries; it holds no text, and what is
-- deleted leaves it (secure-delete, https://sqlite.org/fts5.html).
ALTER TABLE contacts ADD COLUMN search_text TEXT;
CREATE INDEX contacts_not_indexed ON contacts (account_id, seq) WHERE search_text IS NULL;
CREATE VIRTUAL TABLE contact_search USING fts5(
  trigrams, content = '', columnsize = 0, detail = none, tokenize = "ascii tokenchars '_'"
);
INSERT INTO contact_search (contact_search, rank) VALUES ('secure-delete', 1);

-- When a consent was given is evidence: null where nobody told it. The constraint is replaced in the schema text, which
-- does not touch the rows (https://sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes").
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'said_at     INTEGER NOT NULL', 'said_at     INTEGER')
WHERE type = 'table' AND name = 'consents';
PRAGMA writable_schema = RESET;
