import { expect, it } from 'vitest';
import { openSource } from '../../src/audience/import/source.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { granted } from '../support/refusal.ts';
import { CALLER, codeOf, startAudience } from './setup.ts';

async function* once(text: string) {
  yield Buffer.from(text);
}

it('refuses a contact over the limit, and accepts one after an erasure', async () => {
  const { contacts, add, erasure, tables } = await startAudience({ contacts: 2 });
  const create = (email: string) => contacts.create('acct_one', { email }, CALLER);
  await add('a@example.net');
  await add('b@example.net');
  expect(await create('c@example.net')).toMatchObject({
    code: 'LIMIT_REACHED',
    message: 'This account has reached its limit of 2 contacts',
  });
  expect(codeOf(await create('a@example.net'))).toBe('CONTACT_ALREADY_EXISTS');
  granted(await erasure.erase('acct_one', emailIdentifier('a@example.net')));
  expect(tables.accountLimits.count('contacts', 'acct_one')).toBe(1);
  granted(await create('c@example.net'));
});

it('rejects the rows of an import that are over the limit, and updates known contacts', async () => {
  const { importer, add, tables } = await startAudience({ contacts: 3 });
  await add('a@example.net');
  const rows = ['a@example.net,Ada', 'b@example.net,B', 'c@example.net,C', 'd@example.net,D'];
  const source = await openSource(once(`email,firstName\n${rows.join('\n')}\n`), 'csv');
  if (typeof source === 'string' || isRefusal(source)) throw new Error(JSON.stringify(source));
  const result = granted(
    await importer.run({
      accountId: 'acct_one',
      groupId: null,
      actor: CALLER,
      reader: source.reader,
      records: source.records,
      signal: new AbortController().signal,
      batchRows: 500,
      pauseShare: 0,
    }),
  );
  expect(result.counts).toMatchObject({ rows: 4, created: 2, updated: 1, rejected: 1 });
  expect(result.rejected).toEqual([{ line: 5, reason: 'This account has reached its limit of 3 contacts' }]);
  expect(tables.accountLimits.count('contacts', 'acct_one')).toBe(3);
});
