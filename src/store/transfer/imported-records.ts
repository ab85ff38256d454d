import type Sqlite from 'better-sqlite3';
import { lazyProperties } from '../../core/lazy-properties.ts';
import { cachedLookup } from '../cached-rows.ts';
import type { sequencePeopleTable } from '../campaigns/sequences.ts';
import type { consentTable } from '../contacts/consent.ts';
import type { contactTable } from '../contacts/contacts.ts';
import type { subscriptionTable } from '../contacts/subscriptions.ts';
import type { Database } from '../database/database.ts';
import { statements } from '../database/statements.ts';
import type { ChangeKind } from './account-moves.ts';
import {
  columnsOf,
  type TransferChild,
  type TransferKind,
  type TransferRecord,
  type TransferType,
  type TransferValue,
  transferKind,
} from './kinds.ts';
import type { movedMessageTable } from './moved-messages.ts';

/** Kinds whose records are rows of one table and of its children; the others are inserted by their tables. */
export type PlainType = Exclude<TransferType, 'contact' | 'moved_message'>;

/** The account of the records. */
export interface ImportScope {
  accountId: string;
  /** Epoch ms. */
  now: number;
}

/** Columns that are unique in the whole database, by kind; a record with a value of another account is refused. */
const UNIQUE_COLUMNS: Partial<Record<TransferType, readonly (readonly [table: string, column: string])[]>> = {
  api_key: [
    ['api_keys', 'key_id'],
    ['api_keys', 'hash'],
  ],
  domain_group: [['domain_groups', 'group_id']],
  domain: [
    ['domains', 'domain_id'],
    ['domains', 'alt_domain_id'],
  ],
  partial: [['partials', 'partial_id']],
  template: [['templates', 'template_id']],
  compliance_template: [['compliance_templates', 'template_id']],
  subscription_group: [
    ['subscription_groups', 'subscription_group_id'],
    ['subscription_groups', 'archive_key'],
  ],
  webhook: [['webhooks', 'webhook_id']],
  inbound_route: [['inbound_routes', 'route_id']],
  campaign: [['campaigns', 'campaign_id']],
  segment: [['segments', 'segment_id']],
  sequence: [['sequences', 'sequence_id']],
  media: [
    ['media', 'media_id'],
    ['media', 'link'],
  ],
};

/** Tables with rows of an account, in the order in which they can be deleted, with their primary keys. */
const OWNED: readonly (readonly [table: string, key: string])[] = [
  ['message_counts', 'account_id, slot'],
  ['idempotency', 'account_id, endpoint, key'],
  ['strikes', 'account_id, recipient_hash, kind, at'],
  ['spam_rates', 'account_id, day, provider, about'],
  ['suppressions', 'seq'],
  ['media', 'seq'],
  ['media_contents', 'seq'],
  ['segments', 'seq'],
  ['sequences', 'seq'],
  ['campaigns', 'seq'],
  ['inbound_routes', 'seq'],
  ['webhooks', 'number'],
  ['subscription_groups', 'seq'],
  ['compliance_templates', 'seq'],
  ['templates', 'seq'],
  ['partials', 'seq'],
  ['domains', 'domain_id'],
  ['domain_groups', 'group_id'],
  ['api_keys', 'key_id'],
  ['account_limits', 'account_id'],
  ['token_keys', 'account_id'],
  ['public_pages', 'account_id'],
  ['contact_counts', 'account_id'],
  ['suppression_counts', 'account_id'],
  ['stored_bytes', 'account_id'],
  ['account_imports', 'account_id'],
  ['accounts', 'account_id'],
];

/** Kinds without identity whose rows in a difference replace all of the account, with their primary keys. */
const REPLACED = [
  ['message_counts', 'account_id, slot'],
  ['spam_rates', 'account_id, day, provider, about'],
  ['segments', 'seq'],
  ['inbound_routes', 'seq'],
  ['compliance_templates', 'seq'],
  ['partials', 'seq'],
] as const;

/** Further tables that an import over a copy of the account empties. */
const REPLACED_ONCE = [
  ['idempotency', 'account_id, endpoint, key'],
  ['strikes', 'account_id, recipient_hash, kind, at'],
  ['suppressions', 'seq'],
] as const;

/** Kinds whose deleted rows are cleared in the background. */
const CLEARED_LATER: ReadonlySet<TransferType> = new Set(['subscription_group', 'sequence']);

/** The tables that remove rows which `OWNED` does not name. */
interface RemovingTables {
  movedMessages: ReturnType<typeof movedMessageTable>;
  contacts: ReturnType<typeof contactTable>;
  consents: ReturnType<typeof consentTable>;
  subscriptions: ReturnType<typeof subscriptionTable>;
  sequencePeople: ReturnType<typeof sequencePeopleTable>;
}

type Values = Record<string, TransferValue>;
type Insert = Sqlite.Statement<[Values]>;

interface Prepared {
  insert: Insert;
  /** Updates the row with the same identity and returns the key of its children; null: rows of this kind are only inserted. */
  replace: Sqlite.Statement<[Values], TransferValue> | null;
  children: { field: string; parent: string; insert: Insert; remove: Sqlite.Statement<[TransferValue]> }[];
}

/** The records of accounts that come from another installation. Each statement is prepared at its first use. */
export function importedRecordTable(db: Database) {
  const prepared = new Map<TransferType, Prepared>();
  const removing = new Map<string, Sqlite.Statement<[string, number]>>();
  const finding = new Map<string, Sqlite.Statement<[TransferValue, string], number>>();
  const lazy = lazyProperties({
    contacts: () =>
      db.prepare<[string, number], number>('SELECT seq FROM contacts WHERE account_id = ? LIMIT +?').pluck(),
    removeOptOuts: () =>
      db.prepare<[string, number]>(`
        DELETE FROM group_opt_outs WHERE (group_seq, recipient_hash) IN (
          SELECT o.group_seq, o.recipient_hash
          FROM subscription_groups g CROSS JOIN group_opt_outs o ON o.group_seq = g.seq
          WHERE g.account_id = ? LIMIT +?)`),
    ofJob: () =>
      db
        .prepare<[string, string], number>(
          'SELECT 1 FROM campaign_sends WHERE job_id = ? AND account_id <> ?',
        )
        .pluck(),
    hasContent: () =>
      db
        .prepare<[string, string], number>(
          "SELECT 1 FROM media_contents WHERE account_id = ? AND hash = unhex(?) AND state = 'stored'",
        )
        .pluck(),
    /** What is stored about a recipient besides the contact. */
    ofRecipient: () =>
      [
        'DELETE FROM suppressions WHERE account_id = ? AND recipient_hash = ?',
        'DELETE FROM strikes WHERE account_id = ? AND recipient_hash = ?',
        `DELETE FROM group_opt_outs
           WHERE EXISTS (SELECT 1 FROM subscription_groups WHERE seq = +group_seq AND account_id = ?) AND recipient_hash = ?`,
      ].map((text) => db.prepare<[string, string]>(text)),
    removeAnswer: () =>
      db.prepare<[string, string, string]>(
        'DELETE FROM idempotency WHERE account_id = ? AND endpoint = ? AND key = ?',
      ),
    unused: () =>
      db.prepare<[string]>(`
        UPDATE media_contents SET state = 'deleting' WHERE account_id = ? AND state = 'stored'
          AND NOT EXISTS (SELECT 1 FROM media m WHERE m.content_seq = media_contents.seq)`),
  });

  function prepare(type: PlainType): Prepared {
    const kind = transferKind(type);
    const own = type === 'group_opt_out' ? {} : { account_id: '@accountId' };
    const known = prepared.get(type) ?? {
      insert: db.prepare<[Values]>(insertInto(db, kind, { ...own, ...kind.fixed, ...kind.initial })),
      replace:
        kind.identity === undefined ? null : db.prepare<[Values], TransferValue>(updateOf(db, kind)).pluck(),
      children: Object.entries(kind.children ?? {}).map(([field, child]) => ({
        field,
        parent: child.link.parent,
        insert: db.prepare<[Values]>(
          insertInto(db, child, { [child.link.column]: '@parent', ...child.fixed }),
        ),
        remove: db.prepare<[TransferValue]>(`DELETE FROM ${child.table} WHERE ${child.link.column} = ?`),
      })),
    };
    prepared.set(type, known);
    return known;
  }

  function removeRows(table: string, key: string, accountId: string, limit: number): number {
    const statement =
      removing.get(table) ??
      db.prepare<[string, number]>(`
        DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE account_id = ? LIMIT +?)`);
    removing.set(table, statement);
    return statement.run(accountId, limit).changes;
  }

  function removeContacts(tables: RemovingTables, accountId: string, limit: number): number {
    const seqs = lazy.contacts.all(accountId, limit);
    for (const seq of seqs) removeContact(tables, seq);
    return seqs.length;
  }

  function removeContact(tables: RemovingTables, seq: number): void {
    clearContact(tables, seq);
    tables.contacts.remove(seq);
  }

  function clearContact(tables: RemovingTables, seq: number): void {
    tables.subscriptions.removeOfContact(seq);
    tables.sequencePeople.removeOfContact(seq);
    tables.consents.removeAll(seq);
    tables.contacts.clearEngagement(seq);
  }

  function isStored(table: string, column: string, value: TransferValue, accountId: string): boolean {
    const name = `${table}.${column}`;
    const statement =
      finding.get(name) ??
      db
        .prepare<[TransferValue, string], number>(
          `SELECT 1 FROM ${table} WHERE ${column} = ? AND account_id <> ?`,
        )
        .pluck();
    finding.set(name, statement);
    return statement.get(value, accountId) !== undefined;
  }

  function aboutRecipients(tables: RemovingTables, accountId: string, limit: number): (() => number)[] {
    return [
      () => tables.movedMessages.removeOf(accountId, limit),
      () => removeContacts(tables, accountId, limit),
      () => lazy.removeOptOuts.run(accountId, limit).changes,
    ];
  }

  function rowsOf(
    list: readonly (readonly [table: string, key: string])[],
    accountId: string,
    limit: number,
  ): (() => number)[] {
    return list.map(
      ([table, key]) =>
        () =>
          removeRows(table, key, accountId, limit),
    );
  }

  /** Runs the steps until one has removed something; returns how much. */
  function removeFirst(steps: readonly (() => number)[]): number {
    for (const step of steps) {
      const removed = step();
      if (removed > 0) return removed;
    }
    return 0;
  }

  return {
    /**
     * Inserts a record, or writes it over the account's row with the same identity. Throws SQLite's error when a value is not
     * unique or violates a condition of the table. Only in a unit of work.
     */
    put: (type: PlainType, record: TransferRecord, { accountId, now }: ImportScope): void => {
      const { insert, replace, children } = prepare(type);
      const values = { ...valuesOf(record), accountId, now };
      const replaced = replace?.get(values);
      const number = replaced === undefined ? Number(insert.run(values).lastInsertRowid) : replaced;
      for (const { field, parent, insert: insertChild, remove } of children) {
        const rows = record[field];
        const key = parent === 'seq' || parent === 'number' ? number : parentKey(values, parent);
        if (replaced !== undefined) remove.run(key);
        if (Array.isArray(rows))
          for (const row of rows) insertChild.run({ ...valuesOf(row), accountId, now, parent: key });
      }
    },
    /** Whether the account has a content with this hash, in hexadecimal. */
    hasContent: (accountId: string, hash: string): boolean =>
      lazy.hasContent.get(accountId, hash) !== undefined,
    /**
     * Removes up to `limit` rows that records without an identity replace: in a difference those of kinds that it has
     * completely, else all. Returns how many; 0: nothing is left. Only in a unit of work, with its tables.
     */
    clearSome: (
      tables: RemovingTables,
      accountId: string,
      { isDifference, limit }: { isDifference: boolean; limit: number },
    ): number => {
      const once = [...aboutRecipients(tables, accountId, limit), ...rowsOf(REPLACED_ONCE, accountId, limit)];
      return removeFirst([...(isDifference ? [] : once), ...rowsOf(REPLACED, accountId, limit)]);
    },
    /**
     * Removes what the account has about a recipient, or an answer, before the difference has it again. The contact itself
     * stays, and its seq is returned: the caller updates it or removes it with `removeContact`, because its entry in the
     * search index costs more than everything else of it. In a unit of work.
     */
    clearChanged: (
      tables: RemovingTables,
      accountId: string,
      kind: ChangeKind,
      key: string,
    ): number | null => {
      if (kind === 'answer') {
        const at = key.indexOf(' ');
        lazy.removeAnswer.run(accountId, key.slice(0, at), key.slice(at + 1));
        return null;
      }
      const contact = tables.contacts.byIdentifier(accountId, key);
      if (contact !== null) clearContact(tables, contact.seq);
      for (const statement of lazy.ofRecipient) statement.run(accountId, key);
      return contact?.seq ?? null;
    },
    /** Removes a contact with all that belongs to it. In a unit of work. */
    removeContact,
    /** Removes rows with an identity that a complete file does not have. Only in a unit of work. */
    removeAbsent: (type: TransferType, known: ReadonlySet<string>, { accountId, now }: ImportScope): void => {
      const { table, identity, where } = transferKind(type);
      if (identity === undefined) return;
      const ids = db
        .prepare<[ImportScope], string>(`SELECT t.${identity} FROM ${table} t WHERE ${where}`)
        .pluck()
        .all({ accountId, now })
        .filter((id) => !known.has(id));
      const change = CLEARED_LATER.has(type)
        ? `UPDATE ${table} SET deleted_at = @now`
        : `DELETE FROM ${table}`;
      const remove = db.prepare<[{ id: string; now: number }]>(`${change} WHERE ${identity} = @id`);
      for (const id of ids) remove.run({ id, now });
    },
    /** Contents that no image has any more are deleted in the background. Only in a unit of work. */
    releaseContents: (accountId: string): void => {
      lazy.unused.run(accountId);
    },
    /** The first column of a record whose value another account has; null: there is none. */
    conflict: (type: TransferType, record: TransferRecord, accountId: string): string | null => {
      const values: Values = { ...valuesOf(record), account_id: accountId };
      const found = UNIQUE_COLUMNS[type]?.find(([table, column]) =>
        isStored(table, column, values[column] ?? null, accountId),
      );
      return found === undefined ? null : found[1];
    },
    /** Whether a campaign of another account has the job. */
    hasJob: (jobId: string, accountId: string): boolean => lazy.ofJob.get(jobId, accountId) !== undefined,
    /**
     * Removes up to `limit` rows of an account whose import was not completed, the account last. Returns how many; 0:
     * nothing is left. Only in a unit of work, with its tables.
     */
    removeSome: (tables: RemovingTables, accountId: string, limit: number): number =>
      removeFirst([...aboutRecipients(tables, accountId, limit), ...rowsOf(OWNED, accountId, limit)]),
  };
}

/** Columns with a number of this database, for which a record has another name of the row. */
const REFERENCES: Readonly<Record<string, string>> = {
  group_seq:
    '(SELECT seq FROM subscription_groups WHERE subscription_group_id = @group_seq AND account_id = @accountId)',
  content_seq:
    "(SELECT seq FROM media_contents WHERE account_id = @accountId AND hash = unhex(@content_seq) AND state = 'stored')",
};

function insertInto(
  db: Database,
  kind: TransferKind | TransferChild,
  written: Readonly<Record<string, string>>,
): string {
  const columns = columnsOf(db, kind);
  const expressions = [
    ...columns.map((column) => REFERENCES[column] ?? `@${column}`),
    ...Object.values(written),
  ];
  return `INSERT INTO ${kind.table} (${[...columns, ...Object.keys(written)].join(', ')}) VALUES (${expressions.join(', ')})`;
}

/** Writes a record over the row with its identity, and returns the number of the row, or its identity. */
function updateOf(db: Database, kind: TransferKind): string {
  const { table, identity = '', fixed = {}, children = {} } = kind;
  const set = [
    ...columnsOf(db, kind).map((column) => `${column} = ${REFERENCES[column] ?? `@${column}`}`),
    ...Object.entries(fixed).map(([column, value]) => `${column} = ${value}`),
  ];
  const numbered = Object.values(children).find(({ link }) => ['seq', 'number'].includes(link.parent));
  const same = identity === 'account_id' ? '' : `AND ${identity} = @${identity}`;
  return `UPDATE ${table} SET ${set.join(', ')} WHERE account_id = @accountId ${same}
    RETURNING ${numbered?.link.parent ?? identity}`;
}

/** The columns of a record without its children. */
function valuesOf(record: TransferRecord): Values {
  const values: Values = {};
  for (const [column, value] of Object.entries(record)) if (!Array.isArray(value)) values[column] = value;
  return values;
}

function parentKey(values: Values, column: string): TransferValue {
  return (column === 'account_id' ? values['accountId'] : values[column]) ?? null;
}

/** The key that an account brought from another installation, sealed; see mail/tokens. */
export interface TokenKeyRow {
  /** 10 hexadecimal digits. */
  tag: string;
  account_id: string;
  key: Buffer;
}

/** `token_keys`, by tag; `byTag` is cached until a write. The caller seals and opens the keys. */
export function tokenKeyTable(db: Database) {
  const sql = statements(db);
  const byTag = sql.get<[string], TokenKeyRow>('SELECT * FROM token_keys WHERE tag = ?');
  const withTag = cachedLookup(db, (tag: string) => byTag(tag));
  return {
    /** Replaces the key of the account. */
    put: sql.run<[row: TokenKeyRow]>(`
      INSERT INTO ${sql.row('token_keys')} ON CONFLICT (tag) DO UPDATE SET key = excluded.key`),
    /** Null: no account with this tag came from another installation. */
    byTag: (tag: string): TokenKeyRow | null => withTag(tag),
    /** Null: the account was created here. */
    of: sql.get<[accountId: string], TokenKeyRow>('SELECT * FROM token_keys WHERE account_id = ?'),
  };
}

/** The import of an account that is not complete. */
export interface AccountImportRow {
  account_id: string;
  /** SHA-256 of the records in the file, in hexadecimal. */
  digest: string;
  /** Records that are imported. */
  records: number;
  started_at: number;
  updated_at: number;
  /** The move whose first file is imported completely: its difference is missing. Null: the file is not complete. */
  move_id: string | null;
}

/**
 * `account_imports`: a row exists from the first portion of an import until everything is imported. `put` leaves `digest` and
 * `started_at` of an existing one unchanged.
 */
export function accountImportTable(db: Database) {
  const sql = statements(db);
  return {
    /** Null: no import of the account is in progress. */
    get: sql.get<[accountId: string], AccountImportRow>('SELECT * FROM account_imports WHERE account_id = ?'),
    put: sql.run<[row: AccountImportRow]>(`
      INSERT INTO ${sql.row('account_imports')}
      ON CONFLICT (account_id) DO UPDATE SET
        records = excluded.records, updated_at = excluded.updated_at, move_id = excluded.move_id`),
    remove: sql.run<[accountId: string]>('DELETE FROM account_imports WHERE account_id = ?'),
  };
}
