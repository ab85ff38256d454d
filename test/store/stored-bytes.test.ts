import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { packContent } from '../../src/mail/stored-content.ts';
import { createTemplates } from '../../src/templates/templates.ts';
import { CALLER, GROUP, startAudience } from '../audience/setup.ts';
import { granted } from '../support/refusal.ts';

/**
 * The triggers of `stored_bytes`, compared with the sums of what is stored: the statement of the migration, with the
 * column that templates got later.
 */
const MIGRATION = readFileSync(
  new URL('../../src/store/migrations/0047-stored-bytes.sql', import.meta.url),
  'utf8',
);
const SUMS = (/INSERT INTO stored_bytes (SELECT account_id, sum[^;]*);/.exec(MIGRATION)?.[1] ?? '').replace(
  ' AS bytes FROM templates',
  ' + coalesce(octet_length(variables), 0) AS bytes FROM templates',
);

async function start() {
  const setup = await startAudience();
  const { db, tables } = setup;
  const counted = () =>
    db
      .prepare(
        "SELECT account_id, bytes FROM stored_bytes WHERE typeof(account_id) = 'text' AND bytes <> 0 ORDER BY 1",
      )
      .all();
  const stored = () =>
    db.prepare(`SELECT account_id, "sum(bytes)" AS bytes FROM (${SUMS}) ORDER BY account_id`).all();
  return { ...setup, counted, stored, bytes: () => tables.accountLimits.storedBytes('acct_one') };
}

describe('the bytes of an account', () => {
  it('are those of its contacts, templates, campaigns and groups after any change of them', async () => {
    const setup = await start();
    const { counted, stored, bytes, db } = setup;
    const same = () => expect(counted()).toEqual(stored());
    expect(SUMS).not.toBe('');
    same();
    const before = bytes();
    const ada = await setup.add('ada@example.net', { customFields: { note: 'x'.repeat(10_000) } });
    await setup.add('eve@example.net', { firstName: 'Ève' });
    same();
    expect(bytes() - before).toBeGreaterThan(10_000);
    await setup.contacts.update(
      'acct_one',
      ada.email_hash ?? '',
      { customFields: { note: 'ü' } },
      {
        ...CALLER,
        merge: false,
      },
    );
    same();
    await setup.groups.create('acct_one', { ...GROUP, description: 'y'.repeat(1000) });
    same();
    const templates = createTemplates(setup, () => null);
    const content = { name: 'T', type: null, subject: 'S', html: '<p>a</p>', text: null, variables: ['a'] };
    const template = granted(await templates.create('acct_one', content));
    for (let n = 0; n < 15; n++) {
      granted(
        await templates.update('acct_one', template.template_id, {
          html: `<p>${'b'.repeat(100 * n)}</p>`,
          variables: Array(n).fill('ü'),
        }),
      );
      same();
    }
    granted(await templates.remove('acct_one', template.template_id));
    same();
    expect(db.prepare('SELECT count(*) FROM template_versions').pluck().get()).toBe(0);
    await setup.erasure.erase('acct_one', ada.email_hash ?? '');
    await setup.erasure.erase('acct_one', 'eve@example.net');
    same();
  });

  it('include the contents of its messages until they are deleted, but no content of unknown origin', async () => {
    const { tables, writer, db, clock, bytes } = await start();
    const before = bytes();
    const key = { campaignSeq: 0, digest: Buffer.alloc(32, 1), accountId: 'acct_one' };
    await writer.run((tx) => {
      const sharedId = tx.sharedContents.findOrInsert(key, packContent('z'.repeat(500)), clock.now());
      tx.messages.insertContent({ ...packContent('"own"'), sharedId }, clock.now(), 'acct_one');
      tx.sharedContents.addCopies(sharedId, 1);
      tx.messages.insertContent(packContent('{}'), clock.now());
    });
    const sum = () =>
      db
        .prepare<[], number>(
          'SELECT (SELECT total(100 + octet_length(body)) FROM contents WHERE account IS NOT NULL) + (SELECT total(100 + octet_length(body)) FROM shared_contents)',
        )
        .pluck()
        .get();
    expect(bytes() - before).toBe(sum());
    db.exec('UPDATE contents SET body = \'"another"\' WHERE account IS NOT NULL');
    expect(bytes() - before).toBe(sum());
    db.exec('DELETE FROM contents; DELETE FROM shared_contents');
    expect(bytes()).toBe(before);
    expect(tables.accountLimits.storedBytes('acct_two')).toBe(0);
  });
});

it('counts suppressions', async () => {
  const { suppress, lift, tables } = await start();
  const count = () => tables.accountLimits.count('suppressions', 'acct_one');
  await suppress('a@example.net', 'hard_bounce');
  await suppress('a@example.net', 'manual');
  expect(count()).toBe(2);
  await lift('a@example.net');
  expect(count()).toBe(0);
});
