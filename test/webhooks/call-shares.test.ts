import { expect, it } from 'vitest';
import { createCallShares } from '../../src/webhooks/call-shares.ts';

it('gives an account all calls while it is alone, and an equal share next to others', () => {
  const shares = createCallShares(4);
  for (let n = 0; n < 4; n++) {
    expect(shares.isBelowShare('one')).toBe(true);
    shares.started('one');
  }
  expect(shares.isBelowShare('one')).toBe(false);
  expect(shares.isBelowShare('two')).toBe(true);
  shares.started('two');
  shares.started('two');
  expect(shares.isBelowShare('two')).toBe(false);
  for (let n = 0; n < 3; n++) shares.ended('one');
  expect(shares.isBelowShare('one')).toBe(true);
  for (let n = 0; n < 2; n++) shares.ended('two');
  expect(shares.isBelowShare('two')).toBe(true);
});

it('lets each account have one call when there are more accounts than calls', () => {
  const shares = createCallShares(2);
  const accounts = ['one', 'two', 'three'];
  for (const account of accounts) {
    expect(shares.isBelowShare(account)).toBe(true);
    shares.started(account);
  }
  for (const account of accounts) expect(shares.isBelowShare(account)).toBe(false);
});
