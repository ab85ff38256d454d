import { describe, expect, it } from 'vitest';
import { maintainerOf } from '../../.packaging/deb.ts';

const ADA = 'Ada Example <ada@example.net>';

describe('the maintainer of the package', () => {
  it.each([
    ['the option', ADA, { DEBEMAIL: 'other@example.net' }, ADA],
    ['name and address', undefined, { DEBFULLNAME: 'Ada Example', DEBEMAIL: 'ada@example.net' }, ADA],
    ['an address with a name', undefined, { DEBFULLNAME: 'Bob', DEBEMAIL: ADA }, ADA],
    ['an address alone', undefined, { DEBEMAIL: 'ada@example.net' }, 'Postrider packages <ada@example.net>'],
    ['nothing', undefined, {}, 'Unknown builder <root@localhost>'],
  ])('is taken from %s', (_, option, env, expected) => {
    expect(maintainerOf(option, env)).toBe(expected);
  });

  it.each(['Ada', 'ada@example.net', '', 'Ada <ada>', 'Ada <a@b>\nDepends: x', ' <a@b>'])(
    'is not %j',
    (text) => {
      expect(() => maintainerOf(text, {})).toThrow('must be "Name <address>"');
    },
  );
});
