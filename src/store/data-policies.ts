import { API_KEY_POLICY } from './api-keys.ts';
import { CAMPAIGN_LINK_POLICY, CAMPAIGN_PROVIDER_POLICY } from './campaigns/campaign-counts.ts';
import { SEQUENCE_POLICY } from './campaigns/sequences.ts';
import { CLOSED_SIGN_UP_POLICY } from './contacts/closed-sign-ups.ts';
import { CONSENT_POLICY } from './contacts/consent.ts';
import { CONTACT_POLICIES } from './contacts/contacts.ts';
import { ERASURE_POLICY } from './contacts/contacts-erasure.ts';
import { ENGAGEMENT_POLICIES } from './contacts/engagement.ts';
import { HYGIENE_FINDING_POLICY } from './contacts/hygiene.ts';
import { SEGMENT_COPY_POLICIES } from './contacts/segment-columns.ts';
import { OPT_OUT_POLICY, SUBSCRIPTION_POLICY } from './contacts/subscriptions.ts';
import { type DataPolicy, ERASURE_STEPS, type ErasureStep } from './data-policy.ts';
import { SITE_LIMIT_POLICY } from './delivery/site-limits.ts';
import { UNCLASSIFIED_REPLY_POLICY } from './delivery/unclassified-replies.ts';
import { DMARC_REPORT_POLICY } from './domains/dmarc-reports.ts';
import { TLS_REPORT_POLICY } from './domains/tls-reports.ts';
import { EGRESS_COUNT_POLICY } from './egress/egress-counts.ts';
import { EGRESS_HEALTH_POLICY, EGRESS_WARMUP_POLICY } from './egress/egress-health.ts';
import { IDEMPOTENCY_POLICY } from './idempotency.ts';
import { INBOUND_MAIL_POLICY, INBOUND_PART_POLICY } from './inbound/inbound-mails.ts';
import { KEPT_MAIL_POLICY } from './kept-mail.ts';
import { EVENT_POLICY } from './messages/events.ts';
import { HOURLY_COUNT_POLICY } from './messages/hourly-counts.ts';
import {
  ATTEMPT_POLICY,
  CONTENT_POLICY,
  DELAY_NOTICE_POLICY,
  MESSAGE_POLICY,
  MESSAGE_TAG_POLICY,
  SHARED_CONTENT_POLICY,
} from './messages/messages.ts';
import { QUEUE_POLICY } from './messages/queue.ts';
import { TAG_COUNT_POLICY } from './messages/tag-counts.ts';
import { AUDIT_POLICY } from './people/audit.ts';
import { IDENTITY_POLICY, PASSKEY_POLICY } from './people/credentials.ts';
import { ATTENTION_SEEN_POLICY, NOTICE_MAIL_POLICY } from './people/notices.ts';
import { MEMBERSHIP_POLICY, PEOPLE_POLICY } from './people/people.ts';
import { SAVED_VIEW_POLICY } from './people/saved-views.ts';
import { SESSION_POLICY, SIGN_IN_LINK_POLICY } from './people/sessions.ts';
import { REPUTATION_COUNT_POLICY } from './reputation/reputation-counts.ts';
import { SPAM_RATE_POLICY } from './reputation/spam-rates.ts';
import { STRIKE_POLICY, SUPPRESSION_POLICY, SUPPRESSION_REMOVAL_POLICY } from './suppressions.ts';
import { STS_POLICY_POLICY } from './tls/sts-policies.ts';
import { TLS_SESSION_POLICY } from './tls/tls-sessions.ts';
import { ACCOUNT_CHANGE_POLICY } from './transfer/account-moves.ts';
import { MOVED_MESSAGE_POLICY } from './transfer/moved-messages.ts';
import { WEBHOOK_DELIVERY_POLICY } from './webhook-deliveries.ts';

/** The policies of all tables with personal data or retention, in the order in which retention deletes. */
export const DATA_POLICIES = [
  CONTENT_POLICY,
  // After the contents, which refer to shared contents.
  SHARED_CONTENT_POLICY,
  EVENT_POLICY,
  // After the events: deliveries of deleted events.
  WEBHOOK_DELIVERY_POLICY,
  MESSAGE_POLICY,
  MESSAGE_TAG_POLICY,
  ATTEMPT_POLICY,
  STRIKE_POLICY,
  DELAY_NOTICE_POLICY,
  MOVED_MESSAGE_POLICY,
  ACCOUNT_CHANGE_POLICY,
  HOURLY_COUNT_POLICY,
  TAG_COUNT_POLICY,
  REPUTATION_COUNT_POLICY,
  SPAM_RATE_POLICY,
  SITE_LIMIT_POLICY,
  UNCLASSIFIED_REPLY_POLICY,
  EGRESS_COUNT_POLICY,
  EGRESS_WARMUP_POLICY,
  EGRESS_HEALTH_POLICY,
  KEPT_MAIL_POLICY,
  INBOUND_MAIL_POLICY,
  INBOUND_PART_POLICY,
  DMARC_REPORT_POLICY,
  TLS_REPORT_POLICY,
  IDEMPOTENCY_POLICY,
  ...CONTACT_POLICIES,
  ...ENGAGEMENT_POLICIES,
  ...SEGMENT_COPY_POLICIES,
  CONSENT_POLICY,
  SUBSCRIPTION_POLICY,
  OPT_OUT_POLICY,
  CLOSED_SIGN_UP_POLICY,
  SEQUENCE_POLICY,
  HYGIENE_FINDING_POLICY,
  QUEUE_POLICY,
  SUPPRESSION_POLICY,
  SUPPRESSION_REMOVAL_POLICY,
  CAMPAIGN_LINK_POLICY,
  CAMPAIGN_PROVIDER_POLICY,
  ERASURE_POLICY,
  STS_POLICY_POLICY,
  TLS_SESSION_POLICY,
  SIGN_IN_LINK_POLICY,
  SESSION_POLICY,
  AUDIT_POLICY,
  API_KEY_POLICY,
  PEOPLE_POLICY,
  MEMBERSHIP_POLICY,
  PASSKEY_POLICY,
  IDENTITY_POLICY,
  SAVED_VIEW_POLICY,
  ATTENTION_SEEN_POLICY,
  NOTICE_MAIL_POLICY,
] as const satisfies DataPolicy[];

/** What the export of all data about a person contains (audience/personal-data), by section. */
export const EXPORT_SECTIONS = [
  'contact',
  'memberships',
  'consents',
  'optOuts',
  'signUps',
  'suppressions',
  'suppressionRemovals',
  'strikes',
  'engagement',
  'sequences',
  'hygiene',
  'messages',
  'events',
] as const;
export type ExportSection = (typeof EXPORT_SECTIONS)[number];

type PersonalTable = Exclude<(typeof DATA_POLICIES)[number], { personal: readonly [] }>['table'];

const COUNTED = { omitted: 'counts by domain, not by person' };
const CONSOLE = { omitted: 'people who use the console are neither recipients nor contacts' };

/** Where the export has the personal data of a table, or why it has not. Every table with personal columns is listed. */
export const EXPORT_OF_TABLE: Record<PersonalTable, ExportSection | { omitted: string }> = {
  contacts: 'contact',
  contact_search: { omitted: 'the index of the profile' },
  segment_columns: { omitted: 'copies of the contact, its memberships and its engagement' },
  subscriptions: 'memberships',
  consents: 'consents',
  group_opt_outs: 'optOuts',
  closed_sign_ups: 'signUps',
  suppressions: 'suppressions',
  suppression_removals: 'suppressionRemovals',
  strikes: 'strikes',
  contact_engagement: 'engagement',
  campaign_contacts: 'engagement',
  sequence_people: 'sequences',
  messages: 'messages',
  message_tags: { omitted: 'the index of the tags of messages' },
  tag_counts: COUNTED,
  attempts: 'messages',
  queue: 'messages',
  events: 'events',
  hygiene_findings: 'hygiene',
  contents: {
    omitted: 'the mail itself, which the person has; GET /web-setup/messages/{id}/content returns it',
  },
  campaign_links: { omitted: 'links of a campaign, of which clicks in events have those of the person' },
  webhook_deliveries: { omitted: 'responses of the own servers of the account to its events' },
  idempotency: { omitted: 'copies of responses for a day' },
  kept_mail: { omitted: 'reports of mail servers, found by their text only; the operator reads them' },
  inbound_mails: 'events',
  inbound_parts: {
    omitted: 'the mail itself, which the person has; GET /web-setup/inbound/{inboundId}/raw returns it',
  },
  account_changes: { omitted: 'identifiers of people whose data changed during a move' },
  moved_messages: { omitted: 'identifiers of messages that the earlier installation exports' },
  erasures: { omitted: 'exists until an erasure is complete' },
  unclassified_replies: { omitted: 'replies of mail servers, without the recipient' },
  campaign_providers: COUNTED,
  hourly_counts: COUNTED,
  egress_counts: COUNTED,
  egress_warmup: COUNTED,
  egress_health: COUNTED,
  sts_policies: COUNTED,
  tls_sessions: COUNTED,
  people: CONSOLE,
  memberships: CONSOLE,
  sign_in_links: CONSOLE,
  console_sessions: CONSOLE,
  passkeys: CONSOLE,
  external_identities: CONSOLE,
  audit_records: CONSOLE,
  saved_views: CONSOLE,
  attention_seen: CONSOLE,
  notice_mails: CONSOLE,
};

type DeclaredRetention = (typeof DATA_POLICIES)[number]['retention'];
export type DeclaredRetentionRule = Extract<DeclaredRetention, { kind: string }>;

/** All rules of deletion by age, in their order. */
export const RETENTION_RULES: readonly DeclaredRetentionRule[] = DATA_POLICIES.flatMap(({ retention }) =>
  'kind' in retention ? [retention] : [],
);

/** The steps of an erasure that any table declares, in their order. */
export const DECLARED_ERASURE_STEPS: readonly ErasureStep[] = ERASURE_STEPS.filter((step) =>
  DATA_POLICIES.some((policy: DataPolicy) => stepsOf(policy).includes(step)),
);

function stepsOf({ erasure }: DataPolicy): readonly ErasureStep[] {
  return erasure === undefined || 'stays' in erasure ? [] : erasure;
}

/** Tables with neither personal data of recipients or contacts nor rows that age: an account's own data and counters. */
export const OTHER_TABLES = [
  'account_imports',
  'account_limits',
  'account_moves',
  'account_numbers',
  'accounts',
  // Deleted with the key.
  'api_key_uses',
  'archived_campaigns',
  // Names of columns and reasons, without values of rows; the files are deleted when their imports end.
  'background_imports',
  'campaign_counts',
  'campaign_mails',
  'campaign_numbers',
  'campaign_sends',
  'campaign_variants',
  'campaigns',
  'certificates',
  'compliance_templates',
  'contact_counts',
  'contact_imports',
  'stored_bytes',
  'suppression_counts',
  'dkim_keys',
  // Addresses of mail servers; deleted with the report.
  'dmarc_sources',
  // Records of DNS; deleted with the domain.
  'domain_checks',
  'domain_groups',
  'domain_numbers',
  'domains',
  // Deleted a day after the end of the failure.
  'failure_notices',
  // Counts of examinations.
  'hygiene_runs',
  // Addresses of the account.
  'inbound_routes',
  // Sizes; deleted with the last mail.
  'inbound_sources',
  // Deleted with the mail.
  'kept_mail_reads',
  // Images that the account has uploaded for its mail.
  'media',
  'media_contents',
  'media_parts',
  'message_counts',
  // What templates of the account share.
  'partials',
  'platform_keys',
  'public_pages',
  'queue_controls',
  'queue_reroutes',
  // Known providers, not domains of recipients; deleted with the account.
  'sending_limits',
  // Numbers of contacts.
  'segment_changes',
  'segment_chunks',
  'segments',
  'sequence_counts',
  'sequence_ends',
  // Deleted with the person.
  'sequence_sends',
  'sequence_versions',
  'sequences',
  'settings',
  'subscription_group_numbers',
  'subscription_groups',
  'sunset_rules',
  // Deleted with the template.
  'template_versions',
  'templates',
  // Deleted with the report.
  'tls_failures',
  'token_keys',
  // Deleted with the sessions.
  'tls_session_failures',
  'webhook_secrets',
  'webhooks',
  'zone_changes',
] as const;
