import { describe, expect, it } from 'vitest';
import {
  type BodyShare,
  createBodyBudget,
  UNCOUNTED_BODY_BYTES,
} from '../../../src/http/body/body-budget.ts';

const MIB = 1024 * 1024;

/** Takes pieces until one is refused. Returns the bytes that were taken. */
function fill(share: BodyShare, most = 1024 * MIB): number {
  let taken = 0;
  while (taken < most && share.take(MIB) === null) taken += MIB;
  return taken;
}

describe('the budget of request bodies', () => {
  it('admits bodies of other accounts, independent of the bodies and keys of one', () => {
    const budget = createBodyBudget(256 * MIB);
    let held = 0;
    for (let n = 0; n < 40; n++) held += fill(budget.open({ accountId: 'abuser', keyId: `key_${n}` }));
    expect(held).toBeLessThanOrEqual(132 * MIB);
    expect(fill(budget.open({ accountId: 'other', keyId: 'key_other' }), 32 * MIB)).toBe(32 * MIB);
  });

  it('admits bodies of the other keys of an account', () => {
    const budget = createBodyBudget(256 * MIB);
    for (let n = 0; n < 8; n++) fill(budget.open({ accountId: 'one', keyId: 'full' }));
    expect(fill(budget.open({ accountId: 'one', keyId: 'other' }), 32 * MIB)).toBe(32 * MIB);
  });

  it('always admits small bodies', () => {
    const budget = createBodyBudget(MIB);
    fill(budget.open({ accountId: 'abuser', keyId: 'a' }));
    fill(budget.open({ accountId: 'abuser', keyId: 'b' }));
    for (let n = 0; n < 100; n++) {
      const share = budget.open({ accountId: 'abuser', keyId: 'a' });
      expect(share.take(UNCOUNTED_BODY_BYTES)).toBeNull();
    }
  });

  it('releases the bytes of a body', () => {
    const budget = createBodyBudget(256 * MIB);
    const open = () => budget.open({ accountId: 'one', keyId: 'key' });
    const first = open();
    const most = fill(first);
    expect(open().take(MIB)).toMatchObject({ code: 'RATE_LIMITED' });
    first.release();
    expect(fill(open())).toBe(most);
  });
});
