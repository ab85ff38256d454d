import { expect, it } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import { checkPassword, createPasswords } from '../../src/people/passwords.ts';

const passwords = createPasswords({ logCost: 4 });

it('verifies a password in either Unicode normalization', async () => {
  const stored = await passwords.hash('péché mortel 12'.normalize('NFC'));
  if (isRefusal(stored)) throw new Error(stored.message);
  expect(stored).toMatch(/^scrypt\$4\$[\w-]{22}\$[\w-]{43}$/);
  expect(await passwords.verify('péché mortel 12'.normalize('NFD'), stored)).toBe(true);
  expect(await passwords.verify('péché mortel 13', stored)).toBe(false);
});

it('never accepts a password where none is stored', async () => {
  expect(await passwords.verify('', null)).toBe(false);
  expect(await passwords.verify('anything at all', null)).toBe(false);
});

it('uses the cost that is stored with a hash', async () => {
  const stored = await createPasswords({ logCost: 6 }).hash('correct horse battery');
  if (isRefusal(stored)) throw new Error(stored.message);
  expect(await passwords.verify('correct horse battery', stored)).toBe(true);
});

it('refuses a ninth hash while eight are computed or wait', async () => {
  const results = await Promise.all(
    Array.from({ length: 12 }, () => passwords.hash('correct horse battery')),
  );
  expect(results.filter((result) => isRefusal(result) && result.code === 'UNAVAILABLE')).toHaveLength(4);
  expect(isRefusal(await passwords.hash('correct horse battery'))).toBe(false);
});

it('uses 128 MiB for a hash by default', async () => {
  const stored = await createPasswords().hash('correct horse battery');
  expect(stored).toMatch(/^scrypt\$17\$/);
});

it.each([
  ['elevenchars', /at least 12/],
  ['x'.repeat(257), /at most 256/],
  ['Ada.Lovelace@example.com', /mail address/],
  ['abcabcabcabc', /more than three different/],
])('refuses the password %s', (password, message) => {
  const refusal = checkPassword(password, 'ada.lovelace@example.com');
  expect(isRefusal(refusal) && refusal.message).toMatch(message);
});
