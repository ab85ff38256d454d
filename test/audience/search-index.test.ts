import { describe, expect, it } from 'vitest';
import { contactSearch, type SearchPosition } from '../../src/audience/search.ts';
import { CONTACT_SEARCH_STEP } from '../../src/audience/search-fill.ts';
import { createLog } from '../../src/core/log.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { createBackgroundSteps } from '../../src/store/migrate/background-steps.ts';
import { CALLER, ok, startAudience } from './setup.ts';

type House = Awaited<ReturnType<typeof startAudience>>;

function found(house: House, text: string, accountId = 'acct_one'): string[] {
  const emails: string[] = [];
  let after: SearchPosition | null = null;
  do {
    const page = contactSearch.run(house.tables, { accountId, text, limit: 2, after });
    emails.push(...page.rows.map(({ contact }) => contact.email ?? ''));
    after = page.next;
  } while (after !== null);
  return emails;
}

/** All terms that are in the index. */
function termsOf({ db }: House): string[] {
  db.exec('CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts5vocab(main, contact_search, row)');
  return db.prepare<[], string>('SELECT term FROM temp.terms ORDER BY term').pluck().all();
}

const PROFILE = { firstName: 'Ada', lastName: 'Lovelace', phone: '+442079460000' };

describe('the search index', () => {
  it('follows every write of a contact', async () => {
    const house = await startAudience();
    await house.add('ada@example.net', PROFILE);
    const id = emailIdentifier('ada@example.net');
    const change = (changes: object) =>
      house.contacts.update('acct_one', id, changes, { ...CALLER, merge: true }).then(ok);
    expect(found(house, 'velac')).toEqual(['ada@example.net']);
    await change({ lastName: 'King', customFields: { title: 'velac' } });
    expect([found(house, 'velac'), found(house, 'kin')]).toEqual([[], ['ada@example.net']]);
    await change({ phone: null });
    expect(found(house, '7946')).toEqual([]);
    await change({ email: 'countess@example.net' });
    expect(found(house, 'ount')).toEqual(['countess@example.net']);
    expect(found(house, id)).toEqual([]);
    expect(found(house, emailIdentifier('countess@example.net').slice(-8))).toEqual(['countess@example.net']);
  });

  it('keeps no term of a contact that was changed or erased', async () => {
    const house = await startAudience();
    await house.add('other@example.net');
    const before = termsOf(house);
    const { user_id } = await house.add('ada@example.org', PROFILE);
    expect(termsOf(house).length).toBeGreaterThan(before.length + 40);
    const id = emailIdentifier('ada@example.org');
    ok(await house.contacts.update('acct_one', id, { lastName: 'King' }, { ...CALLER, merge: true }));
    ok(await house.erasure.erase('acct_one', id));
    expect(termsOf(house)).toEqual(before);
    expect(found(house, user_id)).toEqual([]);
  });

  it('has rows that an import adds', async () => {
    const house = await startAudience();
    const records = [{ line: 1, text: 'x', fault: null, end: { byte: 1, line: 1 } }];
    await house.importer.run({
      accountId: 'acct_one',
      groupId: null,
      actor: CALLER,
      reader: {
        ignored: new Set(),
        ignoredTruncated: () => false,
        read: () => ({ line: 1, profile: { email: 'imported@example.net' } }),
      },
      records: (async function* () {
        yield records;
      })(),
      signal: new AbortController().signal,
      batchRows: 10,
      pauseShare: 0,
    });
    expect(found(house, 'porte')).toEqual(['imported@example.net']);
  });

  it('gives candidates of one account only, from all ranges, newest first', async () => {
    const house = await startAudience();
    await house.add('first@example.net');
    house.db.exec("UPDATE sqlite_sequence SET seq = 500000 WHERE name = 'contacts'");
    ok(await house.contacts.create('acct_two', { email: 'theirs@example.net' }, CALLER));
    await house.add('second@example.net');
    house.db.exec("UPDATE sqlite_sequence SET seq = 9000000 WHERE name = 'contacts'");
    await house.add('third@example.net');
    expect(found(house, 'example')).toEqual(['third@example.net', 'second@example.net', 'first@example.net']);
    const hits = house.tables.contacts.find({
      accountId: 'acct_two',
      anyOf: [[{ text: 'example', identifier: null }]],
      before: Number.MAX_SAFE_INTEGER,
      limit: 100,
    });
    expect(hits).toEqual({ seqs: [500001], next: null });
  });

  it('is asked for a bounded number of candidates: a page may be short and still go on', async () => {
    const house = await startAudience();
    // All trigrams of the text, but not next to each other. Not hexadecimal digits: an identifier could contain them.
    for (let n = 0; n < 600; n++) await house.add(`vwxy-wxyz-${n}@example.net`);
    const first = contactSearch.run(house.tables, {
      accountId: 'acct_one',
      text: 'vwxyz',
      limit: 50,
      after: null,
    });
    expect(first).toMatchObject({ rows: [], next: { before: expect.any(Number) } });
    expect(found(house, 'vwxyz')).toEqual([]);
  });

  it('takes words of any length and any characters', async () => {
    const house = await startAudience();
    await house.add('ada@example.net', { firstName: '👩🏽‍🚀🏳️‍🌈', lastName: `"' OR * ^ ${'x'.repeat(180)}` });
    for (const text of ['🚀🏳️‍🌈', '"\' OR', 'x'.repeat(180), ' * xxx'])
      expect(found(house, text), text).toEqual(['ada@example.net']);
    for (const text of ['x'.repeat(320), 'NEAR("xxx")', '🚀🚀🚀'])
      expect(found(house, text), text).toEqual([]);
  });
});

describe('contacts of a database without the index', () => {
  async function startUpgraded(): Promise<House> {
    const house = await startAudience();
    for (let n = 0; n < 450; n++) await house.add(`ada${n}@example.net`, { lastName: 'Lovelace' });
    house.db.exec(`
      UPDATE contacts SET search_text = NULL;
      INSERT INTO contact_search (contact_search) VALUES ('delete-all')`);
    return house;
  }

  async function indexAll({ writer, tables }: Awaited<ReturnType<typeof startUpgraded>>): Promise<void> {
    const log = createLog({ level: 'silent', hashAddresses: true });
    const steps = createBackgroundSteps({
      steps: [CONTACT_SEARCH_STEP],
      writer,
      log,
      pause: async () => {},
    });
    steps.start();
    await expect.poll(steps.pending, { timeout: 30_000 }).toBe(0);
    expect(tables.contacts.isIndexing('acct_one')).toBe(false);
    await steps.stop();
  }

  it('are found by beginnings until they are added in the background, then by any part', async () => {
    const house = await startUpgraded();
    expect(found(house, 'ada44@')).toEqual(['ada44@example.net']);
    expect(found(house, 'a44@')).toEqual([]);
    await indexAll(house);
    expect(found(house, 'a44@')).toEqual(['ada44@example.net']);
    expect(found(house, 'velac')).toHaveLength(450);
  });

  it('may be changed and erased before they are added', async () => {
    const house = await startUpgraded();
    const how = { ...CALLER, merge: true };
    ok(
      await house.contacts.update('acct_one', emailIdentifier('ada1@example.net'), { lastName: 'King' }, how),
    );
    ok(await house.erasure.erase('acct_one', emailIdentifier('ada2@example.net')));
    await indexAll(house);
    expect(found(house, 'kin')).toEqual(['ada1@example.net']);
    expect(found(house, 'velac')).toHaveLength(448);
    expect(found(house, 'ada2@')).toEqual([]);
  });
});
