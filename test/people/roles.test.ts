import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { PERMISSIONS, ROLE_PERMISSIONS, ROLES, rolesWith } from '../../src/people/roles.ts';

const document = readFileSync(new URL('../../docs/reference/permissions.md', import.meta.url), 'utf8');

/** The cells of the table that begins with this header cell. */
function tableOf(first: string): string[][] {
  const start = document.indexOf(`| ${first} |`);
  const table = document.slice(start, document.indexOf('\n\n', start));
  return table.split('\n').map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

it('docs/reference/permissions.md shows the permissions of each role', () => {
  const [header = [], , ...rows] = tableOf('role');
  const shown = rows.map(([role = '', ...cells]) => [
    role,
    header.slice(1).filter((_, index) => cells[index] === 'yes'),
  ]);
  expect(shown).toEqual(
    ROLES.map((role) => [role, PERMISSIONS.filter((name) => ROLE_PERMISSIONS[role].includes(name))]),
  );
});

it('docs/reference/permissions.md describes each permission of a role', () => {
  const described = tableOf('permission')
    .slice(2)
    .map(([name]) => name);
  expect(described).toEqual(PERMISSIONS.filter((name) => name !== 'operator'));
});

it('only owners may export, erase and change people, and an author cannot send', () => {
  for (const permission of ['export', 'erase', 'people', 'account'] as const)
    expect(rolesWith(permission)).toEqual(['owner']);
  expect(rolesWith('send')).toEqual(['owner', 'sender']);
});
