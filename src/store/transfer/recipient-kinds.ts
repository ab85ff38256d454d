import type { TransferKind } from './transfer-kind.ts';

/** The public id of the group with the number in a column of row `t`. */
const groupId = '(SELECT g.subscription_group_id FROM subscription_groups g WHERE g.seq = t.group_seq)';

/** Records about recipients, and about messages that were sent to them. */
export const RECIPIENT_KINDS = {
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
