import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { iso, MINUTE } from '../../../src/core/clock.ts';
import { type Authenticator, createAuthenticator } from './authenticator.ts';
import { startConsole, type TestBrowser, type TestConsole } from './harness.ts';

let test: TestConsole;
beforeEach(async () => {
  test = await startConsole();
});
afterEach(() => test.stop());

/** The challenge in the data of a response. */
const challengeOf = ({ data }: { data: Record<string, unknown> }) => ({
  challenge: String(data['challenge']),
});

/** Adds a passkey to the person of the browser. */
async function addPasskey(browser: TestBrowser, origin = test.console.url()): Promise<Authenticator> {
  const authenticator = createAuthenticator(origin);
  const options = await browser.post('/console/me/passkeys/options');
  const response = authenticator.register(challengeOf(options));
  const added = await browser.post('/console/me/passkeys', { name: 'Laptop', response });
  expect(added).toMatchObject({ status: 201, data: { id: authenticator.id, name: 'Laptop', usedAt: null } });
  return authenticator;
}

const begin = async (browser: TestBrowser) =>
  challengeOf(await browser.post('/console/session/passkey/options'));

describe('a passkey', () => {
  it('signs in without the name of the person', async () => {
    const authenticator = await addPasskey(await test.operator());
    const browser = test.browser();
    const response = authenticator.authenticate(await begin(browser));
    expect(await browser.post('/console/session/passkey/verify', { response })).toMatchObject({
      status: 200,
      data: { person: { email: 'ops@example.com', passkeys: 1, session: { method: 'passkey' } } },
    });
    expect((await browser.get('/console/me/passkeys')).data).toMatchObject({
      passkeys: [{ id: authenticator.id, usedAt: iso(test.clock.time) }],
    });
  });

  it('is created with options for this host, with user verification', async () => {
    const browser = await test.operator();
    expect((await browser.post('/console/me/passkeys/options')).data).toMatchObject({
      rp: { id: 'localhost' },
      user: { name: 'ops@example.com' },
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    });
  });

  it('does not sign in twice with the same response', async () => {
    const authenticator = await addPasskey(await test.operator());
    const response = authenticator.authenticate(await begin(test.browser()));
    const verify = () => test.browser().post('/console/session/passkey/verify', { response });
    expect((await verify()).status).toBe(200);
    expect((await verify()).status).toBe(401);
  });

  it('does not sign in after five minutes', async () => {
    const authenticator = await addPasskey(await test.operator());
    const response = authenticator.authenticate(await begin(test.browser()));
    test.clock.time += 5 * MINUTE;
    expect((await test.browser().post('/console/session/passkey/verify', { response })).status).toBe(401);
  });

  it.each([
    ['a challenge of another server', { challenge: Buffer.from('elsewhere').toString('base64url') }, {}],
    ['no user verification', null, { flags: 0x01 }],
  ])('does not sign in with %s', async (_, challenge, change) => {
    const authenticator = await addPasskey(await test.operator());
    const response = authenticator.authenticate(challenge ?? (await begin(test.browser())), change);
    expect((await test.browser().post('/console/session/passkey/verify', { response })).status).toBe(401);
  });

  it('does not sign in with a counter that was used: the authenticator was copied', async () => {
    const authenticator = await addPasskey(await test.operator());
    const attempt = async (counter: number) => {
      const response = authenticator.authenticate(await begin(test.browser()), { counter });
      return (await test.browser().post('/console/session/passkey/verify', { response })).status;
    };
    expect([await attempt(5), await attempt(5), await attempt(6)]).toEqual([200, 401, 200]);
  });

  it('does not sign in for a page of another origin', async () => {
    const authenticator = createAuthenticator('http://localhost:1');
    const browser = await test.operator();
    const options = challengeOf(await browser.post('/console/me/passkeys/options'));
    const response = authenticator.register(options);
    expect((await browser.post('/console/me/passkeys', { name: 'Laptop', response })).status).toBe(400);
  });

  it('does not sign in for another person: the challenge of a registration belongs to its session', async () => {
    const browser = await test.operator();
    const other = await test.member('viewer');
    const options = challengeOf(await other.post('/console/me/passkeys/options'));
    const response = createAuthenticator(test.console.url()).register(options);
    expect((await browser.post('/console/me/passkeys', { name: 'Laptop', response })).status).toBe(400);
  });

  it('does not sign in when it was removed, or its person is disabled', async () => {
    const browser = await test.operator();
    await test.operator('second@example.com');
    const authenticator = await addPasskey(browser);
    const attempt = async () => {
      const response = authenticator.authenticate(await begin(test.browser()));
      return (await test.browser().post('/console/session/passkey/verify', { response })).status;
    };
    const personId = test.tables.people.byEmail('ops@example.com')?.person_id ?? '';
    await test.people.setStatus(personId, 'disabled');
    expect(await attempt()).toBe(401);
    await test.people.setStatus(personId, 'active');
    expect(await attempt()).toBe(200);
    const again = await test.operator();
    expect((await again.delete(`/console/me/passkeys/${authenticator.id}`)).status).toBe(200);
    expect(await attempt()).toBe(401);
  });

  it('is added only by a person who was confirmed, and ends the other sessions', async () => {
    const browser = await test.operator();
    const other = await test.operator();
    await addPasskey(browser);
    expect((await other.get('/console/me')).status).toBe(401);
    test.clock.time += 10 * MINUTE;
    expect((await browser.post('/console/me/passkeys/options')).status).toBe(403);
  });

  it('can be the first credential of a person who came with a link at any time, which confirms the session', async () => {
    const owner = await test.member('owner');
    const erase = async () =>
      (await owner.delete('/console/api/web-setup/contacts/email_1', test.account)).status;
    test.clock.time += 60 * MINUTE;
    expect(await erase()).toBe(403);
    await addPasskey(owner);
    expect(await erase()).toBe(200);
    test.clock.time += 60 * MINUTE;
    expect((await owner.post('/console/me/passkeys/options')).status).toBe(403);
  });

  it('confirms a session of its person only', async () => {
    const owner = await test.member('owner');
    const other = await test.operator();
    const [own, others] = [await addPasskey(owner), await addPasskey(other)];
    test.clock.time += 10 * MINUTE;
    const erase = async () =>
      (await owner.delete('/console/api/web-setup/contacts/email_1', test.account)).status;
    const confirm = async (authenticator: Authenticator) => {
      const response = authenticator.authenticate(await begin(owner));
      return (await owner.post('/console/session/passkey/confirm', { response })).status;
    };
    expect([await confirm(others), await erase()]).toEqual([403, 403]);
    expect([await confirm(own), await erase()]).toEqual([200, 200]);
  });
});

it('passkeys are not offered where browsers refuse them', async () => {
  const byAddress = await startConsole({ env: { POSTRIDER_CONSOLE__URL: 'http://127.0.0.1:8082' } });
  try {
    const browser = byAddress.browser();
    expect((await browser.get('/console/session')).data['methods']).toMatchObject({ passkey: false });
    expect((await browser.post('/console/session/passkey/options')).status).toBe(409);
  } finally {
    await byAddress.stop();
  }
  expect((await test.browser().get('/console/session')).data['methods']).toMatchObject({ passkey: true });
});
