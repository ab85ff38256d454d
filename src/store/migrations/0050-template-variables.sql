-- The variables that the client of a template declares, as JSON. NULL: none.
ALTER TABLE templates ADD COLUMN variables TEXT;

-- They count among the bytes that an account stores.
DROP TRIGGER templates_bytes_insert;
DROP TRIGGER templates_bytes_update;
DROP TRIGGER templates_bytes_delete;
CREATE TRIGGER templates_bytes_insert AFTER INSERT ON templates BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.subject), 0) + coalesce(octet_length(NEW.html), 0) + coalesce(octet_length(NEW.text), 0) + coalesce(octet_length(NEW.variables), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER templates_bytes_update AFTER UPDATE OF name, subject, html, text, variables ON templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.subject), 0) + coalesce(octet_length(OLD.html), 0) + coalesce(octet_length(OLD.text), 0) + coalesce(octet_length(OLD.variables), 0) - (200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.subject), 0) + coalesce(octet_length(NEW.html), 0) + coalesce(octet_length(NEW.text), 0) + coalesce(octet_length(NEW.variables), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER templates_bytes_delete AFTER DELETE ON templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.subject), 0) + coalesce(octet_length(OLD.html), 0) + coalesce(octet_length(OLD.text), 0) + coalesce(octet_length(OLD.variables), 0)) WHERE account_id = OLD.account_id;
END;
