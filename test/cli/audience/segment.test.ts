import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createShell } from '../run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(async () => {
  shell = createShell();
  for (const id of ['shop', 'other']) await shell.run('account', 'create', '--name', 'Shop', '--id', id);
  const people = fileOf(
    'people.csv',
    'email,customFields.plan\nada@example.net,gold\ngrace@example.net,free\nada@gmial.com,gold\n',
  );
  await shell.run('contacts', 'import', people, '--account', 'shop');
});
afterEach(() => shell.remove());

function fileOf(name: string, text: string): string {
  const file = join(dirname(shell.file), name);
  writeFileSync(file, text);
  return file;
}

const GOLD = { field: 'customFields.plan', op: 'is', value: 'gold' };
const create = (filter: string, ...args: string[]) =>
  shell.run('segments', 'create', fileOf('filter.json', filter), '--account', 'shop', ...args);

describe('segment', () => {
  it('is created from a file, counted, listed, used in the list of contacts, and deleted', async () => {
    const { out } = await create(JSON.stringify(GOLD), '--name', 'Gold', '--json');
    const segment = JSON.parse(out);
    expect(segment).toMatchObject({ name: 'Gold', filter: GOLD, count: 2 });
    const { segmentId } = segment;
    const listed = await shell.json('segment', 'list', '--account', 'shop', '--json');
    expect(listed).toEqual([segment]);
    const shown = await shell.run('segment', 'show', segmentId, '--account', 'shop');
    expect(shown.out).toMatch(/count +2\n/);
    expect(shown.out).toContain('"value": "gold"');
    const contacts = (...args: string[]) =>
      shell.run('contacts', 'list', '--segment', segmentId, '--account', 'shop', ...args);
    const rows: { email: string }[] = JSON.parse((await contacts('--json')).out);
    expect(rows.map(({ email }) => email)).toEqual(['ada@gmial.com', 'ada@example.net']);
    expect((await contacts('--search', 'ada')).status).toBe(2);
    const foreign = await shell.run('segment', 'delete', segmentId, '--account', 'other');
    expect([foreign.status, foreign.err]).toEqual([
      1,
      expect.stringContaining(`There is no segment ${segmentId}`),
    ]);
    expect((await shell.run('segment', 'delete', segmentId, '--account', 'shop')).out).toBe(
      'Segment Gold is deleted',
    );
    expect(await shell.json('segment', 'list', '--account', 'shop', '--json')).toEqual([]);
  });

  it.each<[what: string, filter: string, message: string]>([
    ['a file that is not JSON', '{', 'filter.json is not JSON'],
    ['an unknown condition', '{"plan":"gold"}', 'filter'],
    ['a group that does not exist', '{"group":"sgroup_none"}', 'filter.group: is not a subscription group'],
  ])('refuses %s', async (_, filter, message) => {
    const { status, err } = await create(filter, '--name', 'Gold');
    expect([status, err]).toEqual([2, expect.stringContaining(message)]);
    expect(await shell.json('segment', 'list', '--account', 'shop', '--json')).toEqual([]);
  });
});

describe('contacts hygiene', () => {
  it('examines the addresses without a daemon, and shows the last examination', async () => {
    const run = (...args: string[]) =>
      shell.run('contacts', 'hygiene', '--account', 'shop', '--json', ...args);
    expect((await run('--last')).err).toContain('No examination is stored');
    const { out, status } = await run();
    expect(status).toBe(0);
    const examined = JSON.parse(out);
    expect(examined).toMatchObject({ status: 'completed', counts: { examined: 3, typo: 1 } });
    expect(JSON.parse((await run('--last')).out)).toEqual(examined);
    const group = await run('--group', 'sgroup_none');
    expect([group.status, group.err]).toEqual([1, expect.stringContaining('sgroup_none')]);
  });
});
