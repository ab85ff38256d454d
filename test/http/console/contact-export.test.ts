import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createContacts } from '../../../src/audience/contacts.ts';
import { createIds } from '../../../src/core/ids.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { isRefusal } from '../../../src/core/refusal.ts';
import { createLocalReader } from '../../../src/store/readers/reads.ts';
import { accepted, startConsole, type TestBrowser, type TestConsole } from './harness.ts';

let test: TestConsole;
beforeEach(async () => {
  test = await startConsole();
});
afterEach(() => test.stop());

async function addContacts(account: string, names: readonly string[]): Promise<void> {
  const { tables, writer, clock } = test;
  const contacts = createContacts(
    { tables, reader: createLocalReader(tables), writer, clock, ids: createIds(clock, systemRandom) },
    { recorder: { optedOut: () => false }, mayAdd: () => null },
  );
  const actor = { by: 'key_1', ipAddress: null, userAgent: null };
  for (const name of names) {
    const created = await contacts.create(
      account,
      { email: `${name}@example.net`, firstName: '=1+1' },
      actor,
    );
    if (isRefusal(created)) throw new Error(created.message);
  }
}

async function download(browser: TestBrowser, query: string) {
  const response = await fetch(`${test.base}/console/exports/contacts?${query}`, {
    headers: { ...browser.credentials(), 'Sec-Fetch-Dest': 'empty', 'Sec-Fetch-Site': 'same-origin' },
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const records = () =>
  test.tables.auditRecords
    .list({}, 20)
    .rows.filter(({ operation }) => operation === 'console.exportContacts')
    .map(({ outcome, account_id }) => ({ outcome, account: account_id }));

describe('the export of contacts', () => {
  it('has all contacts of the account in pages, and is recorded', async () => {
    const owner = await test.member('owner');
    const names = Array.from({ length: 450 }, (_, n) => `person${n}`);
    await addContacts(test.account, names);
    await addContacts(test.other, ['edsger']);
    const { status, headers, text } = await download(owner, `account=${test.account}`);
    expect(status).toBe(200);
    expect(headers.get('content-disposition')).toBe('attachment; filename="contacts.csv"');
    const [head, ...lines] = text.trimEnd().split('\r\n');
    expect(head).toMatch(/^contactIdentifier,email,/);
    const found = lines.map((line) => /"([^"]+)@example\.net"/.exec(line)?.[1]);
    expect(found).toEqual(names.toReversed());
    expect(lines[0]).toContain(`"'=1+1"`);
    expect(records()).toEqual([{ outcome: 'done', account: test.account }]);
  });

  it('has what a search finds', async () => {
    const owner = await test.member('owner');
    await addContacts(test.account, ['ada', 'grace']);
    const { text } = await download(owner, `account=${test.account}&search=grace&status=active`);
    expect(text).toContain('grace@example.net');
    expect(text).not.toContain('ada@');
    expect((await download(owner, `account=${test.account}&status=new`)).status).toBe(400);
  });

  it('is refused for a segment that does not exist', async () => {
    const owner = await test.member('owner');
    const { status, text } = await download(owner, `account=${test.account}&segmentId=segment_none`);
    expect([status, JSON.parse(text)]).toMatchObject([404, { error: { code: 'SEGMENT_NOT_FOUND' } }]);
  });

  it('runs twice at the same time for one person, and never stops that of another', async () => {
    const [owner, second] = [await test.member('owner'), await test.member('owner', 'second@example.com')];
    await addContacts(
      test.account,
      Array.from({ length: 450 }, (_, n) => `person${n}`),
    );
    const statusOf = async (browser: TestBrowser) =>
      (await download(browser, `account=${test.account}`)).status;
    const own = Array.from({ length: 8 }, () => statusOf(owner));
    expect(await statusOf(second)).toBe(200);
    expect(new Set(await Promise.all(own))).toEqual(new Set([200, 429]));
    expect(await statusOf(owner)).toBe(200);
  });

  it('runs four times for an account, and leaves others their exports', async () => {
    await test.stop();
    let endReads: () => void = () => {};
    const beforeReads = new Promise<void>((resolve) => {
      endReads = resolve;
    });
    test = await startConsole({ beforeReads });
    const owners = [];
    for (let n = 0; n < 6; n++) owners.push(await test.member('owner', `owner${n}@example.com`));
    const running: Promise<string>[] = [];
    const begin = async (browser: TestBrowser, account: string) => {
      const response = await fetch(`${test.base}/console/exports/contacts?account=${account}`, {
        headers: { ...browser.credentials(), 'Sec-Fetch-Dest': 'empty', 'Sec-Fetch-Site': 'same-origin' },
      });
      running.push(response.text());
      return response.status;
    };
    const statuses = [];
    for (const owner of owners) statuses.push(await begin(owner, test.account));
    expect(statuses).toEqual([200, 200, 200, 200, 429, 429]);
    const other = { email: 'other@example.com', role: 'owner' } as const;
    const invited = accepted(await test.people.invite(test.other, other, 'operator'));
    expect(await begin(await test.signInWith(invited), test.other)).toBe(200);
    expect(await begin(await test.operator(), test.account)).toBe(200);
    endReads();
    await Promise.all(running);
  });

  it.each(['sender', 'author', 'developer', 'viewer'] as const)(
    'is denied to a %s, which is recorded',
    async (role) => {
      const member = await test.member(role);
      await addContacts(test.account, ['ada']);
      const { status, text } = await download(member, `account=${test.account}`);
      expect(status).toBe(403);
      expect(text).not.toContain('ada@');
      expect(records()).toEqual([{ outcome: 'denied', account: test.account }]);
    },
  );
});
