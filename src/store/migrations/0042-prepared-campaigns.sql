-- What was prepared for a campaign that is not sent: group, template, sender and start, JSON (campaigns/prepared.ts).
ALTER TABLE campaigns ADD COLUMN prepared TEXT;
