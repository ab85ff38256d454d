import { describe, expect, it } from 'vitest';
import { contactSearch, type SearchPosition } from '../../src/audience/search.ts';
import { fold } from '../../src/audience/search-key.ts';
import { granted } from '../support/refusal.ts';
import { CALLER, startAudience } from './setup.ts';

type AudienceSetup = Awaited<ReturnType<typeof startAudience>>;

/** The addresses of all contacts that are found, page by page. */
function found(setup: AudienceSetup, text: string, filter: object = {}, limit = 2): string[] {
  const emails: string[] = [];
  let after: SearchPosition | null = null;
  do {
    const page = contactSearch.run(setup.tables, { accountId: 'acct_one', text, limit, after, ...filter });
    emails.push(...page.rows.map(({ contact }) => contact.email ?? ''));
    after = page.next;
  } while (after !== null);
  return emails;
}

async function startWithPeople(): Promise<AudienceSetup> {
  const setup = await startAudience();
  await setup.add('ada.lovelace@example.net', { firstName: 'Ada', lastName: 'Lovelace' });
  await setup.add('grace@example.net', { firstName: 'Grace', lastName: 'Hopper' });
  await setup.add('zoe@example.org', { firstName: 'Zoë', lastName: 'Müller-Lüdenscheidt' });
  await setup.add('lovely@example.org', { lastName: 'Ада' });
  await setup.add('nobody@example.org');
  granted(
    await setup.contacts.create('acct_two', { email: 'ada.other@example.net', firstName: 'Ada' }, CALLER),
  );
  return setup;
}

describe('a search finds', () => {
  it.each([
    ['an address', 'ada.lo', ['ada.lovelace@example.net']],
    ['an address beyond what is indexed', 'ada.lovelace@exam', ['ada.lovelace@example.net']],
    ['no address with characters added', 'ada.lovelace@example.netx', []],
    ['a first name', 'grace', ['grace@example.net']],
    ['a last name', 'hopper', ['grace@example.net']],
    ['a full name', 'ada love', ['ada.lovelace@example.net']],
    ['the address or the name', 'love', ['lovely@example.org', 'ada.lovelace@example.net']],
    ['capitals and more spaces', 'ADA  LoveLACE', ['ada.lovelace@example.net']],
    ['other accents', 'zoë müller-lu', ['zoe@example.org']],
    ['no accents', 'MULLER', ['zoe@example.org']],
    ['another script', 'ад', ['lovely@example.org']],
    ['the middle of a word', 'lace', ['ada.lovelace@example.net']],
    ['no short words inside a word', 'ce', []],
    ['every word, in any order', 'lovelace ada', ['ada.lovelace@example.net']],
    ['no words of different people', 'lovelace hopper', []],
    ['no trigrams that are not adjacent', 'lovaceelace', []],
    ['nothing by an accent alone', '\u0301', []],
    ['no pattern', '%', []],
    ['no pattern', '_da', []],
  ])('%s: %s', async (_, text, emails) => {
    expect(found(await startWithPeople(), text)).toEqual(emails);
  });

  it('return a contact with two matches once', async () => {
    const setup = await startAudience();
    await setup.add('ada@example.net', { firstName: 'Ada', lastName: 'Adamson' });
    expect(found(setup, 'ada')).toEqual(['ada@example.net']);
  });

  it('within a status', async () => {
    const setup = await startWithPeople();
    await setup.suppress('grace@example.net', 'hard_bounce');
    expect(found(setup, 'g', { status: 'bounced' })).toEqual(['grace@example.net']);
    expect(found(setup, 'a', { status: 'bounced' })).toEqual([]);
  });

  it('within a group, active or not', async () => {
    const setup = await startWithPeople();
    const { seq } = granted(setup.groups.get('acct_one', setup.groupId));
    const join = (email: string, isActive: boolean) =>
      setup.subscriptions.add('acct_one', setup.groupId, { email, isActive }, CALLER).then(granted);
    await join('lovely@example.org', true);
    await join('ada.lovelace@example.net', false);
    expect(found(setup, 'love', { groupSeq: seq })).toHaveLength(2);
    expect(found(setup, 'love', { groupSeq: seq, isActive: true })).toEqual(['lovely@example.org']);
    expect(found(setup, 'g', { groupSeq: seq })).toEqual([]);
  });
});

describe('pages of a search', () => {
  it('return every contact once, in order, for any page size, also when many share a prefix', async () => {
    const setup = await startAudience();
    const emails = Array.from(
      { length: 25 },
      (_, n) => `sharedprefix${String(n).padStart(2, '0')}@example.net`,
    );
    for (const email of emails.toReversed())
      await setup.add(email, { firstName: 'Shared', lastName: 'Sharedson' });
    for (const limit of [1, 2, 7, 25, 200]) {
      expect(found(setup, 'shared', {}, limit).toSorted(), `${limit} a page`).toEqual(emails);
      expect(found(setup, 'sharedprefix1', {}, limit)).toHaveLength(10);
    }
  });

  it('read a bounded number of contacts: a short page may have a next one', async () => {
    const setup = await startAudience();
    await setup.writer.run(() => {
      const add = setup.db.prepare(`
        INSERT INTO contacts (account_id, user_id, email, email_hash, custom_fields, global_status, source, added_by, email_key, search_text, created_at, updated_at)
        VALUES ('acct_one', ?, ?, ?, '{}', ?, 'api', 'x', 'crowded.', '', 1, 1)`);
      for (let n = 0; n < 2500; n++)
        add.run(`u${n}`, `crowded.${n}@example.net`, `email_${n}`, n === 2499 ? 'bounced' : 'active');
    });
    const first = contactSearch.run(setup.tables, {
      accountId: 'acct_one',
      text: 'cr',
      status: 'bounced',
      limit: 50,
      after: null,
    });
    expect(first.rows).toEqual([]);
    expect(first.next).not.toBeNull();
    expect(found(setup, 'cr', { status: 'bounced' })).toEqual(['crowded.2499@example.net']);
  });
});

it.each([
  ['Zoë  MÜLLER ', 'zoe muller'],
  ['ﬁ ½', 'fi 1⁄2'],
  ['ΣΊΣΥΦΟΣ', 'σισυφος'],
])('%j is folded to %j', (text, folded) => expect(fold(text)).toBe(folded));
