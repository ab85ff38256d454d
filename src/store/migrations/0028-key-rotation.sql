-- DKIM keys in the platform's zone rotate without a change in the domain's zone: each has a slot, which names its selector
-- and the CNAME of the domain. Keys without a slot are published by the owner of the domain as TXT records.
CREATE TABLE dkim_keys_next (
  key_id      INTEGER PRIMARY KEY,
  domain_id   TEXT NOT NULL REFERENCES domains (domain_id) ON DELETE CASCADE,
  lane        TEXT NOT NULL CHECK (lane IN ('primary', 'secondary')),
  -- domains/key-slots.ts; null: the TXT record of the domain's owner
  slot        TEXT CHECK (slot IN ('a', 'b', 'e', 'f', 's', 't')),
  selector    TEXT NOT NULL,
  -- active: signs; pending: not yet found in DNS; retiring: signed before the last rotation; revoked: its record is empty
  state       TEXT NOT NULL CHECK (state IN ('active', 'pending', 'retiring', 'revoked')),
  private_key BLOB NOT NULL,       -- PKCS #8 DER, sealed
  public_key  TEXT NOT NULL,       -- SubjectPublicKeyInfo DER, base64
  created_at  INTEGER NOT NULL,
  changed_at  INTEGER NOT NULL,    -- since when it has its state
  UNIQUE (domain_id, selector)
) STRICT;
INSERT INTO dkim_keys_next (key_id, domain_id, lane, slot, selector, state, private_key, public_key, created_at, changed_at)
  SELECT key_id, domain_id, lane, CASE lane WHEN 'secondary' THEN 's' END, selector, state, private_key, public_key,
    created_at, created_at
  FROM dkim_keys;
DROP TABLE dkim_keys;
ALTER TABLE dkim_keys_next RENAME TO dkim_keys;

-- Keys of the platform's own signature.
CREATE TABLE platform_keys (
  key_id      INTEGER PRIMARY KEY,
  selector    TEXT NOT NULL UNIQUE,
  state       TEXT NOT NULL CHECK (state IN ('active', 'pending', 'retiring', 'revoked')),
  private_key BLOB NOT NULL,       -- PKCS #8 DER, sealed
  public_key  TEXT NOT NULL,       -- SubjectPublicKeyInfo DER, base64
  created_at  INTEGER NOT NULL,
  changed_at  INTEGER NOT NULL
) STRICT;

-- Counts the changes of keys in the platform's zone, for its serial number.
CREATE TABLE zone_changes (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  changes INTEGER NOT NULL
) STRICT;
INSERT INTO zone_changes (id, changes) VALUES (1, 0);
CREATE TRIGGER dkim_keys_zone_insert AFTER INSERT ON dkim_keys WHEN NEW.slot IS NOT NULL BEGIN
  UPDATE zone_changes SET changes = changes + 1 WHERE id = 1;
END;
CREATE TRIGGER dkim_keys_zone_update AFTER UPDATE OF state, public_key ON dkim_keys WHEN NEW.slot IS NOT NULL BEGIN
  UPDATE zone_changes SET changes = changes + 1 WHERE id = 1;
END;
CREATE TRIGGER dkim_keys_zone_delete AFTER DELETE ON dkim_keys WHEN OLD.slot IS NOT NULL BEGIN
  UPDATE zone_changes SET changes = changes + 1 WHERE id = 1;
END;
CREATE TRIGGER platform_keys_zone_insert AFTER INSERT ON platform_keys BEGIN
  UPDATE zone_changes SET changes = changes + 1 WHERE id = 1;
END;
CREATE TRIGGER platform_keys_zone_update AFTER UPDATE OF state ON platform_keys BEGIN
  UPDATE zone_changes SET changes = changes + 1 WHERE id = 1;
END;
CREATE TRIGGER platform_keys_zone_delete AFTER DELETE ON platform_keys BEGIN
  UPDATE zone_changes SET changes = changes + 1 WHERE id = 1;
END;
