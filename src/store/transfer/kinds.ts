import type { Database } from '../database/database.ts';
import type { ChangeKind } from './account-moves.ts';
import { COLUMNS_NOT_EXPORTED } from './policies.ts';

/*
 * The records of an exported account. A record has the columns of a table (`columnsOf`), and the rows of other tables that
 * belong to a row. It never contains a number that is valid in one database only: references are public ids. Secrets are
 * columns, too: the caller opens and seals them.
 *
 * `policies.ts` states for every table of the schema whether it is exported; a test compares the schema with both, and
 * with the schemas of records in transfer/records.ts.
 */

export interface TransferKind {
  table: string;
  /** Columns that are stored in another form: the expression that reads them (of row `t`). */
  read?: Readonly<Record<string, string>>;
  /** Columns that are not in the record: the expression that an import writes. */
  fixed?: Readonly<Record<string, string>>;
  /** Columns that are not in the record either: the expression for a new row. An existing one keeps its value. */
  initial?: Readonly<Record<string, string>>;
  /** Condition for the rows of an account, with the parameters `@accountId` and `@now`. */
  where: string;
  /**
   * Condition for the rows in a difference, with `@lastContent`, too. Without it a difference has all rows of the kind: those
   * with an `identity` replace the rows with the same one, and others replace all.
   */
  changed?: string;
  /** The column with the public id of a row that others refer to, or that has data which is not in the file. */
  identity?: string;
  /** An order in which an index returns the rows. */
  order: string;
  /** Fields with the rows of other tables. */
  children?: Readonly<Record<string, TransferChild>>;
}

export interface TransferChild {
  table: string;
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

/** The keys that changed since the first file of a move. */
const changedKeys = (kind: ChangeKind, key: string) =>
  `SELECT ${key} FROM account_changes WHERE account_id = @accountId AND kind = '${kind}'`;
/** The numbers of an account's rows in a table whose column has a changed recipient. */
const seqsOfChanged = (table: string, column: string) =>
  `SELECT r.seq FROM account_changes k CROSS JOIN ${table} r ON r.account_id = k.account_id AND r.${column} = k.key
   WHERE k.account_id = @accountId AND k.kind = 'recipient'`;

/** The kinds in the order of their records in the file. */
export const TRANSFER_KINDS = {
  account: {
    table: 'accounts',
    // An account is enabled when requests are routed to its new installation.
    fixed: { status: "'disabled'" },
    initial: { moved_at: 'NULL' },
    where: 't.account_id = @accountId',
    identity: 'account_id',
    order: 't.account_id',
    children: {
      limits: {
        table: 'account_limits',
        link: { column: 'account_id', parent: 'account_id' },
        order: 't.account_id',
      },
      pages: {
        table: 'public_pages',
        link: { column: 'account_id', parent: 'account_id' },
        order: 't.account_id',
      },
    },
  },
  api_key: {
    table: 'api_keys',
    // A key with the scope `operator` belongs to the installation.
    where: `t.account_id = @accountId AND instr(t.scopes, '"operator"') = 0`,
    identity: 'key_id',
    order: 't.created_at, t.key_id',
  },
  domain_group: {
    table: 'domain_groups',
    where: 't.account_id = @accountId',
    identity: 'group_id',
    order: 't.created_at, t.group_id',
  },
  domain: {
    table: 'domains',
    // The domain is checked immediately. Its secondary lane has other records here, and is active once they are found.
    fixed: {
      alt_status: "'PENDING'",
      alt_dkim_enabled: '0',
      alt_spf_configured: '0',
      alt_dmarc_configured: '0',
      next_check_at: '@now',
      check_count: '0',
    },
    where: 't.account_id = @accountId',
    identity: 'domain_id',
    order: 't.created_at, t.domain_id',
    children: {
      dkim_keys: {
        table: 'dkim_keys',
        link: { column: 'domain_id', parent: 'domain_id' },
        order: 't.key_id',
      },
    },
  },
  partial: {
    table: 'partials',
    where: 't.account_id = @accountId',
    order: 't.seq',
  },
  template: {
    table: 'templates',
    where: 't.account_id = @accountId',
    identity: 'template_id',
    order: 't.seq',
  },
  compliance_template: {
    table: 'compliance_templates',
    where: 't.account_id = @accountId',
    order: 't.seq',
  },
  subscription_group: {
    table: 'subscription_groups',
    // The import of each membership increments the counts.
    fixed: { import_status: 'NULL', deleted_at: 'NULL' },
    initial: { total_subscribers: '0', active_subscribers: '0' },
    where: 't.account_id = @accountId AND t.deleted_at IS NULL',
    identity: 'subscription_group_id',
    order: 't.seq',
  },
  webhook: {
    table: 'webhooks',
    where: 't.account_id = @accountId',
    identity: 'webhook_id',
    order: 't.number',
    children: {
      secrets: {
        table: 'webhook_secrets',
        link: { column: 'webhook', parent: 'number' },
        where: '(t.expires_at IS NULL OR t.expires_at > @now)',
        order: 't.secret_id',
      },
    },
  },
  inbound_route: {
    table: 'inbound_routes',
    where: 't.account_id = @accountId',
    order: 't.seq',
  },
  campaign: {
    table: 'campaigns',
    where: 't.account_id = @accountId',
    identity: 'campaign_id',
    order: 't.seq',
    children: {
      sends: {
        table: 'campaign_sends',
        // Only a send in progress needs its position among the contacts.
        fixed: { account_id: '@accountId', last_seq: 'NULL', at_seq: '0', next_at: '0', open: '0' },
        link: { column: 'campaign_seq', parent: 'seq' },
        order: 't.campaign_seq',
      },
      mails: {
        table: 'campaign_mails',
        link: { column: 'campaign_seq', parent: 'seq' },
        order: 't.campaign_seq',
      },
      counts: {
        table: 'campaign_counts',
        link: { column: 'campaign_id', parent: 'campaign_id' },
        order: 't.hour',
      },
      links: {
        table: 'campaign_links',
        link: { column: 'campaign_id', parent: 'campaign_id' },
        order: 't.rowid',
      },
      variants: {
        table: 'campaign_variants',
        link: { column: 'campaign_seq', parent: 'seq' },
        order: 't.variant',
      },
      providers: {
        table: 'campaign_providers',
        link: { column: 'campaign_id', parent: 'campaign_id' },
        order: 't.provider',
      },
    },
  },
  segment: {
    table: 'segments',
    where: 't.account_id = @accountId',
    order: 't.seq',
  },
  sequence: {
    table: 'sequences',
    // Contacts are examined for their dates when the sequence is activated again.
    fixed: { scan_after: 'NULL', deleted_at: 'NULL' },
    where: 't.account_id = @accountId AND t.deleted_at IS NULL',
    identity: 'sequence_id',
    order: 't.seq',
    children: {
      versions: {
        table: 'sequence_versions',
        link: { column: 'sequence_seq', parent: 'seq' },
        order: 't.version',
      },
    },
  },
  media_content: {
    table: 'media_contents',
    fixed: { state: "'stored'" },
    where: "t.account_id = @accountId AND t.state = 'stored'",
    // A content does not change.
    changed: "t.account_id = @accountId AND t.state = 'stored' AND t.seq > @lastContent",
    order: 't.seq',
    children: {
      parts: {
        table: 'media_parts',
        link: { column: 'content_seq', parent: 'seq' },
        order: 't.n',
      },
    },
  },
  media: {
    table: 'media',
    read: { content_seq: '(SELECT lower(hex(c.hash)) FROM media_contents c WHERE c.seq = t.content_seq)' },
    where: 't.account_id = @accountId',
    identity: 'media_id',
    order: 't.seq',
  },
  // Records about recipients, and about messages that were sent to them.
  contact: {
    table: 'contacts',
    where: 't.account_id = @accountId',
    changed: `t.seq IN (${seqsOfChanged('contacts', 'email_hash')}
      UNION ${seqsOfChanged('contacts', 'phone_hash')})`,
    order: 't.seq',
    children: {
      consents: {
        table: 'consents',
        link: { column: 'contact_seq', parent: 'seq' },
        order: 't.n',
      },
      subscriptions: {
        table: 'subscriptions',
        read: { group_seq: groupId },
        link: { column: 'contact_seq', parent: 'seq' },
        where: '(SELECT g.deleted_at FROM subscription_groups g WHERE g.seq = t.group_seq) IS NULL',
        order: 't.group_seq',
      },
      engagement: {
        table: 'contact_engagement',
        link: { column: 'contact_seq', parent: 'seq' },
        order: 't.contact_seq',
      },
      campaigns: {
        table: 'campaign_contacts',
        read: { campaign_seq: '(SELECT c.campaign_id FROM campaigns c WHERE c.seq = t.campaign_seq)' },
        link: { column: 'contact_seq', parent: 'seq' },
        // Rows of deleted campaigns are deleted in the background.
        where: 'EXISTS (SELECT 1 FROM campaigns c WHERE c.seq = t.campaign_seq)',
        order: 't.campaign_seq',
      },
      sequences: {
        table: 'sequence_people',
        read: { sequence_seq: '(SELECT s.sequence_id FROM sequences s WHERE s.seq = t.sequence_seq)' },
        link: { column: 'contact_seq', parent: 'seq' },
        where: '(SELECT s.deleted_at FROM sequences s WHERE s.seq = t.sequence_seq) IS NULL',
        order: 't.seq',
      },
    },
  },
  group_opt_out: {
    table: 'group_opt_outs',
    read: { group_seq: groupId },
    where:
      't.group_seq IN (SELECT g.seq FROM subscription_groups g WHERE g.account_id = @accountId AND g.deleted_at IS NULL)',
    changed: `+t.group_seq IN (SELECT g.seq FROM subscription_groups g WHERE g.account_id = @accountId AND g.deleted_at IS NULL)
      AND t.recipient_hash IN (${changedKeys('recipient', 'key')})`,
    order: 't.group_seq, t.recipient_hash',
  },
  suppression: {
    table: 'suppressions',
    // The message stays where it was sent.
    fixed: { message_seq: 'NULL' },
    where: 't.account_id = @accountId',
    changed: `t.seq IN (${seqsOfChanged('suppressions', 'recipient_hash')})`,
    order: 't.seq',
  },
  strike: {
    table: 'strikes',
    where: 't.account_id = @accountId',
    changed: `t.account_id = @accountId AND t.recipient_hash IN (${changedKeys('recipient', 'key')})`,
    order: 't.recipient_hash, t.kind, t.at',
  },
  idempotency: {
    table: 'idempotency',
    where: 't.account_id = @accountId AND t.expires_at > @now',
    changed: `t.account_id = @accountId AND t.expires_at > @now AND (t.endpoint, t.key) IN (
      ${changedKeys('answer', "substr(key, 1, instr(key, ' ') - 1), substr(key, instr(key, ' ') + 1)")})`,
    order: 't.endpoint, t.key',
  },
  message_count: {
    table: 'message_counts',
    where: 't.account_id = @accountId',
    order: 't.slot',
  },
  spam_rate: {
    table: 'spam_rates',
    where: 't.account_id = @accountId',
    order: 't.day, t.provider, t.about',
  },
  // Not rows of the table: see exported-account.ts.
  moved_message: { table: 'moved_messages', where: '', order: '' },
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

/** The columns of the table that a record has: all but the account, the parent, those in `fixed` and COLUMNS_NOT_EXPORTED. */
export function columnsOf(db: Database, kind: TransferKind | TransferChild): string[] {
  const { table, fixed = {} } = kind;
  const written = 'initial' in kind ? { ...fixed, ...kind.initial } : fixed;
  const linked = 'link' in kind ? kind.link.column : 'account_id';
  const columns = db.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck().all(table);
  return columns.filter(
    (column) =>
      column !== linked &&
      written[column] === undefined &&
      COLUMNS_NOT_EXPORTED[`${table}.${column}`] === undefined,
  );
}
