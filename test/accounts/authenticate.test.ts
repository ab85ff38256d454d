import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Account, createAccounts } from '../../src/accounts/accounts.ts';
import { type Credentials, createAuthenticator } from '../../src/accounts/authenticate.ts';
import { type AccountScope, createKeys } from '../../src/accounts/keys.ts';
import { createFailureLimits } from '../../src/accounts/rate-limits.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { codeOf, granted, openStore } from './store.ts';

const HERE = { address: '192.0.2.1', forwarded: false };

let store: ReturnType<typeof openStore>;
let account: Account;
let secrets: Record<AccountScope, string>;
beforeEach(async () => {
  store = openStore();
  ({ account, keys: secrets } = granted(await createAccounts(store).create({ name: 'Shop' })));
});
afterEach(() => store.close());

function authenticator() {
  return createAuthenticator({ tables: store.tables }, { failures: createFailureLimits(store.clock) });
}

function credentials(more: Partial<Credentials> = {}): Credentials {
  return { secret: secrets.setup, accountId: account.accountId, from: HERE, ...more };
}

/** Creates a key with an allow-list; returns its secret. */
async function restrictedKey(allowIps: string[]): Promise<string> {
  const input = { accountId: account.accountId, name: '', scopes: ['setup'], allowIps };
  return granted(await createKeys(store).create(input)).secret;
}

describe('a valid key', () => {
  it('returns its account, its From domains and its restrictions', async () => {
    const input = {
      accountId: account.accountId,
      name: '',
      scopes: ['transactional'],
      allowFrom: ['example.com'],
      allowEssential: false,
      strictCompliance: true,
    };
    const { key, secret } = granted(await createKeys(store).create(input));
    expect(authenticator().authenticate(credentials({ secret }), 'transactional')).toEqual({
      accountId: account.accountId,
      keyId: key.keyId,
      scopes: ['transactional'],
      allowIps: [],
      allowFrom: ['example.com'],
      allowEssential: false,
      strictCompliance: true,
      livemode: true,
    });
  });

  it('returns a frozen caller, which later calls share', () => {
    const { authenticate } = authenticator();
    const caller = authenticate(credentials(), 'setup');
    expect(authenticate(credentials(), 'setup')).toBe(caller);
    const { scopes, allowIps, allowFrom } = granted(caller);
    expect([caller, scopes, allowIps, allowFrom].every((value) => Object.isFrozen(value))).toBe(true);
  });

  it.each<[AccountScope, AccountScope, string | null]>([
    ['setup', 'setup', null],
    ['setup', 'marketing', 'INSUFFICIENT_SCOPE'],
    ['setup', 'transactional', 'INSUFFICIENT_SCOPE'],
    ['marketing', 'marketing', null],
    ['marketing', 'transactional', 'INSUFFICIENT_SCOPE'],
    ['transactional', 'transactional', null],
    ['transactional', 'setup', 'INSUFFICIENT_SCOPE'],
  ])('of scope %s on an operation of %s', (has, wants, code) => {
    expect(codeOf(authenticator().authenticate(credentials({ secret: secrets[has] }), wants))).toBe(code);
  });
});

describe('a caller without a valid key', () => {
  it('receives the same refusal for every fault', async () => {
    const other = granted(await createAccounts(store).create({ name: 'Other' }));
    const revoked = granted(
      await createKeys(store).create({ accountId: account.accountId, name: '', scopes: ['setup'] }),
    );
    granted(await createKeys(store).revoke(revoked.key.keyId));
    const guard = authenticator();
    const answers = [
      { secret: '' },
      { secret: `pr_${'x'.repeat(43)}` },
      { secret: 'x'.repeat(100_000) },
      { secret: revoked.secret },
      { accountId: '' },
      { accountId: 'acct_nobody' },
      { accountId: other.account.accountId },
    ].map((wrong) => guard.authenticate(credentials(wrong), 'setup'));

    for (const answer of answers) {
      expect(answer).toEqual(answers[0]);
      expect(codeOf(answer)).toBe('UNAUTHENTICATED');
    }
  });

  it('is limited after 100 failures in a minute, and a valid key from the same address is not', () => {
    const guard = authenticator();
    const wrong = credentials({ secret: 'pr_wrong' });
    const codes = Array.from({ length: 101 }, () => codeOf(guard.authenticate(wrong, 'setup')));

    expect(codes.slice(0, 100)).toEqual(Array.from({ length: 100 }, () => 'UNAUTHENTICATED'));
    const slowed = guard.authenticate(wrong, 'setup');
    expect(codes[100]).toBe('RATE_LIMITED');
    expect(isRefusal(slowed) && slowed.extras.retryAfter).toBe(1);
    expect(codeOf(guard.authenticate(credentials(), 'setup'))).toBeNull();
    const elsewhere = credentials({ secret: 'pr_wrong', from: { address: '192.0.2.2', forwarded: false } });
    expect(codeOf(guard.authenticate(elsewhere, 'setup'))).toBe('UNAUTHENTICATED');
    store.clock.time += 60_000;
    expect(codeOf(guard.authenticate(wrong, 'setup'))).toBe('UNAUTHENTICATED');
  });
});

describe('a key with allowed networks', () => {
  it.each([
    ['192.0.2.1', false, null],
    ['192.0.2.99', false, 'KEY_NOT_ALLOWED'],
    ['198.51.100.255', false, null],
    ['198.51.101.0', false, 'KEY_NOT_ALLOWED'],
    ['2001:db8::77', false, null],
    ['2001:db9::77', false, 'KEY_NOT_ALLOWED'],
    // An allowed address that a configured proxy reports.
    ['192.0.2.1', true, null],
    // A caller on this host, and one behind an unconfigured proxy on this host.
    ['127.0.0.1', false, null],
    ['127.0.0.1', true, 'KEY_NOT_ALLOWED'],
    ['', false, 'KEY_NOT_ALLOWED'],
  ])('from %s, forwarded %s', async (address, forwarded, code) => {
    const secret = await restrictedKey(['192.0.2.1', '198.51.100.0/24', '2001:db8::/32', '127.0.0.0/8']);
    const answer = authenticator().authenticate(
      credentials({ secret, from: { address, forwarded } }),
      'setup',
    );
    expect(codeOf(answer)).toBe(code);
  });
});

describe('the order of refusals', () => {
  it('is key, address, account, scope', async () => {
    const secret = await restrictedKey(['192.0.2.1']);
    granted(await createAccounts(store).setStatus(account.accountId, 'disabled'));
    const elsewhere = { address: '192.0.2.2', forwarded: false };
    const guard = authenticator();
    const code = (more: Partial<Credentials>, scope: AccountScope) =>
      codeOf(guard.authenticate(credentials({ secret, ...more }), scope));

    expect(code({ secret: 'pr_wrong', from: elsewhere }, 'marketing')).toBe('UNAUTHENTICATED');
    expect(code({ from: elsewhere }, 'marketing')).toBe('KEY_NOT_ALLOWED');
    expect(code({}, 'marketing')).toBe('ACCOUNT_DISABLED');
    granted(await createAccounts(store).setStatus(account.accountId, 'active'));
    expect(code({}, 'marketing')).toBe('INSUFFICIENT_SCOPE');
    expect(code({}, 'setup')).toBeNull();
  });
});
