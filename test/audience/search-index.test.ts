import { describe, expect, it } from 'vitest';
import { contactSearch, type SearchPosition } from '../../src/audience/search.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { granted } from '../support/refusal.ts';
import { CALLER, startAudience } from './setup.ts';

type AudienceSetup = Awaited<ReturnType<typeof startAudience>>;

function found(setup: AudienceSetup, text: string, accountId = 'acct_one'): string[] {
  const emails: string[] = [];
  let after: SearchPosition | null = null;
  do {
    const page = contactSearch.run(setup.tables, { accountId, text, limit: 2, after });
    emails.push(...page.rows.map(({ contact }) => contact.email ?? ''));
    after = page.next;
  } while (after !== null);
  return emails;
}

/** All terms that are in the index. */
function termsOf({ db }: AudienceSetup): string[] {
  db.exec('CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts5vocab(main, contact_search, row)');
  return db.prepare<[], string>('SELECT term FROM temp.terms ORDER BY term').pluck().all();
}

const PROFILE = { firstName: 'Ada', lastName: 'Lovelace', phone: '+442079460000' };

describe('the search index', () => {
  it('follows every write of a contact', async () => {
    const setup = await startAudience();
    await setup.add('ada@example.net', PROFILE);
    const id = emailIdentifier('ada@example.net');
    const change = (changes: object) =>
      setup.contacts.update('acct_one', id, changes, { ...CALLER, merge: true }).then(granted);
    expect(found(setup, 'velac')).toEqual(['ada@example.net']);
    await change({ lastName: 'King', customFields: { title: 'velac' } });
    expect([found(setup, 'velac'), found(setup, 'kin')]).toEqual([[], ['ada@example.net']]);
    await change({ phone: null });
    expect(found(setup, '7946')).toEqual([]);
    await change({ email: 'countess@example.net' });
    expect(found(setup, 'ount')).toEqual(['countess@example.net']);
    expect(found(setup, id)).toEqual([]);
    expect(found(setup, emailIdentifier('countess@example.net').slice(-8))).toEqual(['countess@example.net']);
  });

  it('keeps no term of a contact that was changed or erased', async () => {
    const setup = await startAudience();
    await setup.add('other@example.net');
    const before = termsOf(setup);
    const { user_id } = await setup.add('ada@example.org', PROFILE);
    expect(termsOf(setup).length).toBeGreaterThan(before.length + 40);
    const id = emailIdentifier('ada@example.org');
    granted(await setup.contacts.update('acct_one', id, { lastName: 'King' }, { ...CALLER, merge: true }));
    granted(await setup.erasure.erase('acct_one', id));
    expect(termsOf(setup)).toEqual(before);
    expect(found(setup, user_id)).toEqual([]);
  });

  it('includes contacts that an import adds', async () => {
    const setup = await startAudience();
    const records = [{ line: 1, text: 'x', fault: null, end: { byte: 1, line: 1 } }];
    await setup.importer.run({
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
    expect(found(setup, 'porte')).toEqual(['imported@example.net']);
  });

  it('returns candidates of one account only, from all ranges, newest first', async () => {
    const setup = await startAudience();
    await setup.add('first@example.net');
    setup.db.exec("UPDATE sqlite_sequence SET seq = 500000 WHERE name = 'contacts'");
    granted(await setup.contacts.create('acct_two', { email: 'theirs@example.net' }, CALLER));
    await setup.add('second@example.net');
    setup.db.exec("UPDATE sqlite_sequence SET seq = 9000000 WHERE name = 'contacts'");
    await setup.add('third@example.net');
    expect(found(setup, 'example')).toEqual(['third@example.net', 'second@example.net', 'first@example.net']);
    const hits = setup.tables.contacts.find({
      accountId: 'acct_two',
      anyOf: [[{ text: 'example', identifier: null }]],
      before: Number.MAX_SAFE_INTEGER,
      limit: 100,
    });
    expect(hits).toEqual({ seqs: [500001], next: null });
  });

  it('returns a bounded number of candidates: a short page may have a next one', async () => {
    const setup = await startAudience();
    // All trigrams of the text, but not next to each other. Not hexadecimal digits: an identifier could contain them.
    for (let n = 0; n < 600; n++) await setup.add(`vwxy-wxyz-${n}@example.net`);
    const first = contactSearch.run(setup.tables, {
      accountId: 'acct_one',
      text: 'vwxyz',
      limit: 50,
      after: null,
    });
    expect(first).toMatchObject({ rows: [], next: { before: expect.any(Number) } });
    expect(found(setup, 'vwxyz')).toEqual([]);
  });

  it('accepts words of any length and any characters', async () => {
    const setup = await startAudience();
    await setup.add('ada@example.net', { firstName: '👩🏽‍🚀🏳️‍🌈', lastName: `"' OR * ^ ${'x'.repeat(180)}` });
    for (const text of ['🚀🏳️‍🌈', '"\' OR', 'x'.repeat(180), ' * xxx'])
      expect(found(setup, text), text).toEqual(['ada@example.net']);
    for (const text of ['x'.repeat(320), 'NEAR("xxx")', '🚀🚀🚀'])
      expect(found(setup, text), text).toEqual([]);
  });
});
