import { rootCertificates } from 'node:tls';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createStsPolicies, type StsPolicies } from '../../src/delivery/mta-sts.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import { createAuthority, selfSigned } from '../support/certificates.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { type Handler, type PolicyHost, policyText, startPolicyHost } from '../support/policy-host.ts';
import { startStore } from '../support/store.ts';

const DOMAIN = 'empfang.example';
const authority = createAuthority();
const VALID = authority.issue([`mta-sts.${DOMAIN}`]);
const ENFORCE = policyText('enforce', ['mx.empfang.example']);

let dns: DnsServer;
let host: PolicyHost;
let ahead: number;
let isPrivateAllowed: boolean;
let store: ReturnType<typeof startStore>;

beforeEach(async () => {
  ahead = 0;
  isPrivateAllowed = true;
  dns = await startDnsServer();
  host = await startPolicyHost();
  store = startStore({ now: () => Date.now() + ahead, advance: (ms: number) => void (ahead += ms) });
  onTestFinished(() => dns.close());
  onTestFinished(() => host.close());
  dns.set(`mta-sts.${DOMAIN}`, 'A', [host.address]);
  announce('1');
});

const announce = (id: string) =>
  dns.set(`_mta-sts.${DOMAIN}`, 'TXT', { values: [`v=STSv1; id=${id};`], ttl: 60 });

/** As after a start of the daemon: nothing is in memory. */
function start({
  maxWaitMs = PATIENCE_MS,
  timeoutMs = PATIENCE_MS,
} = {}): StsPolicies & { logged: string[] } {
  const clock = { now: () => Date.now() + ahead };
  const logged: string[] = [];
  const resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: PATIENCE_MS,
    monotonic: clock,
    random: systemRandom,
  });
  const { tables, writer } = store;
  const log = createLog({ level: 'info', hashAddresses: true }, { write: (line) => void logged.push(line) });
  const policies = createStsPolicies(
    { clock, monotonic: clock, log, tables, writer },
    {
      resolver,
      mayConnect: () => isPrivateAllowed,
      trusted: [...rootCertificates, authority.cert],
      userAgent: 'Postrider/test',
      port: host.port,
      timeoutMs,
      maxWaitMs,
      refreshIntervalMs: 20,
    },
  );
  onTestFinished(async () => {
    await policies.stop();
    resolver.close();
  });
  return { ...policies, logged };
}

const ENFORCED = { policy: { mode: 'enforce', mx: ['mx.empfang.example'], maxAge: 86_400 }, fault: null };

describe('the policy of a domain', () => {
  it('is fetched, and stored until it expires', async () => {
    host.serve(DOMAIN, VALID, ENFORCE);
    expect(await start().of(DOMAIN)).toEqual(ENFORCED);
    expect(await start().of('Empfang.Example')).toEqual(ENFORCED);
    expect(host.requests).toEqual([`mta-sts.${DOMAIN} /.well-known/mta-sts.txt`]);
    ahead = DAY + 1000;
    host.serve(DOMAIN, VALID, policyText('testing', ['other.example']));
    expect(await start().of(DOMAIN)).toMatchObject({ policy: { mode: 'testing' } });
  });

  it('is fetched once for many messages at the same time', async () => {
    host.serve(DOMAIN, VALID, ENFORCE);
    const policies = start();
    await Promise.all(Array.from({ length: 50 }, () => policies.of(DOMAIN)));
    expect(host.requests).toHaveLength(1);
  });

  it('is fetched again when the id changes, and then replaces the stored one', async () => {
    host.serve(DOMAIN, VALID, ENFORCE);
    const policies = start();
    await policies.of(DOMAIN);
    host.serve(DOMAIN, VALID, policyText('none', []));
    expect(await policies.of(DOMAIN)).toEqual(ENFORCED);
    announce('2');
    ahead = 2 * MINUTE;
    expect(await policies.of(DOMAIN)).toMatchObject({ policy: { mode: 'none' } });
    expect(host.requests).toHaveLength(2);
  });

  it.each<[what: string, change: () => void]>([
    ['the TXT record is removed', () => dns.remove(`_mta-sts.${DOMAIN}`)],
    ['the TXT record cannot be looked up', () => dns.set(`_mta-sts.${DOMAIN}`, 'TXT', 'SERVFAIL')],
    ['the policy host has no address', () => dns.remove(`mta-sts.${DOMAIN}`)],
    ['the policy host responds with an error', () => host.serve(DOMAIN, VALID, status(500))],
    [
      'the policy host has an invalid certificate',
      () => host.serve(DOMAIN, selfSigned([`mta-sts.${DOMAIN}`]), ENFORCE),
    ],
    ['the new policy is not valid', () => host.serve(DOMAIN, VALID, 'version: STSv1\nmode: nonsense')],
  ])('stays in force while %s', async (_, change) => {
    host.serve(DOMAIN, VALID, ENFORCE);
    await start().of(DOMAIN);
    announce('2');
    change();
    ahead = HOUR;
    const policies = start();
    expect((await policies.of(DOMAIN)).policy).toEqual(ENFORCED.policy);
    ahead = DAY + HOUR;
    expect((await start().of(DOMAIN)).policy).toBeNull();
  });

  it('is none without a TXT record', async () => {
    host.serve(DOMAIN, VALID, ENFORCE);
    dns.remove(`_mta-sts.${DOMAIN}`);
    expect(await start().of(DOMAIN)).toEqual({ policy: null, fault: null });
    expect(host.requests).toEqual([]);
  });
});

const status =
  (code: number, headers: Record<string, string> = {}): Handler =>
  (_, response) =>
    void response.writeHead(code, { 'content-type': 'text/plain', ...headers }).end(ENFORCE);
const large: Handler = (_, response) => {
  response.writeHead(200, { 'content-type': 'text/plain' });
  response.end(ENFORCE + 'x-filler: 0123456789\n'.repeat(10_000));
};
const silent: Handler = () => {
  // Never responds.
};
const dribble: Handler = (_, response) => {
  response.writeHead(200, { 'content-type': 'text/plain' });
  response.write('version: STSv1\n');
};

describe('a fetch fails', () => {
  const CASES: [what: string, handler: string | Handler, type: string, text: RegExp][] = [
    ['with status 404', status(404), 'sts-policy-fetch-error', /status 404/],
    [
      'with a redirect',
      status(301, { location: 'https://elsewhere.example/' }),
      'sts-policy-fetch-error',
      /status 301/,
    ],
    [
      'with another media type',
      status(200, { 'content-type': 'text/html' }),
      'sts-policy-invalid',
      /media type text\/html/,
    ],
    ['without a valid policy', '<html>', 'sts-policy-invalid', /is not valid/],
    ['with more than 64 KiB', large, 'sts-policy-fetch-error', /no policy from/],
    ['without a response', silent, 'sts-policy-fetch-error', /within 0\.3 s/],
    ['without the rest of the policy', dribble, 'sts-policy-fetch-error', /within 0\.3 s/],
  ];
  it.each(CASES)('%s', async (_, handler, type, text) => {
    host.serve(DOMAIN, VALID, handler);
    const isSlow = handler === silent || handler === dribble;
    const { fault, policy } = await start({ timeoutMs: isSlow ? 300 : PATIENCE_MS }).of(DOMAIN);
    expect(policy).toBeNull();
    expect(fault).toMatchObject({ type, text: expect.stringMatching(text) });
  });

  it.each([
    ['a self-signed certificate', selfSigned([`mta-sts.${DOMAIN}`])],
    ['an expired certificate', authority.issue([`mta-sts.${DOMAIN}`], new Date(Date.now() - DAY))],
    ['a certificate for another name', authority.issue([DOMAIN])],
  ])('rejects %s', async (_, certificate) => {
    host.serve(DOMAIN, certificate, ENFORCE);
    expect(await start().of(DOMAIN)).toMatchObject({ policy: null, fault: { type: 'sts-webpki-invalid' } });
    expect(host.requests).toEqual([]);
  });

  it('at a private address, to which no connection is made', async () => {
    host.serve(DOMAIN, VALID, ENFORCE);
    isPrivateAllowed = false;
    const { fault } = await start().of(DOMAIN);
    expect(fault?.text).toBe(`mta-sts.${DOMAIN} has no address that may be called`);
    expect(host.requests).toEqual([]);
  });

  it('and is not repeated for the same id for five minutes', async () => {
    host.serve(DOMAIN, VALID, status(500));
    const policies = start();
    for (let n = 0; n < 3; n++)
      expect((await policies.of(DOMAIN)).fault?.type).toBe('sts-policy-fetch-error');
    expect(host.requests).toHaveLength(1);
    host.serve(DOMAIN, VALID, ENFORCE);
    ahead = 6 * MINUTE;
    expect(await policies.of(DOMAIN)).toEqual(ENFORCED);
  });

  it('and delays a route for a limited time only; a late policy is stored', async () => {
    let respond: () => void = () => {};
    host.serve(DOMAIN, VALID, (_, response) => {
      respond = () => void response.writeHead(200, { 'content-type': 'text/plain' }).end(ENFORCE);
    });
    const policies = start({ maxWaitMs: 50 });
    expect(await policies.of(DOMAIN)).toMatchObject({
      policy: null,
      fault: { text: expect.stringMatching(/not received/) },
    });
    await expect.poll(() => host.requests).toHaveLength(1);
    respond();
    await expect.poll(() => store.tables.stsPolicies.get(DOMAIN)?.mode).toBe('enforce');
    expect(await policies.of(DOMAIN)).toEqual(ENFORCED);
  });
});

describe('hosts of policies that never respond', () => {
  it('delay only the accounts that send to their domains', async () => {
    const domains = Array.from({ length: 150 }, (_, n) => `silent${n}.example`);
    for (const domain of domains) {
      dns.set(`_mta-sts.${domain}`, 'TXT', ['v=STSv1; id=1;']);
      dns.set(`mta-sts.${domain}`, 'A', [host.address]);
      host.serve(domain, authority.issue([`mta-sts.${domain}`]), silent);
    }
    host.serve(DOMAIN, VALID, ENFORCE);
    const policies = start();
    const waiting = domains.map((domain) => policies.of(domain, 'acct_one'));
    await expect.poll(() => host.requests).toHaveLength(20);
    expect(await policies.of(DOMAIN, 'acct_two')).toEqual(ENFORCED);
    expect(await policies.of(DOMAIN, 'acct_one')).toEqual(ENFORCED);
    // 20 are fetched, 100 wait, and the others are refused.
    const refused = await Promise.race(waiting);
    expect(refused.fault?.text).toBe('too many policies are being fetched');
    expect(host.requests).toHaveLength(21);
    await policies.stop();
    expect((await Promise.all(waiting)).every(({ policy }) => policy === null)).toBe(true);
  });
});

describe('the refresh in the background', () => {
  const row = () => store.tables.stsPolicies.get(DOMAIN);

  it('fetches a policy again half its life before it expires, although its id is the same', async () => {
    host.serve(DOMAIN, VALID, ENFORCE);
    const policies = start();
    await policies.of(DOMAIN);
    const { expires_at = 0 } = row() ?? {};
    policies.start();
    ahead += 13 * HOUR;
    await expect.poll(() => row()?.expires_at ?? 0).toBeGreaterThan(expires_at + 12 * HOUR);
    expect(host.requests).toHaveLength(2);
  });

  it('keeps the policy and tries again an hour later while its host fails', async () => {
    host.serve(DOMAIN, VALID, ENFORCE);
    const policies = start();
    await policies.of(DOMAIN);
    host.serve(DOMAIN, VALID, (_, response) => void response.writeHead(503).end());
    policies.start();
    ahead += 13 * HOUR;
    await expect.poll(() => row()?.refresh_at ?? 0).toBeGreaterThan(Date.now() + ahead + HOUR - MINUTE);
    expect(host.requests).toHaveLength(2);
    expect(await policies.of(DOMAIN)).toMatchObject(ENFORCED);
    host.serve(DOMAIN, VALID, ENFORCE);
    const { expires_at = 0 } = row() ?? {};
    ahead += HOUR + MINUTE;
    await expect.poll(() => row()?.expires_at ?? 0).toBeGreaterThan(expires_at);
  });

  it('lets a policy that no mail has used for 30 days expire', async () => {
    host.serve(DOMAIN, VALID, policyText('enforce', ['mx.empfang.example'], 40 * 86_400));
    const policies = start();
    await policies.of(DOMAIN);
    ahead += 31 * DAY;
    policies.start();
    await expect.poll(() => row()?.refresh_at).toBe(row()?.expires_at);
    expect(host.requests).toHaveLength(1);
    ahead += 10 * DAY;
    await expect.poll(row).toBeNull();
  });
});
