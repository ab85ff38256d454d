-- Bytes that an account stores, for its limit: texts, and a number for the rest of a row and its indexes. Triggers count them, so that
-- every statement and every program counts.
CREATE TABLE stored_bytes (
  account_id ANY PRIMARY KEY,      -- the id: what the account manages; its number (account_numbers): contents of its messages
  bytes      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Suppressions of each account, which can be millions.
CREATE TABLE suppression_counts (
  account_id   TEXT PRIMARY KEY,
  suppressions INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO suppression_counts SELECT account_id, count(*) FROM suppressions GROUP BY account_id;
CREATE TRIGGER suppressions_count_insert AFTER INSERT ON suppressions BEGIN
  INSERT INTO suppression_counts VALUES (NEW.account_id, 1)
  ON CONFLICT (account_id) DO UPDATE SET suppressions = suppressions + 1;
END;
CREATE TRIGGER suppressions_count_delete AFTER DELETE ON suppressions BEGIN
  UPDATE suppression_counts SET suppressions = suppressions - 1 WHERE account_id = OLD.account_id;
END;

ALTER TABLE account_limits ADD COLUMN stored_bytes INTEGER;
ALTER TABLE account_limits ADD COLUMN campaigns INTEGER;
ALTER TABLE account_limits ADD COLUMN subscription_groups INTEGER;
ALTER TABLE account_limits ADD COLUMN suppressions INTEGER;

-- NULL: stored before contents were counted; retention deletes them.
ALTER TABLE contents ADD COLUMN account INTEGER;
ALTER TABLE shared_contents ADD COLUMN account INTEGER;
CREATE TRIGGER contacts_bytes_insert AFTER INSERT ON contacts BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 400 + coalesce(octet_length(NEW.email), 0) + coalesce(octet_length(NEW.phone), 0) + coalesce(octet_length(NEW.first_name), 0) + coalesce(octet_length(NEW.last_name), 0) + coalesce(octet_length(NEW.custom_fields), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER contacts_bytes_update AFTER UPDATE OF email, phone, first_name, last_name, custom_fields ON contacts BEGIN
  UPDATE stored_bytes SET bytes = bytes - (400 + coalesce(octet_length(OLD.email), 0) + coalesce(octet_length(OLD.phone), 0) + coalesce(octet_length(OLD.first_name), 0) + coalesce(octet_length(OLD.last_name), 0) + coalesce(octet_length(OLD.custom_fields), 0) - (400 + coalesce(octet_length(NEW.email), 0) + coalesce(octet_length(NEW.phone), 0) + coalesce(octet_length(NEW.first_name), 0) + coalesce(octet_length(NEW.last_name), 0) + coalesce(octet_length(NEW.custom_fields), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER contacts_bytes_delete AFTER DELETE ON contacts BEGIN
  UPDATE stored_bytes SET bytes = bytes - (400 + coalesce(octet_length(OLD.email), 0) + coalesce(octet_length(OLD.phone), 0) + coalesce(octet_length(OLD.first_name), 0) + coalesce(octet_length(OLD.last_name), 0) + coalesce(octet_length(OLD.custom_fields), 0)) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER templates_bytes_insert AFTER INSERT ON templates BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.subject), 0) + coalesce(octet_length(NEW.html), 0) + coalesce(octet_length(NEW.text), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER templates_bytes_update AFTER UPDATE OF name, subject, html, text ON templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.subject), 0) + coalesce(octet_length(OLD.html), 0) + coalesce(octet_length(OLD.text), 0) - (200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.subject), 0) + coalesce(octet_length(NEW.html), 0) + coalesce(octet_length(NEW.text), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER templates_bytes_delete AFTER DELETE ON templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.subject), 0) + coalesce(octet_length(OLD.html), 0) + coalesce(octet_length(OLD.text), 0)) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER compliance_templates_bytes_insert AFTER INSERT ON compliance_templates BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.html_content), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER compliance_templates_bytes_update AFTER UPDATE OF name, html_content ON compliance_templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.html_content), 0) - (200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.html_content), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER compliance_templates_bytes_delete AFTER DELETE ON compliance_templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.html_content), 0)) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER campaigns_bytes_insert AFTER INSERT ON campaigns BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.prepared), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER campaigns_bytes_update AFTER UPDATE OF name, description, prepared ON campaigns BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.prepared), 0) - (200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.prepared), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER campaigns_bytes_delete AFTER DELETE ON campaigns BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.prepared), 0)) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER subscription_groups_bytes_insert AFTER INSERT ON subscription_groups BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account_id, 200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.tags), 0) + coalesce(octet_length(NEW.sign_up), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER subscription_groups_bytes_update AFTER UPDATE OF name, description, tags, sign_up ON subscription_groups BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.tags), 0) + coalesce(octet_length(OLD.sign_up), 0) - (200 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.tags), 0) + coalesce(octet_length(NEW.sign_up), 0))) WHERE account_id = NEW.account_id;
END;
CREATE TRIGGER subscription_groups_bytes_delete AFTER DELETE ON subscription_groups BEGIN
  UPDATE stored_bytes SET bytes = bytes - (200 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.tags), 0) + coalesce(octet_length(OLD.sign_up), 0)) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER template_versions_bytes_insert AFTER INSERT ON template_versions BEGIN
  INSERT INTO stored_bytes VALUES ((SELECT account_id FROM templates WHERE seq = NEW.template_seq), 100 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.subject), 0) + coalesce(octet_length(NEW.html), 0) + coalesce(octet_length(NEW.text), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER template_versions_bytes_update AFTER UPDATE OF name, subject, html, text ON template_versions BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.subject), 0) + coalesce(octet_length(OLD.html), 0) + coalesce(octet_length(OLD.text), 0) - (100 + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.subject), 0) + coalesce(octet_length(NEW.html), 0) + coalesce(octet_length(NEW.text), 0))) WHERE account_id = (SELECT account_id FROM templates WHERE seq = NEW.template_seq);
END;
CREATE TRIGGER template_versions_bytes_delete AFTER DELETE ON template_versions BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.subject), 0) + coalesce(octet_length(OLD.html), 0) + coalesce(octet_length(OLD.text), 0)) WHERE account_id = (SELECT account_id FROM templates WHERE seq = OLD.template_seq);
END;
CREATE TRIGGER campaign_mails_bytes_insert AFTER INSERT ON campaign_mails BEGIN
  INSERT INTO stored_bytes VALUES ((SELECT account_id FROM campaigns WHERE seq = NEW.campaign_seq), 100 + coalesce(octet_length(NEW.mail), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER campaign_mails_bytes_update AFTER UPDATE OF mail ON campaign_mails BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.mail), 0) - (100 + coalesce(octet_length(NEW.mail), 0))) WHERE account_id = (SELECT account_id FROM campaigns WHERE seq = NEW.campaign_seq);
END;
CREATE TRIGGER campaign_mails_bytes_delete AFTER DELETE ON campaign_mails BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.mail), 0)) WHERE account_id = (SELECT account_id FROM campaigns WHERE seq = OLD.campaign_seq);
END;
CREATE TRIGGER consents_bytes_insert AFTER INSERT ON consents BEGIN
  INSERT INTO stored_bytes VALUES ((SELECT account_id FROM contacts WHERE seq = NEW.contact_seq), 100 + coalesce(octet_length(NEW.method), 0) + coalesce(octet_length(NEW.details), 0) + coalesce(octet_length(NEW.user_agent), 0))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER consents_bytes_update AFTER UPDATE OF method, details, user_agent ON consents BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.method), 0) + coalesce(octet_length(OLD.details), 0) + coalesce(octet_length(OLD.user_agent), 0) - (100 + coalesce(octet_length(NEW.method), 0) + coalesce(octet_length(NEW.details), 0) + coalesce(octet_length(NEW.user_agent), 0))) WHERE account_id = (SELECT account_id FROM contacts WHERE seq = NEW.contact_seq);
END;
CREATE TRIGGER consents_bytes_delete AFTER DELETE ON consents BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + coalesce(octet_length(OLD.method), 0) + coalesce(octet_length(OLD.details), 0) + coalesce(octet_length(OLD.user_agent), 0)) WHERE account_id = (SELECT account_id FROM contacts WHERE seq = OLD.contact_seq);
END;
-- Rows that are deleted with their parent, which their own triggers do not find any more.
CREATE TRIGGER templates_bytes_cascade BEFORE DELETE ON templates BEGIN
  UPDATE stored_bytes SET bytes = bytes - (SELECT coalesce(sum(100 + coalesce(octet_length(name), 0) + coalesce(octet_length(subject), 0) + coalesce(octet_length(html), 0) + coalesce(octet_length(text), 0)), 0) FROM template_versions WHERE template_seq = OLD.seq) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER campaigns_bytes_cascade BEFORE DELETE ON campaigns BEGIN
  UPDATE stored_bytes SET bytes = bytes - (SELECT coalesce(sum(100 + coalesce(octet_length(mail), 0)), 0) FROM campaign_mails WHERE campaign_seq = OLD.seq) WHERE account_id = OLD.account_id;
END;
CREATE TRIGGER contents_bytes_insert AFTER INSERT ON contents WHEN NEW.account IS NOT NULL BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account, 100 + octet_length(NEW.body))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER contents_bytes_delete AFTER DELETE ON contents WHEN OLD.account IS NOT NULL BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + octet_length(OLD.body)) WHERE account_id = OLD.account;
END;
CREATE TRIGGER shared_contents_bytes_insert AFTER INSERT ON shared_contents WHEN NEW.account IS NOT NULL BEGIN
  INSERT INTO stored_bytes VALUES (NEW.account, 100 + octet_length(NEW.body))
  ON CONFLICT (account_id) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER shared_contents_bytes_delete AFTER DELETE ON shared_contents WHEN OLD.account IS NOT NULL BEGIN
  UPDATE stored_bytes SET bytes = bytes - (100 + octet_length(OLD.body)) WHERE account_id = OLD.account;
END;
CREATE TRIGGER contents_bytes_update AFTER UPDATE OF body ON contents WHEN NEW.account IS NOT NULL BEGIN
  UPDATE stored_bytes SET bytes = bytes - (octet_length(OLD.body) - octet_length(NEW.body)) WHERE account_id = NEW.account;
END;
-- What is stored already, except for contents.
INSERT INTO stored_bytes SELECT account_id, sum(bytes) FROM (
  SELECT account_id, 400 + coalesce(octet_length(email), 0) + coalesce(octet_length(phone), 0) + coalesce(octet_length(first_name), 0) + coalesce(octet_length(last_name), 0) + coalesce(octet_length(custom_fields), 0) AS bytes FROM contacts
  UNION ALL
  SELECT account_id, 200 + coalesce(octet_length(name), 0) + coalesce(octet_length(subject), 0) + coalesce(octet_length(html), 0) + coalesce(octet_length(text), 0) AS bytes FROM templates
  UNION ALL
  SELECT account_id, 200 + coalesce(octet_length(name), 0) + coalesce(octet_length(html_content), 0) AS bytes FROM compliance_templates
  UNION ALL
  SELECT account_id, 200 + coalesce(octet_length(name), 0) + coalesce(octet_length(description), 0) + coalesce(octet_length(prepared), 0) AS bytes FROM campaigns
  UNION ALL
  SELECT account_id, 200 + coalesce(octet_length(name), 0) + coalesce(octet_length(description), 0) + coalesce(octet_length(tags), 0) + coalesce(octet_length(sign_up), 0) AS bytes FROM subscription_groups
  UNION ALL
  SELECT account_id, 100 + coalesce(octet_length(c.name), 0) + coalesce(octet_length(c.subject), 0) + coalesce(octet_length(c.html), 0) + coalesce(octet_length(c.text), 0) FROM template_versions c JOIN templates p ON p.seq = c.template_seq
  UNION ALL
  SELECT account_id, 100 + coalesce(octet_length(c.mail), 0) FROM campaign_mails c JOIN campaigns p ON p.seq = c.campaign_seq
  UNION ALL
  SELECT account_id, 100 + coalesce(octet_length(c.method), 0) + coalesce(octet_length(c.details), 0) + coalesce(octet_length(c.user_agent), 0) FROM consents c JOIN contacts p ON p.seq = c.contact_seq
) GROUP BY account_id;
