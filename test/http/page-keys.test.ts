import { describe, expect, it } from 'vitest';
import { createPageKeys } from '../../src/http/page-keys.ts';

const keys = createPageKeys({ tagKey: Buffer.alloc(32, 1), key: Buffer.alloc(32, 2) });
const KEY = 'messages:1592';

describe('a page key', () => {
  it('is opened for the account that got it, and has the same form each time', () => {
    const sealed = keys.seal('acct_one', KEY);
    expect(keys.open('acct_one', sealed)).toBe(KEY);
    expect(keys.seal('acct_one', KEY)).toBe(sealed);
  });

  it('shows neither the list nor the position', () => {
    const bytes = Buffer.from(keys.seal('acct_one', KEY), 'base64url').toString('latin1');
    expect(bytes).not.toMatch(/messages|1592/);
    const next = keys.seal('acct_one', 'messages:1593');
    expect(next.slice(0, 20)).not.toBe(keys.seal('acct_one', KEY).slice(0, 20));
  });

  it.each([
    ['of another account', keys.seal('acct_two', KEY)],
    ['that was not sealed', KEY],
    ['that was cut off', keys.seal('acct_one', KEY).slice(0, -2)],
    ['with another last byte', `${keys.seal('acct_one', KEY).slice(0, -3)}AAA`],
    ['with another tag', `AAAA${keys.seal('acct_one', KEY).slice(4)}`],
    ['that is a tag only', Buffer.alloc(12).toString('base64url')],
    ['that is no base64url', '!!!'],
  ])('%s is refused', (_, sealed) => {
    expect(keys.open('acct_one', sealed)).toBeNull();
  });

  it.each(['', 'a:', `search:${'ü'.repeat(80)}`])('is opened whatever its text: %j', (text) => {
    const sealed = keys.seal('acct_one', text);
    expect(text === '' ? '' : keys.open('acct_one', sealed)).toBe(text);
  });
});
