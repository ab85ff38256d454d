/**
 * The records of an exported account in their order in the file: which columns of which table each has, and the rows that
 * belong to it. A record never contains a number that is valid in one database only; it refers to others by public id.
 * Secrets are columns, too: the caller opens and seals them.
 *
 * `policies.ts` states for every table of the schema whether it is exported; a test compares columns with both.
 */
export interface TransferKind {
  table: string;
  /** Columns in the record, with the names of the table. */
  columns: readonly string[];
  /** Columns that are stored in another form: the expression that reads them (of row `t`). */
  read?: Readonly<Record<string, string>>;
  /** Columns of the table that the record does not have: the expression that an import writes. */
  fixed?: Readonly<Record<string, string>>;
  /** Condition for the rows of an account, with the parameters `@accountId` and `@now`. */
  where: string;
  /** An order in which an index returns the rows. */
  order: string;
  /** Fields with the rows of other tables. */
  children?: Readonly<Record<string, TransferChild>>;
}

export interface TransferChild {
  table: string;
  columns: readonly string[];
  read?: Readonly<Record<string, string>>;
  fixed?: Readonly<Record<string, string>>;
  /** The column with the key of the parent, and that key. */
  link: { column: string; parent: string };
  /** A further condition. */
  where?: string;
  order: string;
}

/** The public id of the group with the number in a column of row `t`. */
const groupId = '(SELECT g.subscription_group_id FROM subscription_groups g WHERE g.seq = t.group_seq)';

export const TRANSFER_KINDS = {
  account: {
    table: 'accounts',
    columns: [
      'name',
      'company_name',
      'company_address',
      'abuse_email',
      'logo_url',
      'created_at',
      'updated_at',
    ],
    // An account is enabled when requests are routed to its new installation.
    fixed: { status: "'disabled'" },
    where: 't.account_id = @accountId',
    order: 't.account_id',
    children: {
      limits: {
        table: 'account_limits',
        columns: [
          'domains',
          'webhooks',
          'templates',
          'contacts',
          'messages_per_hour',
          'messages_per_day',
          'concurrent_requests',
        ],
        link: { column: 'account_id', parent: 'account_id' },
        order: 't.account_id',
      },
    },
  },
  api_key: {
    table: 'api_keys',
    columns: [
      'key_id',
      'name',
      'hash',
      'scopes',
      'allow_ips',
      'allow_from',
      'allow_essential',
      'strict_compliance',
      'created_at',
      'revoked_at',
    ],
    // A key for the whole installation is not the account's.
    where: `t.account_id = @accountId AND instr(t.scopes, '"operator"') = 0`,
    order: 't.created_at, t.key_id',
  },
  domain_group: {
    table: 'domain_groups',
    columns: ['group_id', 'name', 'description', 'color', 'icon', 'is_default', 'created_at', 'updated_at'],
    where: 't.account_id = @accountId',
    order: 't.created_at, t.group_id',
  },
  domain: {
    table: 'domains',
    columns: [
      'domain_id',
      'group_id',
      'name',
      'use_case',
      'region',
      'status',
      'dkim_enabled',
      'spf_configured',
      'dmarc_configured',
      'mx_configured',
      'return_path',
      'tracking_domain',
      'tracking_host',
      'alt_domain_id',
      'alt_provisioned',
      'last_checked_at',
      'failing_since',
      'created_at',
      'updated_at',
    ],
    // Checked immediately. The secondary lane has other records here: it is active when they were found.
    fixed: {
      alt_status: "'PENDING'",
      alt_dkim_enabled: '0',
      alt_spf_configured: '0',
      alt_dmarc_configured: '0',
      next_check_at: '@now',
      check_count: '0',
    },
    where: 't.account_id = @accountId',
    order: 't.created_at, t.domain_id',
    children: {
      dkim_keys: {
        table: 'dkim_keys',
        columns: [
          'lane',
          'slot',
          'selector',
          'state',
          'private_key',
          'public_key',
          'created_at',
          'changed_at',
        ],
        link: { column: 'domain_id', parent: 'domain_id' },
        order: 't.key_id',
      },
    },
  },
  template: {
    table: 'templates',
    columns: ['template_id', 'name', 'type', 'subject', 'html', 'text', 'created_at', 'updated_at'],
    where: 't.account_id = @accountId',
    order: 't.seq',
  },
  compliance_template: {
    table: 'compliance_templates',
    columns: [
      'template_id',
      'name',
      'type',
      'domain',
      'is_default',
      'html_content',
      'created_at',
      'updated_at',
    ],
    where: 't.account_id = @accountId',
    order: 't.seq',
  },
  subscription_group: {
    table: 'subscription_groups',
    columns: [
      'subscription_group_id',
      'name',
      'description',
      'is_active',
      'tags',
      'unsubscribe_template_id',
      'report_abuse_template_id',
      'company_address_template_id',
      'created_at',
      'updated_at',
    ],
    // Memberships are counted as they are imported.
    fixed: { total_subscribers: '0', active_subscribers: '0', import_status: 'NULL', deleted_at: 'NULL' },
    where: 't.account_id = @accountId AND t.deleted_at IS NULL',
    order: 't.seq',
  },
  webhook: {
    table: 'webhooks',
    columns: [
      'webhook_id',
      'name',
      'description',
      'url',
      'events',
      'is_active',
      'off_reason',
      'failing_since',
      'created_at',
      'updated_at',
    ],
    where: 't.account_id = @accountId',
    order: 't.number',
    children: {
      secrets: {
        table: 'webhook_secrets',
        columns: ['secret', 'expires_at'],
        link: { column: 'webhook', parent: 'number' },
        where: '(t.expires_at IS NULL OR t.expires_at > @now)',
        order: 't.secret_id',
      },
    },
  },
  campaign: {
    table: 'campaigns',
    columns: ['campaign_id', 'name', 'description', 'status', 'created_at', 'updated_at'],
    where: 't.account_id = @accountId',
    order: 't.seq',
    children: {
      sends: {
        table: 'campaign_sends',
        columns: [
          'job_id',
          'subscription_group_id',
          'scheduled_at',
          'per_hour',
          'members',
          'queued',
          'without_email',
          'not_eligible',
          'not_renderable',
          'paused_reason',
          'started_at',
          'finished_at',
          'created_at',
        ],
        // Only a send in progress needs its position among the contacts.
        fixed: { account_id: '@accountId', last_seq: 'NULL', at_seq: '0', next_at: '0', open: '0' },
        link: { column: 'campaign_seq', parent: 'seq' },
        order: 't.campaign_seq',
      },
      mails: {
        table: 'campaign_mails',
        columns: ['mail'],
        link: { column: 'campaign_seq', parent: 'seq' },
        order: 't.campaign_seq',
      },
      counts: {
        table: 'campaign_counts',
        columns: [
          'hour',
          'queued',
          'sent',
          'delivered',
          'deferred',
          'bounced',
          'complained',
          'opened',
          'unique_opened',
          'clicked',
          'unique_clicked',
          'unsubscribed',
          'failed',
          'cancelled',
        ],
        link: { column: 'campaign_id', parent: 'campaign_id' },
        order: 't.hour',
      },
      links: {
        table: 'campaign_links',
        columns: ['url', 'clicks'],
        link: { column: 'campaign_id', parent: 'campaign_id' },
        order: 't.rowid',
      },
    },
  },
  contact: {
    table: 'contacts',
    columns: [
      'user_id',
      'email',
      'email_hash',
      'phone',
      'phone_hash',
      'first_name',
      'last_name',
      'custom_fields',
      'global_status',
      'consent_n',
      'source',
      'added_by',
      'created_at',
      'updated_at',
    ],
    where: 't.account_id = @accountId',
    order: 't.seq',
    children: {
      consents: {
        table: 'consents',
        columns: [
          'n',
          'action',
          'subscription_group_id',
          'method',
          'details',
          'ip_address',
          'user_agent',
          'said_at',
          'recorded_at',
          'recorded_by',
        ],
        link: { column: 'contact_seq', parent: 'seq' },
        order: 't.n',
      },
      subscriptions: {
        table: 'subscriptions',
        columns: [
          'group_seq',
          'is_active',
          'source',
          'consent_method',
          'consent_details',
          'joined_at',
          'updated_at',
        ],
        read: { group_seq: groupId },
        link: { column: 'contact_seq', parent: 'seq' },
        where: '(SELECT g.deleted_at FROM subscription_groups g WHERE g.seq = t.group_seq) IS NULL',
        order: 't.group_seq',
      },
    },
  },
  group_opt_out: {
    table: 'group_opt_outs',
    columns: ['group_seq', 'recipient_hash', 'method', 'created_at'],
    read: { group_seq: groupId },
    where:
      't.group_seq IN (SELECT g.seq FROM subscription_groups g WHERE g.account_id = @accountId AND g.deleted_at IS NULL)',
    order: 't.group_seq, t.recipient_hash',
  },
  suppression: {
    table: 'suppressions',
    columns: ['recipient_hash', 'stream', 'reason', 'email', 'created_at'],
    // The message stays where it was sent.
    fixed: { message_seq: 'NULL' },
    where: 't.account_id = @accountId',
    order: 't.seq',
  },
  strike: {
    table: 'strikes',
    columns: ['recipient_hash', 'kind', 'at'],
    where: 't.account_id = @accountId',
    order: 't.recipient_hash, t.kind, t.at',
  },
  idempotency: {
    table: 'idempotency',
    columns: ['endpoint', 'key', 'fingerprint', 'status', 'body', 'expires_at'],
    where: 't.account_id = @accountId AND t.expires_at > @now',
    order: 't.endpoint, t.key',
  },
  message_count: {
    table: 'message_counts',
    columns: ['slot', 'messages'],
    where: 't.account_id = @accountId',
    order: 't.slot',
  },
  // Not the columns of the table: see exported-account.ts.
  moved_message: {
    table: 'moved_messages',
    columns: [
      'message_id',
      'recipient_hash',
      'use_case',
      'campaign_id',
      'subscription_group_id',
      'created_at',
    ],
    where: '',
    order: '',
  },
} as const satisfies Record<string, TransferKind>;

export type TransferType = keyof typeof TRANSFER_KINDS;
export const TRANSFER_TYPES = Object.keys(TRANSFER_KINDS) as readonly TransferType[]; // the keys of a constant

export type TransferValue = string | number | Buffer | null;
/** A record: its columns, and the rows that belong to it by field. */
export interface TransferRecord {
  [field: string]: TransferValue | TransferRecord[];
}

/** The kind of a type, in its general form. */
export function transferKind(type: TransferType): TransferKind {
  return TRANSFER_KINDS[type];
}
