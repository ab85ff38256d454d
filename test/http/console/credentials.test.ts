import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HOUR, MINUTE } from '../../../src/core/clock.ts';
import { totpCode, totpStep } from '../../../src/people/credentials.ts';
import { startConsole, type TestBrowser, type TestConsole } from './harness.ts';

let test: TestConsole;
beforeEach(async () => {
  test = await startConsole();
});
afterEach(() => test.stop());

const EMAIL = 'ops@example.com';
const PASSWORD = 'correct horse battery';

/** Decodes base32 (RFC 4648 §6), independently of the encoder. */
function fromBase32(text: string): Buffer {
  const bits = text
    .split('')
    .map((char) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(char).toString(2).padStart(5, '0'))
    .join('');
  return Buffer.from(bits.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
}

const codeOf = (secret: string) => totpCode(fromBase32(secret), totpStep(test.clock.now()));

/** Sets password and TOTP; returns the secret. The clock is then one step later. */
async function setUp(browser: TestBrowser): Promise<string> {
  expect((await browser.put('/console/me/password', { password: PASSWORD })).status).toBe(200);
  const { data } = await browser.post('/console/me/totp');
  const secret = String(data['secret']);
  const stored = await browser.post('/console/me/totp/verify', {
    state: data['state'],
    code: codeOf(secret),
  });
  expect(stored.status).toBe(200);
  test.clock.time += 30_000;
  return secret;
}

describe('a password with a code', () => {
  it('signs in', async () => {
    const secret = await setUp(await test.operator(EMAIL));
    const browser = test.browser();
    const response = await browser.post('/console/session/password', {
      email: 'Ops@Example.com',
      password: PASSWORD,
      totp: codeOf(secret),
    });
    expect(response).toMatchObject({
      status: 200,
      data: { person: { email: EMAIL, hasPassword: true, hasTotp: true, session: { method: 'password' } } },
    });
    expect((await browser.get('/console/me')).status).toBe(200);
  });

  it('accepts a code once', async () => {
    const secret = await setUp(await test.operator(EMAIL));
    const input = { email: EMAIL, password: PASSWORD, totp: codeOf(secret) };
    expect((await test.browser().post('/console/session/password', input)).status).toBe(200);
    expect((await test.browser().post('/console/session/password', input)).status).toBe(401);
  });

  it.each([
    ['another password', { password: 'wrong horse battery' }, 'WRONG_CREDENTIALS'],
    ['another address', { email: 'nobody@example.com' }, 'WRONG_CREDENTIALS'],
    ['another code', { totp: '000000' }, 'WRONG_CREDENTIALS'],
    ['no code', { totp: undefined }, 'TOTP'],
  ])('does not sign in with %s', async (_, change, reason) => {
    const secret = await setUp(await test.operator(EMAIL));
    const response = await test.browser().post('/console/session/password', {
      email: EMAIL,
      password: PASSWORD,
      totp: codeOf(secret),
      ...change,
    });
    expect(response.status).toBe(401);
    expect(response.headers.get('set-cookie')).toBeNull();
    expect(response.body).toMatchObject({ error: { details: [{ reason }] } });
  });

  it('does not sign in without TOTP', async () => {
    const browser = await test.operator(EMAIL);
    await browser.put('/console/me/password', { password: PASSWORD });
    const response = await test
      .browser()
      .post('/console/session/password', { email: EMAIL, password: PASSWORD });
    expect(response).toMatchObject({
      status: 401,
      body: { error: { details: [{ reason: 'TOTP_NOT_SET_UP' }] } },
    });
  });

  it('can be tried ten times per address, and then every two minutes', async () => {
    const secret = await setUp(await test.operator(EMAIL));
    const attempt = (password: string) =>
      test.browser().post('/console/session/password', { email: EMAIL, password, totp: codeOf(secret) });
    for (let times = 0; times < 10; times++) expect((await attempt('a wrong password')).status).toBe(401);
    expect((await attempt(PASSWORD)).status).toBe(429);
    test.clock.time += 2 * MINUTE;
    expect((await attempt(PASSWORD)).status).toBe(200);
  });

  it('is stored as a hash, the TOTP secret sealed', async () => {
    const secret = await setUp(await test.operator(EMAIL));
    const row = test.tables.people.byEmail(EMAIL);
    expect(row?.password).toMatch(/^scrypt\$/);
    expect(row?.totp?.includes(fromBase32(secret))).toBe(false);
  });

  it('ends the other sessions when it is set', async () => {
    const browser = await test.operator(EMAIL);
    const other = await test.operator(EMAIL);
    await setUp(browser);
    expect((await other.get('/console/me')).status).toBe(401);
    expect((await browser.get('/console/me')).status).toBe(200);
  });

  it('is changed only by a person who was confirmed', async () => {
    const browser = await test.operator(EMAIL);
    await setUp(browser);
    test.clock.time += 10 * MINUTE;
    expect((await browser.put('/console/me/password', { password: PASSWORD })).status).toBe(403);
    expect((await browser.post('/console/me/totp')).status).toBe(403);
  });
});

describe('the first credential of a person who came with a link', () => {
  const erase = (browser: TestBrowser) =>
    browser.delete('/console/api/web-setup/contacts/email_1', test.account).then(({ status }) => status);

  it('can be a password with TOTP, at any time, which confirms the session', async () => {
    const owner = await test.member('owner');
    test.clock.time += HOUR;
    expect(await erase(owner)).toBe(403);
    const { data } = await owner.post('/console/me/totp');
    const verify = () =>
      owner.post('/console/me/totp/verify', { state: data['state'], code: codeOf(String(data['secret'])) });
    // TOTP alone proves nothing.
    expect((await verify()).status).toBe(200);
    expect(await erase(owner)).toBe(403);
    expect((await owner.put('/console/me/password', { password: PASSWORD })).status).toBe(200);
    expect(await erase(owner)).toBe(403);
    // Now the person has a credential: whatever follows needs a confirmation.
    expect((await owner.put('/console/me/password', { password: `${PASSWORD} 2` })).status).toBe(403);
    expect((await owner.post('/console/me/totp')).status).toBe(403);
    expect((await owner.post('/console/me/passkeys/options')).status).toBe(403);
  });

  it('confirms the session when the password was there first', async () => {
    const owner = await test.member('owner');
    test.clock.time += HOUR;
    const session = async () =>
      ((await owner.get('/console/session')).data['person'] as { session: object }).session;
    expect(await session()).toMatchObject({ lacksCredential: true });
    await setUp(owner);
    expect(await session()).toMatchObject({ lacksCredential: false });
    expect(await erase(owner)).not.toBe(403);
  });
});

describe('the setup of TOTP', () => {
  it('belongs to one person and expires after 15 minutes', async () => {
    const browser = await test.operator(EMAIL);
    const other = await test.member('viewer');
    const { data } = await browser.post('/console/me/totp');
    const input = () => ({ state: data['state'], code: codeOf(String(data['secret'])) });
    expect((await other.post('/console/me/totp/verify', input())).status).toBe(400);
    expect((await browser.post('/console/me/totp/verify', { ...input(), code: '000000' })).status).toBe(400);
    test.clock.time += 9 * MINUTE;
    expect((await browser.post('/console/me/totp/verify', input())).status).toBe(200);
    test.clock.time += 6 * MINUTE;
    const later = await test.operator('later@example.com');
    expect((await later.post('/console/me/totp/verify', input())).status).toBe(400);
  });
});

describe('a confirmation', () => {
  it('permits what requires one, with password and code', async () => {
    const owner = await test.member('owner');
    const secret = await setUp(owner);
    test.clock.time += 10 * MINUTE;
    const erase = () => owner.delete('/console/api/web-setup/contacts/email_1', test.account);
    expect((await erase()).status).toBe(403);
    const wrong = await owner.post('/console/session/reauthenticate', {
      password: 'a wrong password',
      totp: codeOf(secret),
    });
    expect(wrong.status).toBe(403);
    expect((await erase()).status).toBe(403);
    const input = { password: PASSWORD, totp: codeOf(secret) };
    expect((await owner.post('/console/session/reauthenticate', input)).status).toBe(200);
    expect((await erase()).status).toBe(200);
  });
});
