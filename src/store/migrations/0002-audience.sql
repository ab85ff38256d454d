-- Segments: when a contact last received marketing mail, opened and clicked; independent of the retention of messages.
CREATE TABLE contact_engagement (
  contact_seq INTEGER PRIMARY KEY REFERENCES contacts (seq),
  received_at INTEGER,
  opened_at   INTEGER,
  clicked_at  INTEGER
) STRICT;

-- Segments: what a contact did with a campaign. Without a foreign key: a deleted campaign has up to a row for each contact
-- of its account, which are deleted in the background.
CREATE TABLE campaign_contacts (
  campaign_seq INTEGER NOT NULL,
  contact_seq  INTEGER NOT NULL REFERENCES contacts (seq),
  bits         INTEGER NOT NULL,   -- 1: received, 2: opened, 4: clicked
  PRIMARY KEY (campaign_seq, contact_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX campaign_contacts_by_contact ON campaign_contacts (contact_seq);
