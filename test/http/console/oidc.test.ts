import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { accepted, startConsole, type TestBrowser, type TestConsole } from './harness.ts';
import { CLIENT, type OidcProvider, startOidcProvider } from './oidc-provider.ts';

let dir: string;
let provider: OidcProvider;
let test: TestConsole;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'postrider-oidc-'));
  writeFileSync(join(dir, 'secret'), `${CLIENT.secret}\n`, { mode: 0o600 });
  // The library compares the ID token with the clock of the system.
  provider = await startOidcProvider(Date.now);
});
afterAll(async () => {
  await provider.close();
  rmSync(dir, { recursive: true, force: true });
});
beforeEach(async () => {
  provider.claims = {
    sub: 'user-1',
    email: 'ada@example.com',
    email_verified: true,
    name: 'Ada',
    groups: ['marketing'],
  };
  provider.userInfo = {};
  provider.change = (claims) => claims;
  provider.algorithm = 'RS256';
  provider.refused = [];
  test = await startConsole({
    id: 'acct_shop',
    env: {
      POSTRIDER_CONSOLE__OIDC__ISSUER: provider.issuer,
      POSTRIDER_CONSOLE__OIDC__CLIENTID: CLIENT.id,
      POSTRIDER_CONSOLE__OIDC__CLIENTSECRETFILE: join(dir, 'secret'),
      POSTRIDER_CONSOLE__OIDC__NAME: 'Company',
      POSTRIDER_CONSOLE__OIDC__OPERATORS: '["ops"]',
      POSTRIDER_CONSOLE__OIDC__MEMBERS:
        '[{ group = "marketing", account = "acct_shop", role = "author" }, { group = "leads", account = "acct_shop", role = "owner" }, { group = "leads", account = "acct_gone", role = "owner" }]',
    },
  });
});
afterEach(() => test.stop());

/** The address that the browser returns to, with the page token. */
const SIGNED_IN = /^\/console\/#\/signed-in\/[\w-]{43}$/;

/** The address and the cookie of a sign-in that was begun. */
async function begin(): Promise<{ location: string; cookie: string }> {
  const response = await fetch(`${test.base}/console/oidc/start`, { redirect: 'manual' });
  expect(response.status).toBe(303);
  return {
    location: response.headers.get('location') ?? '',
    cookie: response.headers.get('set-cookie') ?? '',
  };
}

/** Opens the address to which the provider sends the browser, as a navigation from another site. */
async function returnFromProvider(
  address: string,
  cookie: string,
): Promise<{ browser: TestBrowser; location: string }> {
  const { search } = new URL(address);
  const response = await fetch(`${test.base}/console/oidc/callback${search}`, {
    redirect: 'manual',
    headers: {
      Cookie: cookie.split(';')[0] ?? '',
      'Sec-Fetch-Site': 'cross-site',
      'Sec-Fetch-Dest': 'document',
    },
  });
  expect(response.status).toBe(303);
  const browser = test.browser();
  const session = response.headers.getSetCookie().find((text) => text.startsWith('postrider_session='));
  browser.cookie = session?.split(';')[0] ?? '';
  const location = response.headers.get('location') ?? '';
  browser.pageToken = /^\/console\/#\/signed-in\/([\w-]{43})$/.exec(location)?.[1] ?? '';
  return { browser, location };
}

async function signIn(): Promise<{ browser: TestBrowser; location: string }> {
  const { location, cookie } = await begin();
  return returnFromProvider(await provider.authorize(location), cookie);
}

const personOf = async (browser: TestBrowser) => (await browser.get('/console/session')).data['person'];

describe('sign-in with OpenID Connect', () => {
  it('is offered by its name', async () => {
    expect((await test.browser().get('/console/session')).data['methods']).toMatchObject({ oidc: 'Company' });
  });

  it('creates a person with the role of the group', async () => {
    const { browser, location } = await signIn();
    expect(location).toMatch(SIGNED_IN);
    expect(await personOf(browser)).toMatchObject({
      email: 'ada@example.com',
      name: 'Ada',
      operator: false,
      memberships: [{ accountId: 'acct_shop', role: 'author' }],
      session: { method: 'oidc' },
    });
  });

  it('uses PKCE, state and nonce, and a cookie for this path only', async () => {
    const { location, cookie } = await begin();
    expect(Object.fromEntries(new URL(location).searchParams)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      redirect_uri: `${test.console.url()}/console/oidc/callback`,
      scope: 'openid email profile',
      state: expect.stringMatching(/.{20}/),
      nonce: expect.stringMatching(/.{20}/),
    });
    expect(cookie).toMatch(
      /^postrider_oidc=[\w-]+; Max-Age=600; Path=\/console\/oidc; HttpOnly; SameSite=Lax$/,
    );
  });

  it('uses a cookie that no other host of the domain can set', async () => {
    const secure = await startConsole({
      env: {
        POSTRIDER_CONSOLE__URL: 'https://console.example.com',
        POSTRIDER_CONSOLE__OIDC__ISSUER: provider.issuer,
        POSTRIDER_CONSOLE__OIDC__CLIENTID: CLIENT.id,
        POSTRIDER_CONSOLE__OIDC__CLIENTSECRETFILE: join(dir, 'secret'),
        POSTRIDER_CONSOLE__OIDC__OPERATORS: '["marketing"]',
      },
    });
    try {
      const response = await fetch(`${secure.base}/console/oidc/start`, { redirect: 'manual' });
      const cookie = response.headers.get('set-cookie') ?? '';
      expect(cookie).toMatch(
        /^__Host-postrider_oidc=[\w-]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
      );
      const { search } = new URL(await provider.authorize(response.headers.get('location') ?? ''));
      const [pair = ''] = cookie.split(';');
      const locationWith = async (sent: string) =>
        (
          await fetch(`${secure.base}/console/oidc/callback${search}`, {
            redirect: 'manual',
            headers: { Cookie: sent },
          })
        ).headers.get('location');
      expect(await locationWith(pair.replace('__Host-', ''))).toBe('/console/?signInError=expired');
      expect(await locationWith(pair)).toMatch(SIGNED_IN);
    } finally {
      await secure.stop();
    }
  });

  it('gives the highest role of several groups, and follows changes at the next sign-in', async () => {
    provider.claims['groups'] = ['marketing', 'leads', 'ops'];
    const first = await signIn();
    expect(await personOf(first.browser)).toMatchObject({ operator: true });
    provider.claims['groups'] = ['leads', 'marketing'];
    expect(await personOf((await signIn()).browser)).toMatchObject({
      operator: false,
      memberships: [{ accountId: 'acct_shop', role: 'owner' }],
    });
    provider.claims['groups'] = [];
    const last = await signIn();
    expect(last).toMatchObject({ location: '/console/?signInError=no-access', browser: { cookie: '' } });
    expect(test.tables.memberships.ofAccount('acct_shop', 9)).toEqual([]);
  });

  it('reads groups from the user information', async () => {
    provider.claims = { sub: 'user-1', email: 'ada@example.com' };
    provider.userInfo = { groups: 'marketing' };
    expect(await personOf((await signIn()).browser)).toMatchObject({
      memberships: [{ role: 'author' }],
    });
  });

  it('leaves roles of invitations, and operators of the command line', async () => {
    accepted(await test.people.invite(test.other, { email: 'ada@example.com', role: 'viewer' }, 'operator'));
    accepted(await test.people.createOperator({ email: 'ada@example.com' }));
    provider.claims['groups'] = [];
    const { browser } = await signIn();
    expect(await personOf(browser)).toMatchObject({ operator: true });
    expect(test.tables.memberships.ofAccount(test.other, 9)).toMatchObject([{ role: 'viewer' }]);
  });

  it('ends the sessions of an existing person with this address: others may have created them', async () => {
    const invited = accepted(
      await test.people.invite(test.other, { email: 'ada@example.com', role: 'owner' }, 'owner'),
    );
    const impostor = await test.signInWith(invited);
    expect(await personOf((await signIn()).browser)).toMatchObject({ email: 'ada@example.com' });
    expect((await impostor.get('/console/me')).status).toBe(401);
    // Once linked, a sign-in ends no other sessions.
    const second = await signIn();
    await signIn();
    expect((await second.browser.get('/console/me')).status).toBe(200);
  });

  it('invalidates the link of an existing person with this address: others may have it', async () => {
    const { link } = accepted(
      await test.people.invite(test.other, { email: 'ada@example.com', role: 'viewer' }, 'owner'),
    );
    expect(await personOf((await signIn()).browser)).toMatchObject({ email: 'ada@example.com' });
    const response = await test.browser().post('/console/session/link', { token: link?.token });
    expect(response.status).toBe(401);
  });

  it.each([
    ['whose address the provider has not verified', { email_verified: false }],
    ['whose address may not be verified', { email_verified: undefined }],
  ])('refuses an existing person %s', async (_, claims) => {
    await test.operator('ada@example.com');
    Object.assign(provider.claims, claims);
    expect(await signIn()).toMatchObject({
      location: '/console/?signInError=provider-denied',
      browser: { cookie: '' },
    });
  });

  it('creates nobody with an address that the provider has not verified', async () => {
    provider.claims['email_verified'] = false;
    expect((await signIn()).location).toBe('/console/?signInError=provider-denied');
    expect(test.tables.people.byEmail('ada@example.com')).toBeNull();
  });

  it('does not believe that an address is verified because another one of the same person is', async () => {
    await test.operator('ada@example.com');
    provider.claims['email_verified'] = true;
    provider.claims['email'] = 'another@example.com';
    provider.change = ({ groups: _groups, email_verified: _isVerified, ...token }) => ({
      ...token,
      email: 'ada@example.com',
    });
    expect(await signIn()).toMatchObject({
      location: '/console/?signInError=provider-denied',
      browser: { cookie: '' },
    });
  });

  it('refuses another person of the provider with the address of one who has signed in, until they are recovered', async () => {
    await test.operator('ada@example.com');
    const first = await signIn();
    provider.claims['sub'] = 'user-2';
    expect(await signIn()).toMatchObject({
      location: '/console/?signInError=provider-denied',
      browser: { cookie: '' },
    });
    expect((await first.browser.get('/console/me')).status).toBe(200);
    const personId = test.tables.people.byEmail('ada@example.com')?.person_id ?? '';
    accepted(await test.people.issueLink(personId, 'recovery'));
    expect(await personOf((await signIn()).browser)).toMatchObject({ id: personId, operator: true });
  });

  it('refuses people without a group, and creates none', async () => {
    provider.claims['groups'] = ['others'];
    expect((await signIn()).location).toBe('/console/?signInError=no-access');
    expect(test.tables.people.byEmail('ada@example.com')).toBeNull();
  });

  it('refuses a disabled person', async () => {
    await signIn();
    const personId = test.tables.people.byEmail('ada@example.com')?.person_id ?? '';
    accepted(await test.people.setStatus(personId, 'disabled'));
    expect((await signIn()).browser.cookie).toBe('');
  });
});

describe('the return from the provider is refused', () => {
  it.each<[string, (claims: Record<string, unknown>) => Record<string, unknown>]>([
    ['with the token of another client', (claims) => ({ ...claims, aud: 'another' })],
    ['with the token of another issuer', (claims) => ({ ...claims, iss: 'https://attacker.example' })],
    ['with the nonce of another sign-in', (claims) => ({ ...claims, nonce: 'another' })],
    ['with an expired token', (claims) => ({ ...claims, exp: 1 })],
  ])('%s', async (_, change) => {
    provider.change = change;
    expect(await signIn()).toMatchObject({
      location: '/console/?signInError=provider-denied',
      browser: { cookie: '' },
    });
  });

  it.each(['none', 'HS256'])('rejects a token whose algorithm is %s', async (algorithm) => {
    provider.algorithm = algorithm;
    expect(await signIn()).toMatchObject({
      location: '/console/?signInError=provider-denied',
      browser: { cookie: '' },
    });
  });

  it('without the cookie of this browser, and with that of another sign-in', async () => {
    const mine = await begin();
    const others = await begin();
    const back = await provider.authorize(others.location);
    expect((await returnFromProvider(back, '')).location).toBe('/console/?signInError=expired');
    expect((await returnFromProvider(back, mine.cookie)).location).toBe(
      '/console/?signInError=provider-denied',
    );
  });

  it('rejects a return after ten minutes, and a second one', async () => {
    const late = await begin();
    const back = await provider.authorize(late.location);
    test.clock.time += 10 * MINUTE;
    expect((await returnFromProvider(back, late.cookie)).location).toBe('/console/?signInError=expired');
    const twice = await begin();
    const address = await provider.authorize(twice.location);
    expect((await returnFromProvider(address, twice.cookie)).location).toMatch(SIGNED_IN);
    expect((await returnFromProvider(address, twice.cookie)).browser.cookie).toBe('');
    expect(provider.refused).toEqual(['unknown code']);
  });

  it('rejects a return with an error', async () => {
    const { location, cookie } = await begin();
    const state = new URL(location).searchParams.get('state') ?? '';
    const back = `${test.console.url()}/console/oidc/callback?error=access_denied&state=${state}`;
    expect((await returnFromProvider(back, cookie)).location).toBe('/console/?signInError=provider-denied');
  });

  it('limits a client to 60 requests, then to one a second', async () => {
    const status = async () =>
      (await fetch(`${test.base}/console/oidc/callback?code=1&state=1`, { redirect: 'manual' })).status;
    const statuses = new Set<number>();
    for (let times = 0; times < 60; times++) statuses.add(await status());
    expect([...statuses]).toEqual([303]);
    expect(await status()).toBe(429);
    test.clock.time += 1000;
    expect([await status(), await status()]).toEqual([303, 429]);
  });
});
