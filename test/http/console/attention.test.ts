import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addPerson } from '../../../src/audience/people.ts';
import { emailIdentifier } from '../../../src/mail/identifier.ts';
import { granted } from '../../support/refusal.ts';
import { startConsole, type TestBrowser, type TestConsole } from './harness.ts';

describe('a request for erasure', () => {
  let test: TestConsole;
  beforeEach(async () => {
    test = await startConsole();
  });
  afterEach(() => test.stop());

  /** A contact who asked to be erased some minutes ago. */
  async function request(email: string, minutesAgo: number): Promise<void> {
    const { tables, writer, ids, clock, account } = test;
    const provenance = { by: 'key_one', ipAddress: null, userAgent: null, at: clock.now() };
    await writer.run((tx) => {
      const context = {
        accountId: account,
        source: 'api' as const,
        defaultMethod: 'double_opt_in' as const,
        provenance,
        mayAdd: () => null,
      };
      granted(addPerson(tx, ids, { email }, context));
      const contact = tx.contacts.byIdentifier(account, emailIdentifier(email));
      if (contact === null) throw new Error('no contact');
      tx.contacts.update({ ...contact, erasure_requested_at: clock.now() - minutesAgo * 60_000 });
    });
    expect(
      tables.contacts.byIdentifier(account, emailIdentifier(email))?.erasure_requested_at,
    ).not.toBeNull();
  }

  const itemsFor = async (browser: TestBrowser) => {
    const { status, data } = await browser.get('/console/attention', test.account);
    expect(status).toBe(200);
    return data['items'];
  };

  it('is named with its time, the oldest first, to people who may erase, and to no others', async () => {
    await request('ada@example.net', 60);
    await request('bob@example.net', 90);
    const expected = [
      ['bob@example.net', '2026-01-31T10:30:00'],
      ['ada@example.net', '2026-01-31T11:00:00'],
    ].map(([name = '', since = '']) => ({
      kind: 'erasure',
      name,
      contactIdentifier: emailIdentifier(name),
      since: expect.stringContaining(since),
      isNew: true,
    }));
    for (const browser of [await test.operator(), await test.member('owner')])
      expect(await itemsFor(browser)).toMatchObject(expected);
    for (const role of ['sender', 'author', 'developer', 'viewer'] as const)
      expect(await itemsFor(await test.member(role))).toEqual([]);
  });

  it('of the oldest time is named however many later ones there are', async () => {
    await request('old@example.net', 90);
    for (let n = 0; n < 20; n++) await request(`new${n}@example.net`, 10);
    const items = (await itemsFor(await test.operator())) as { name: string }[];
    expect(items).toHaveLength(20);
    expect(items[0]?.name).toBe('old@example.net');
  });

  it('ends with the erasure or the withdrawal', async () => {
    await request('ada@example.net', 1);
    const { account, writer } = test;
    await writer.run((tx) => {
      const contact = tx.contacts.byIdentifier(account, emailIdentifier('ada@example.net'));
      if (contact !== null) tx.contacts.update({ ...contact, erasure_requested_at: null });
    });
    expect(await itemsFor(await test.operator())).toEqual([]);
  });
});
