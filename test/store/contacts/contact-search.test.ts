import { statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ContactRow } from '../../../src/store/contacts/contacts.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { createTables } from '../../../src/store/tables.ts';
import { startStore, temporaryDir } from '../../support/store.ts';

type Store = ReturnType<typeof startStore>;

const CONTACTS = 15_000;
const ROWS_PER_UNIT = 50;
const FRAME_BYTES = 4096 + 24;

/** A contact whose text is unlike the others': its terms fill the index. */
function contact(seq: number): ContactRow {
  const digits = (Math.imul(seq, 2_654_435_761) >>> 0).toString(36).padStart(7, '0');
  return {
    seq,
    account_id: 'acct_one',
    user_id: `00000000-0000-7000-8000-${String(seq).padStart(12, '0')}`,
    email: `${digits}@example.net`,
    email_hash: null,
    phone: null,
    phone_hash: null,
    first_name: null,
    last_name: null,
    custom_fields: '{}',
    language: null,
    paused_until: null,
    erasure_requested_at: null,
    global_status: 'active',
    consent_n: null,
    source: 'api',
    added_by: 'key_one',
    email_key: null,
    name_key: null,
    last_name_key: null,
    created_at: 1,
    updated_at: 1,
    search_text: `${digits}@example.net\nfirst${seq % 1009} last${seq % 9973}`,
  };
}

/** Adds contacts; returns the pages of each commit. */
async function addContacts({ db, dir, tables, writer }: Store): Promise<number[]> {
  db.exec('PRAGMA synchronous = OFF');
  db.exec('PRAGMA wal_autocheckpoint = 0');
  const logBytes = () => statSync(`${dir}/postrider.db-wal`).size;
  const pages: number[] = [];
  for (let first = 1; first <= CONTACTS; first += ROWS_PER_UNIT) {
    const before = logBytes();
    await writer.run(() => {
      for (let seq = first; seq < first + ROWS_PER_UNIT; seq++) tables.contacts.insert(contact(seq));
    });
    pages.push((logBytes() - before) / FRAME_BYTES);
  }
  return pages;
}

function configurationOf({ db }: Pick<Store, 'db'>, option: string): number | undefined {
  return db.prepare<[string], number>('SELECT v FROM contact_search_config WHERE k = ?').pluck().get(option);
}

function segmentsOf({ db }: Store): number {
  return db.prepare<[], number>('SELECT count(DISTINCT segid) FROM contact_search_idx').pluck().get() ?? 0;
}

describe('the merge of the contact search index', () => {
  it('writes a bounded number of pages in each commit, and leaves few segments', async () => {
    const store = startStore();
    store.tables.contacts.configureIndex();
    const pages = await addContacts(store);
    expect(pages).toHaveLength(CONTACTS / ROWS_PER_UNIT);
    expect(Math.max(...pages)).toBeLessThan(100);
    expect(segmentsOf(store)).toBeLessThan(30);
    store.db.exec("INSERT INTO contact_search (contact_search) VALUES ('integrity-check')");
  });

  it('writes more pages in one commit without the configuration, with the automatic merge of FTS5', async () => {
    const store = startStore();
    const pages = await addContacts(store);
    expect(Math.max(...pages)).toBeGreaterThan(200);
  });

  it('is configured once in existing databases', () => {
    const dir = temporaryDir();
    const open = () => {
      const db = openDatabase(dir);
      return { db, tables: createTables(db) };
    };
    const first = open();
    expect(configurationOf(first, 'automerge')).toBeUndefined();
    first.tables.contacts.configureIndex();
    first.db.close();
    const second = open();
    expect(configurationOf(second, 'automerge')).toBe(0);
    expect(configurationOf(second, 'crisismerge')).toBe(1999);
    expect(configurationOf(second, 'secure-delete')).toBe(1);
    const changes = () => second.db.prepare<[], number>('SELECT total_changes()').pluck().get();
    const before = changes();
    second.tables.contacts.configureIndex();
    expect(changes()).toBe(before);
    second.db.close();
  });
});
