/*
 * What an exported account does not have, and why. test/store/transfer.test.ts compares this list and `kinds.ts` with the
 * schema: a new table or column is exported, or named here.
 */

/** Tables without separate records in the file. */
export const NOT_EXPORTED: Readonly<Record<string, string>> = {
  account_imports: 'an import that is in progress here',
  account_numbers: 'numbers of this database, assigned again',
  attempts: 'belong to messages',
  campaign_numbers: 'numbers of this database, assigned again',
  certificates: 'of hosts, not of accounts; obtained again where the host leads',
  contact_counts: 'counted by a trigger',
  contact_imports: 'positions in files of this machine',
  contact_search: 'derived from contacts',
  contents: 'belong to messages',
  delay_notices: 'belong to messages',
  dmarc_reports: 'reports about a name, received where its records point; deleted by age',
  dmarc_sources: 'belong to dmarc_reports',
  domain_numbers: 'numbers of this database, assigned again',
  erasures: 'an export is refused while people are erased',
  events: 'ordered by number in one database: they stay readable where they were recorded',
  hourly_counts: 'statistics of the installation that sent the messages',
  kept_mail: 'mail for the operator of this installation',
  messages: 'ordered by number and time in one database: moved_message has what reports about them need',
  platform_keys: 'keys of the installation',
  queue_controls: 'orders of the operator of an installation',
  queue_reroutes: 'orders of the operator of an installation',
  queue: 'an export is refused while messages are queued, or this installation sends them',
  settings: 'values about this database',
  shared_contents: 'belong to messages',
  site_limits: 'what receivers asked of the addresses of this installation',
  sts_policies: 'of recipient domains, not of accounts; fetched again',
  subscription_group_numbers: 'numbers of this database, assigned again',
  tls_failures: 'belong to tls_reports',
  tls_reports: 'reports about a name, received where its records point; deleted by age',
  tls_session_failures: 'belong to tls_sessions',
  tls_sessions: 'sessions of this installation, which reports them',
  token_keys: 'the header of the file has the key of the account',
  unclassified_replies: 'replies of receivers to this installation',
  webhook_deliveries: 'calls about events, which this installation makes',
  zone_changes: 'counts changes of this zone',
};

/** Columns of exported tables that a record does not have; `fixed` ones of kinds.ts are written with another value. */
export const COLUMNS_NOT_EXPORTED: Readonly<Record<string, string>> = {
  'campaigns.seq': 'a number of this database',
  'compliance_templates.seq': 'a number of this database',
  'contacts.seq': 'a number of this database',
  'contacts.email_key': 'derived',
  'contacts.name_key': 'derived',
  'contacts.last_name_key': 'derived',
  'contacts.search_text': 'derived',
  'dkim_keys.key_id': 'a number of this database',
  'moved_messages.bounced': 'a copy of a report is recorded once in each installation',
  'moved_messages.complained': 'a copy of a report is recorded once in each installation',
  'subscription_groups.seq': 'a number of this database',
  'suppressions.seq': 'a number of this database',
  'templates.seq': 'a number of this database',
  'webhook_secrets.secret_id': 'a number of this database',
  'webhooks.number': 'a number of this database',
};
