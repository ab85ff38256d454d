-- Lists that stay fast in a large database. The indexes need no seq: SQLite appends it to every entry.

-- What is neither delivered nor on its way there is rare, and asked for. A delivered message has no entry.
CREATE INDEX messages_by_status ON messages (account_id, status) WHERE status <> 'delivered';
CREATE INDEX messages_by_domain ON messages (domain_id);

-- The two kinds that every message has are found by reading the feed.
CREATE INDEX events_by_kind ON events (account_id, kind) WHERE kind <> 'email_sent' AND kind <> 'email_delivered';
CREATE INDEX events_without_message ON events (account_id) WHERE message_seq IS NULL;

-- One for both filters, together and each alone: there are three streams and five reasons.
CREATE INDEX suppressions_by_stream_and_reason ON suppressions (account_id, stream, reason);
DROP INDEX suppressions_by_stream;
DROP INDEX suppressions_by_reason;
