import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createContext } from '../../src/cli/context.ts';
import { storeMail } from '../inbound/setup.ts';
import { insertAccount, insertDomain } from '../support/store.ts';
import { createShell } from './run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(async () => {
  shell = createShell();
  await inDatabase(({ tables, clock }) => {
    const now = clock.now();
    for (const accountId of ['shop', 'other']) insertAccount(tables, accountId, now);
    insertDomain(tables, { account_id: 'shop', domain_id: 'domain_one', name: 'example.com' }, now);
  });
});
afterEach(() => shell.remove());

type Opened = Awaited<ReturnType<ReturnType<typeof createContext>['open']>>;

async function inDatabase(work: (opened: Opened) => void): Promise<void> {
  const context = createContext(() => shell.file);
  const opened = await context.open();
  await opened.writer.run(() => work(opened));
  await context.close();
}

const ofShop = ['--account', 'shop'];
const CREATE = ['inbound-routes', 'create', ...ofShop, '--name', 'Support', '--domain', 'domain_one'];

describe('postrider inbound-routes', () => {
  it('creates, lists, updates and deletes a route', async () => {
    const route = await shell.json(...CREATE, '--match', '*@in.example.com', '--json');
    expect(route).toMatchObject({ match: '*@in.example.com', action: 'store', isActive: true });
    expect(await shell.json('inbound-routes', 'list', ...ofShop, '--json')).toEqual([route]);
    expect((await shell.run('inbound-routes', 'list', ...ofShop)).out).toContain('*@in.example.com');
    const update = ['inbound-routes', 'update', route.routeId, ...ofShop];
    const changed = await shell.json(...update, '--spam-policy', 'reject', '--inactive', '--json');
    expect(changed).toMatchObject({
      ...route,
      spamPolicy: 'reject',
      isActive: false,
      updatedAt: expect.any(String),
    });
    expect(await shell.json(...update, '--active', '--json')).toMatchObject({ isActive: true });
    const foreign = await shell.run('inbound-routes', 'delete', route.routeId, '--account', 'other');
    expect([foreign.status, foreign.err]).toEqual([1, expect.stringContaining('There is no inbound route')]);
    expect((await shell.run('inbound-routes', 'delete', route.routeId, ...ofShop)).out).toBe(
      'The inbound route *@in.example.com has been deleted',
    );
    expect(await shell.json('inbound-routes', 'list', ...ofShop, '--json')).toEqual([]);
  });

  it.each([
    ['a foreign host', [...CREATE, '--match', 'a@in.example.net'], 'match: must be at example.com'],
    ['a route without address', CREATE, 'match'],
    ['an update without fields', ['inbound-routes', 'update', 'route_one', ...ofShop], 'Nothing to change'],
    [
      'both states',
      ['inbound-routes', 'update', 'route_one', ...ofShop, '--active', '--inactive'],
      'exclude',
    ],
  ])('refuses %s', async (_, args, message) => {
    const { status, err } = await shell.run(...args);
    expect([status, err]).toEqual([2, expect.stringContaining(message)]);
    expect(await shell.json('inbound-routes', 'list', ...ofShop, '--json')).toEqual([]);
  });
});

describe('postrider inbound', () => {
  it('lists, shows and deletes received mail of its account', async () => {
    let inboundId = '';
    await inDatabase((opened) => {
      inboundId = storeMail(opened, { accountId: 'shop' });
      const { seq = 0 } = opened.tables.inbound.byId(inboundId) ?? {};
      opened.tables.inbound.setParsed({
        seq,
        from_address: 'grace@example.net',
        subject: 'Hello \u001b]0;owned\u0007',
        answers: null,
        automatic: null,
        is_loop: 0,
        attachments: 0,
        parse_error: null,
        authentication: null,
        content: JSON.stringify({
          headers: [],
          text: 'Thank you.',
          isTextCut: false,
          html: null,
          isHtmlCut: false,
          replyText: 'Thank you.',
          attachments: [
            { name: 'a.pdf', type: 'application/pdf', size: 6, contentId: null, isInline: false },
          ],
        }),
      });
      storeMail(opened, { accountId: 'other' });
    });
    const listed = await shell.json('inbound', 'list', ...ofShop, '--from', 'Grace@example.net', '--json');
    expect(listed).toMatchObject([{ inboundId, from: 'grace@example.net', status: 'parsed' }]);
    expect(await shell.json('inbound', 'list', ...ofShop, '--from', 'ada@example.net', '--json')).toEqual([]);
    const { out } = await shell.run('inbound', 'show', inboundId, ...ofShop);
    expect(out).toContain('attachment: a.pdf (application/pdf, 6 bytes)\n\nThank you.');
    expect(out).not.toContain('\u001b');
    expect((await shell.run('inbound', 'show', inboundId, '--account', 'other')).status).toBe(1);
    expect((await shell.run('inbound', 'delete', inboundId, '--account', 'other')).status).toBe(1);
    expect((await shell.run('inbound', 'delete', inboundId, ...ofShop)).out).toContain('has been deleted');
    expect(await shell.json('inbound', 'list', ...ofShop, '--json')).toEqual([]);
    await inDatabase(({ tables }) => {
      // The daemon deletes its source.
      expect(tables.inbound.unfinished('deleting', 10)).toHaveLength(1);
    });
  });
});
