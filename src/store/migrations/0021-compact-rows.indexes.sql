-- Indexes and triggers, created after the rows were copied.

CREATE INDEX api_keys_by_account ON api_keys (account_id);
CREATE INDEX domain_groups_by_account ON domain_groups (account_id);
CREATE INDEX domains_by_group ON domains (group_id);
CREATE INDEX domains_by_next_check ON domains (next_check_at);
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);
CREATE UNIQUE INDEX contacts_by_email ON contacts (account_id, email_hash) WHERE email_hash IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_phone ON contacts (account_id, phone_hash) WHERE phone_hash IS NOT NULL;
CREATE INDEX contacts_by_account ON contacts (account_id);
CREATE INDEX contacts_by_status ON contacts (account_id, global_status);
CREATE INDEX contacts_by_email_key ON contacts (account_id, email_key) WHERE email_key IS NOT NULL;
CREATE INDEX contacts_by_name_key ON contacts (account_id, name_key) WHERE name_key IS NOT NULL;
CREATE INDEX contacts_by_last_name_key ON contacts (account_id, last_name_key) WHERE last_name_key IS NOT NULL;
CREATE INDEX subscription_groups_by_account ON subscription_groups (account_id) WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_by_activity ON subscriptions (group_seq, is_active, contact_seq);
CREATE INDEX subscriptions_by_contact ON subscriptions (contact_seq);
CREATE INDEX group_opt_outs_by_recipient ON group_opt_outs (recipient_hash);
CREATE INDEX webhooks_by_account ON webhooks (account_id, number);
CREATE INDEX webhook_secrets_by_webhook ON webhook_secrets (webhook);
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (state, webhook, event_seq) WHERE state <> 'succeeded';
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at) WHERE state = 'waiting';
CREATE INDEX templates_by_account ON templates (account_id, seq);
CREATE INDEX compliance_templates_by_account ON compliance_templates (account_id, seq);
CREATE UNIQUE INDEX compliance_templates_default ON compliance_templates (account_id, coalesce(domain, ''), type)
  WHERE is_default = 1;
CREATE INDEX campaigns_by_account ON campaigns (account_id, seq);
CREATE INDEX campaign_links_by_clicks ON campaign_links (campaign_id, clicks);
CREATE INDEX suppressions_by_account ON suppressions (account_id, seq);
CREATE INDEX domains_by_tracking_domain ON domains (tracking_domain) WHERE tracking_domain IS NOT NULL;
CREATE INDEX domains_by_name ON domains (name);
CREATE INDEX kept_mail_by_box ON kept_mail (box, seq);
CREATE INDEX delay_notices_by_time ON delay_notices (at);
CREATE INDEX dmarc_reports_by_end ON dmarc_reports (domain, end_at);
CREATE INDEX tls_reports_by_end ON tls_reports (host, end_at);
CREATE INDEX campaign_sends_open ON campaign_sends (campaign_seq) WHERE open = 1;
CREATE INDEX certificates_due ON certificates (due_at) WHERE chain IS NOT NULL;
CREATE INDEX certificates_by_try ON certificates (tried_at);
CREATE TRIGGER contacts_count_insert AFTER INSERT ON contacts BEGIN
  INSERT INTO contact_counts VALUES (NEW.account_id, 1) ON CONFLICT (account_id) DO UPDATE SET contacts = contacts + 1;
END;
CREATE TRIGGER contacts_count_delete AFTER DELETE ON contacts BEGIN
  UPDATE contact_counts SET contacts = contacts - 1 WHERE account_id = OLD.account_id;
END;
CREATE INDEX kept_mail_by_network ON kept_mail (box, network, seq);
CREATE INDEX dmarc_reports_by_network ON dmarc_reports (domain, network);
CREATE INDEX dmarc_reports_by_signer ON dmarc_reports (domain, signer);
CREATE INDEX tls_reports_by_network ON tls_reports (host, network);
CREATE INDEX tls_reports_by_signer ON tls_reports (host, signer);
CREATE INDEX contacts_not_indexed ON contacts (account_id, seq) WHERE search_text IS NULL;
CREATE INDEX suppressions_by_stream_and_reason ON suppressions (account_id, stream, reason);
CREATE INDEX strikes_by_time ON strikes (at);
CREATE INDEX shared_contents_unused ON shared_contents (created_at) WHERE copies = 0;
CREATE TRIGGER contents_deleted AFTER DELETE ON contents WHEN OLD.shared_id IS NOT NULL BEGIN
  UPDATE shared_contents SET copies = copies - 1 WHERE shared_id = OLD.shared_id;
END;

-- SQLite appends seq to every entry.
CREATE INDEX messages_by_account ON messages (account);
CREATE INDEX messages_by_recipient ON messages (account, recipient_key);
CREATE INDEX messages_by_campaign ON messages (campaign) WHERE campaign IS NOT NULL;
CREATE INDEX messages_by_job ON messages (job_key) WHERE job_key IS NOT NULL;
CREATE INDEX messages_by_content ON messages (content_id);
CREATE INDEX messages_by_status ON messages (account, status_code) WHERE status_code <> 4;
CREATE INDEX messages_by_domain ON messages (domain);
CREATE INDEX events_by_account ON events (account);
CREATE INDEX events_by_message ON events (message_seq) WHERE message_seq IS NOT NULL;
CREATE INDEX events_by_kind ON events (account, kind_code) WHERE kind_code <> 0 AND kind_code <> 1;
CREATE INDEX events_without_message ON events (account) WHERE message_seq IS NULL;
CREATE INDEX events_by_person ON events (account, data ->> '$.contactIdentifier') WHERE message_seq IS NULL;
CREATE INDEX queue_due ON queue (due_at) WHERE ready = 0;
CREATE INDEX queue_ready ON queue (lane, account, destination) WHERE ready = 1 AND lease IS NULL;
CREATE INDEX queue_by_domain ON queue (domain);
CREATE INDEX queue_by_campaign ON queue (campaign_seq, ready, due_at) WHERE campaign_seq IS NOT NULL;
