import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../../src/core/clock.ts';
import { linkBase } from '../../../src/delivery/prepare.ts';
import { DnsError } from '../../../src/dns/dns-error.ts';
import { FAILURE_GRACE_MS } from '../../../src/domains/verification/status.ts';
import { createVerifyLimit } from '../../../src/domains/verification/verify.ts';
import { checkColumns, type DomainRow } from '../../../src/store/domains/domains.ts';
import { eventually } from '../../support/eventually.ts';
import { type DomainsSetup, flagsOf, startDomains } from '../setup.ts';

/** A domain with all of its required records, and the platform's zone. */
async function published(setup: DomainsSetup): Promise<DomainRow> {
  const domain = await setup.register('example.org');
  await setup.publishPlatform();
  setup.publish(domain);
  return domain;
}

const dkimName = (setup: DomainsSetup, domain: DomainRow) =>
  setup.domains.records(domain).dnsRecords[0]?.name ?? '';
const dkimValue = (setup: DomainsSetup, domain: DomainRow) =>
  setup.domains.records(domain).dnsRecords[0]?.value ?? '';

describe('verifying a domain over real DNS', () => {
  it('passes when all required records are published', async () => {
    const setup = await startDomains();
    const domain = await published(setup);
    const { domain: row, checks } = await setup.verify(domain);
    expect(row).toMatchObject({
      status: 'SUCCESS',
      alt_status: 'ACTIVE',
      alt_dkim_enabled: 1,
      alt_spf_configured: 1,
      alt_dmarc_configured: 1,
      tracking_host: 'link.example.org',
      last_checked_at: setup.clock.now(),
    });
    expect(flagsOf(row)).toBe('DSMX');
    expect(checks.map(({ check, passed }) => `${check} ${passed}`)).toEqual([
      'dkim true',
      'spf true',
      'dmarc true',
      'mx true',
      'tracking true',
      'altDkim true',
      'returnPathSpf false',
    ]);
    expect(setup.events).toEqual([
      {
        kind: 'domain_verified',
        domain: 'example.org',
        fields: { status: 'SUCCESS', previousStatus: 'PENDING', failing: [] },
      },
    ]);
  });

  it.each<[string, (setup: DomainsSetup, domain: DomainRow) => void, string, string, string | RegExp]>([
    ['no DKIM record', (h, d) => h.dns.remove(dkimName(h, d)), '-SMX', 'dkim', 'There is no TXT record at'],
    [
      'another DKIM key',
      (h, d) => h.dns.set(dkimName(h, d), 'TXT', ['v=DKIM1; k=rsa; p=MIIB']),
      '-SMX',
      'dkim',
      /Another key|cut off/,
    ],
    [
      'the DKIM key in two strings',
      (h, d) =>
        h.dns.set(dkimName(h, d), 'TXT', [[dkimValue(h, d).slice(0, 250), dkimValue(h, d).slice(250)]]),
      'DSMX',
      'dkim',
      /^$/,
    ],
    [
      'a second DKIM key',
      (h, d) => h.dns.set(dkimName(h, d), 'TXT', [dkimValue(h, d), 'v=DKIM1; k=rsa; p=MIIB']),
      '-SMX',
      'dkim',
      'Keep ours and remove the rest',
    ],
    [
      'a second SPF record',
      (h) => h.dns.publish([{ name: 'example.org', type: 'TXT', value: 'v=spf1 mx -all' }]),
      'D-MX',
      'spf',
      'Merge them into one: v=spf1 mx include:spf.mail.example.net ~all',
    ],
    [
      'no DMARC record',
      (h) => h.dns.remove('_dmarc.example.org'),
      'DS-X',
      'dmarc',
      'There is no DMARC record',
    ],
    [
      'another mail host',
      (h) => h.dns.set('return-a.example.org', 'MX', ['10 mx.example.com']),
      'DSM-',
      'mx',
      'goes to mx.example.com',
    ],
    [
      'SERVFAIL for the DKIM name',
      (h, d) => h.dns.set(dkimName(h, d), 'TXT', 'SERVFAIL'),
      '-SMX',
      'dkim',
      'SERVFAIL',
    ],
  ])('%s', async (_, change, flags, check, hint) => {
    const setup = await startDomains();
    const domain = await published(setup);
    change(setup, domain);
    const { domain: row, checks } = await setup.verify(domain);
    expect(flagsOf(row)).toBe(flags);
    expect(row.status).toBe(flags === 'DSMX' ? 'SUCCESS' : 'PENDING');
    const found = checks.find((one) => one.check === check);
    expect(found?.passed).toBe(flags === 'DSMX');
    expect(found?.hint).toMatch(hint);
  });

  it.each(['SERVFAIL', 'REFUSED', 'silent', 'bad bytes'] as const)(
    'keeps every flag when DNS answers: %s',
    async (behavior) => {
      const setup = await startDomains({ timeoutMs: 150 });
      const domain = await setup.register('example.org');
      setup.tables.domains.update({
        ...domain,
        ...checkColumns(1),
        status: 'SUCCESS',
        alt_status: 'ACTIVE',
        tracking_host: 'link.example.org',
      });
      setup.dns.set('*', '*', behavior);
      const { domain: row, checks } = await setup.verify(domain);
      expect(flagsOf(row)).toBe('DSMX');
      expect(row).toMatchObject({
        status: 'SUCCESS',
        alt_status: 'ACTIVE',
        tracking_host: 'link.example.org',
      });
      expect(
        checks
          .filter(({ check }) => check !== 'returnPathSpf')
          .every(({ passed, hint }) => passed && hint.includes('No result at present')),
      ).toBe(true);
      // Accounts must not see the addresses of our resolvers.
      expect(JSON.stringify(checks)).not.toContain(setup.dns.address);
    },
  );

  it('bypasses our caches when requested, but not when scheduled', async () => {
    const setup = await startDomains();
    const domain = await published(setup);
    const asked = () => setup.dns.asked('_dmarc.example.org', 'TXT');
    await setup.verify(domain);
    await setup.verify(domain);
    expect(asked()).toBe(2);
    setup.clock.advance(MINUTE);
    setup.tables.domains.update({ ...setup.row(domain), next_check_at: setup.clock.now() });
    await setup.domains.jobs.runDue();
    expect(asked()).toBe(2);
    expect(setup.row(domain).last_checked_at).toBe(setup.clock.now());
  });

  it('keeps the result of a verification that began later and ended before', async () => {
    const setup = await startDomains();
    const domain = await published(setup);
    const { resolver, dns } = setup;
    const records = setup.domains.records(domain).dnsRecords.filter(({ purpose }) => purpose === 'DMARC');
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    // The first verification gets the answers of its time, but later.
    let first: AbortSignal | undefined;
    const answers: Promise<unknown>[] = [];
    const { txt } = resolver;
    resolver.txt = (name, options) => {
      first ??= options?.signal;
      const answer = txt(name, options);
      if (options?.signal !== first) return answer;
      answers.push(answer.catch(() => {}));
      return gate.then(() => answer);
    };
    dns.remove('_dmarc.example.org');
    const slow = setup.verify(domain);
    await expect.poll(() => dns.questions.some(({ name }) => name === '_dmarc.example.org')).toBe(true);
    await expect.poll(() => dns.questions.length).toBeGreaterThan(10);
    // Otherwise the second verification shares a lookup that began before the record was published.
    await Promise.all(answers);
    setup.clock.advance(1000);
    dns.publish(records);
    expect((await setup.verify(domain)).domain.status).toBe('SUCCESS');
    const { last_checked_at: checkedAt } = setup.row(domain);
    release();
    const { domain: row, checks } = await slow;
    expect(row.status).toBe('SUCCESS');
    // The report is that of the checks of this verification.
    expect(checks).toContainEqual(expect.objectContaining({ check: 'dmarc', passed: false }));
    expect(setup.row(domain)).toMatchObject({ status: 'SUCCESS', last_checked_at: checkedAt });
  });

  it('is not replaced by a scheduled one that begins later, but uses answers of before', async () => {
    const setup = await startDomains();
    const domain = await published(setup);
    const { resolver, dns, domains } = setup;
    const records = domains.records(domain).dnsRecords.filter(({ purpose }) => purpose === 'DMARC');
    dns.remove('_dmarc.example.org');
    expect((await setup.verify(domain)).domain.status).not.toBe('SUCCESS');
    dns.publish(records);
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { mx } = resolver;
    let isWaiting = false;
    resolver.mx = (name, options) => {
      if (options?.fresh !== true) return mx(name, options);
      isWaiting = true;
      return gate.then(() => mx(name, options));
    };
    const { txt } = resolver;
    // The cached answer is still valid.
    resolver.txt = (name, options) =>
      options?.fresh !== true && name === '_dmarc.example.org'
        ? Promise.reject(new DnsError('ENOTFOUND', `TXT ${name}`, 'no such name'))
        : txt(name, options);
    const slow = setup.verify(domain);
    await expect.poll(() => isWaiting).toBe(true);
    setup.clock.advance(DAY);
    const scheduled = domains.jobs.runDue();
    // It would end in this time; it waits instead.
    await Promise.race([scheduled, setTimeout(500)]);
    resolver.txt = txt;
    release();
    expect((await slow).domain.status).toBe('SUCCESS');
    await scheduled;
    expect(setup.row(domain).status).toBe('SUCCESS');
  });

  it('is applied although the clock was set back since the last one', async () => {
    const setup = await startDomains();
    const domain = await published(setup);
    await setup.verify(domain);
    setup.clock.advance(-2 * HOUR);
    setup.dns.remove('_dmarc.example.org');
    expect((await setup.verify(domain)).domain.status).toBe('TEMPORARY_FAILURE');
    expect(setup.row(domain).last_checked_at).toBe(setup.clock.now());
  });

  it('verifies only the domain of the account whose key is published', async () => {
    const setup = await startDomains();
    await setup.publishPlatform();
    const mine = await setup.register('example.org', 'acct_one');
    const theirs = await setup.register('example.org', 'acct_two');
    setup.publish(mine);
    expect(flagsOf((await setup.verify(mine)).domain)).toBe('DSMX');
    expect(flagsOf((await setup.verify(theirs)).domain)).toBe('-SMX');
    expect(setup.row(theirs).status).toBe('PENDING');
  });

  it('is limited to ten times a minute for each domain', async () => {
    const setup = await startDomains();
    const [one, two] = [await setup.register('one.example'), await setup.register('two.example')];
    for (let count = 0; count < 10; count++) await setup.verify(one);
    setup.clock.advance(15_000);
    expect(await setup.domains.verify('acct_one', one.domain_id)).toMatchObject({
      code: 'RATE_LIMITED',
      extras: { retryAfter: 45 },
    });
    await setup.verify(two);
    setup.clock.advance(45_000);
    await setup.verify(one);
  });

  it('is limited for each account', async () => {
    const setup = await startDomains();
    const limit = createVerifyLimit(setup.clock);
    const domains = Array.from({ length: 201 }, (_, n) => limit('acct_one', `domain_${n}`));
    expect(domains.filter((refusal) => refusal === null)).toHaveLength(200);
    expect(domains.at(-1)).toMatchObject({ code: 'RATE_LIMITED', extras: { retryAfter: 1 } });
    expect(limit('acct_two', 'domain_200')).toBeNull();
    setup.clock.advance(1000);
    expect(limit('acct_one', 'domain_200')).toBeNull();
  });

  it.each([
    ['one record', [`v=spf1 ${'ip4:192.0.2.1 '.repeat(400)}~all`]],
    ['many records', Array.from({ length: 20 }, (_, n) => `token${n}=${'x'.repeat(1000)}`)],
  ])('does not evaluate TXT records that are too long: %s', async (_, values) => {
    const setup = await startDomains();
    const domain = await published(setup);
    setup.dns.set(
      'example.org',
      'TXT',
      values.map((text) => text.match(/.{1,255}/g) ?? []),
    );
    const { checks } = await setup.verify(domain);
    expect(checks.find(({ check }) => check === 'spf')).toMatchObject({ result: 'unknown' });
  });

  it('verifies two domains of an account at the same time, and those of other accounts next to them', async () => {
    const setup = await startDomains({ timeoutMs: 8000 });
    const names = ['one', 'two', 'three', 'four'].map((name) => `${name}.example`);
    const domains = await Promise.all(names.map((name) => setup.register(name)));
    const other = await setup.register('other.example', 'acct_two');
    setup.dns.set('*', '*', 'silent');
    setup.dns.questions.splice(0);
    const all = [...domains, other].map((domain) => setup.verify(domain));
    const asked = () =>
      [...names, 'other.example'].filter((name) =>
        setup.dns.questions.some((question) => question.name.endsWith(name)),
      );
    await eventually('the queries of the first', () => asked().length >= 3);
    expect(asked()).toEqual(['one.example', 'two.example', 'other.example']);
    setup.dns.set('*', '*', 'NXDOMAIN');
    await Promise.all(all);
    expect(asked()).toHaveLength(5);
  });

  it('chooses the return path that passes SPF', async () => {
    const setup = await startDomains();
    const domain = await published(setup);
    expect((await setup.verify(domain)).domain.return_path).toBe('platform');
    setup.dns.set('return-a.example.org', 'TXT', ['v=spf1 include:spf.mail.example.net ~all']);
    expect((await setup.verify(domain)).domain.return_path).toBe('customer');
    // Neither passes: the domain's own return path is aligned.
    setup.dns.remove('return-a.example.org', 'TXT');
    setup.dns.remove('mail.example.net', 'TXT');
    expect((await setup.verify(domain)).domain.return_path).toBe('customer');
  });

  it.each(['customer', 'platform'] as const)('uses the configured return path: %s', async (returnPath) => {
    const setup = await startDomains({ platform: { delivery: { egress: [], returnPath } } });
    const domain = await published(setup);
    expect((await setup.verify(domain)).domain.return_path).toBe(returnPath);
  });
});

describe('SPF of the secondary lane', () => {
  const RELAY = { type: 'relay' as const, spfInclude: 'spf.relay.example' };

  it.each([
    ['passes where our record includes the relay', RELAY, () => {}, 1],
    [
      'fails where it does not',
      RELAY,
      (setup: DomainsSetup) => setup.dns.set('spf.mail.example.net', 'TXT', ['v=spf1 ip4:192.0.2.25 -all']),
      0,
    ],
    ['passes with ours for a relay without a record', { type: 'relay' as const }, () => {}, 1],
  ])('%s', async (_, secondary, change, configured) => {
    const setup = await startDomains({ platform: { secondary } });
    setup.dns.set('spf.relay.example', 'TXT', ['v=spf1 ip4:198.51.100.0/24 -all']);
    const domain = await published(setup);
    change(setup);
    expect((await setup.verify(domain)).domain).toMatchObject({
      spf_configured: 1,
      alt_spf_configured: configured,
    });
  });

  it('is evaluated for its own addresses', async () => {
    const egress = [
      { address: '192.0.2.25', pools: ['default'] },
      { address: '192.0.2.26', pools: ['secondary'] },
    ];
    const setup = await startDomains({ platform: { delivery: { egress, returnPath: 'auto' } } });
    const domain = await published(setup);
    setup.dns.set('example.org', 'TXT', ['v=spf1 ip4:192.0.2.26 ~all']);
    expect((await setup.verify(domain)).domain).toMatchObject({ spf_configured: 0, alt_spf_configured: 1 });
  });
});

describe('scheduled verification', () => {
  it('moves from PENDING through all states back to SUCCESS, with one event for each change', async () => {
    const setup = await startDomains();
    const domain = await setup.register('example.org');
    await setup.publishPlatform();
    const { clock, dns, domains, events } = setup;
    /** Runs the jobs whenever a check is due; returns the status after `ms`. */
    const wait = async (ms: number) => {
      const end = clock.now() + ms;
      for (let due = setup.row(domain).next_check_at; due <= end; due = setup.row(domain).next_check_at) {
        clock.advance(Math.max(0, due - clock.now()));
        await domains.jobs.runDue();
      }
      clock.advance(end - clock.now());
      return setup.row(domain).status;
    };
    const eventKinds = () => events.map(({ kind }) => kind);

    expect(await wait(HOUR)).toBe('PENDING');
    expect(setup.row(domain).check_count).toBeGreaterThan(2);

    setup.publish(domain);
    expect(await wait(2 * HOUR)).toBe('SUCCESS');
    expect(eventKinds()).toEqual(['domain_verified']);

    dns.remove('_dmarc.example.org');
    expect(await wait(26 * HOUR)).toBe('TEMPORARY_FAILURE');
    expect(eventKinds()).toEqual(['domain_verified', 'domain_failing']);
    expect(events.at(-1)?.fields).toMatchObject({
      status: 'TEMPORARY_FAILURE',
      failing: [{ check: 'dmarc', hint: expect.stringContaining('no DMARC record') }],
    });
    const since = setup.row(domain).failing_since ?? 0;

    // Our own resolver fails at the end of the grace period: mail must not stop.
    await wait(since + FAILURE_GRACE_MS - clock.now() - HOUR);
    dns.set('_dmarc.example.org', '*', 'SERVFAIL');
    expect(await wait(3 * HOUR)).toBe('TEMPORARY_FAILURE');
    dns.remove('_dmarc.example.org');
    expect(await wait(2 * HOUR)).toBe('FAILED');
    expect(eventKinds()).toEqual(['domain_verified', 'domain_failing', 'domain_failed']);

    setup.publish(domain, ({ purpose }) => purpose === 'DMARC');
    expect(await wait(26 * HOUR)).toBe('SUCCESS');
    expect(eventKinds()).toEqual(['domain_verified', 'domain_failing', 'domain_failed', 'domain_verified']);
    expect(setup.row(domain).failing_since).toBeNull();
  });

  it('fails a domain at the end of the grace period', async () => {
    const setup = await startDomains();
    const domain = await published(setup);
    await setup.verify(domain);
    setup.dns.remove('_dmarc.example.org');
    await setup.verify(domain);
    const { clock, domains } = setup;
    clock.advance(FAILURE_GRACE_MS - 3 * HOUR);
    await domains.jobs.runDue();
    while (setup.row(domain).next_check_at < (setup.row(domain).failing_since ?? 0) + FAILURE_GRACE_MS) {
      clock.advance(setup.row(domain).next_check_at - clock.now());
      await domains.jobs.runDue();
      expect(setup.row(domain).status).toBe('TEMPORARY_FAILURE');
    }
    clock.advance(setup.row(domain).next_check_at - clock.now());
    await domains.jobs.runDue();
    expect(setup.row(domain)).toMatchObject({
      status: 'FAILED',
      last_checked_at: (setup.row(domain).failing_since ?? 0) + FAILURE_GRACE_MS,
    });
  });

  it('checks three domains of an account at the same time, and those of other accounts before its fourth', async () => {
    const setup = await startDomains({ timeoutMs: 500 });
    const names = ['one', 'two', 'three', 'four', 'five', 'six'].map((name) => `${name}.example`);
    for (const name of names) await setup.register(name);
    await setup.register('other.example', 'acct_two');
    setup.dns.set('*', '*', 'silent');
    setup.dns.questions.splice(0);
    setup.clock.advance(HOUR);
    const { jobs } = setup.domains;
    const asked = () =>
      [...names, 'other.example'].filter((name) =>
        setup.dns.questions.some((question) => question.name.endsWith(name)),
      );
    await jobs.runDue();
    expect(asked()).toEqual(['one.example', 'two.example', 'three.example', 'other.example']);
    await jobs.runDue();
    expect(asked()).toHaveLength(7);
  });

  it('cancels verifications at stop, without writing, so that they stay due', async () => {
    const setup = await startDomains();
    const domain = await setup.register('slow.example');
    setup.dns.set('*', '*', 'silent');
    setup.clock.advance(MINUTE);
    const running = setup.domains.jobs.runDue();
    await setup.domains.jobs.stop();
    await running;
    expect(setup.row(domain)).toEqual(domain);
    expect(setup.tables.domains.dueForCheck(setup.clock.now(), [], [])).toEqual(domain);
  });

  it('postpones a verification that threw an error', async () => {
    const setup = await startDomains({
      recordDomainEvent: () => {
        throw new Error('broken');
      },
    });
    const domain = await published(setup);
    setup.clock.advance(MINUTE);
    await setup.domains.jobs.runDue();
    expect(setup.row(domain)).toMatchObject({ status: 'PENDING', next_check_at: setup.clock.now() + HOUR });
  });
});

describe('the host of tracked links', () => {
  it('is the custom one while it leads here, and the default one after its removal', async () => {
    const setup = await startDomains();
    const domain = await published(setup);
    const set = (trackingDomain: string | null) =>
      setup.domains.setTracking('acct_one', domain.domain_id, { trackingDomain });
    await setup.verify(domain);
    expect(await set('eu-t-link.example.org')).toMatchObject({
      tracking_domain: 'eu-t-link.example.org',
      tracking_host: 'link.example.org',
    });

    setup.dns.set('eu-t-link.example.org', 'CNAME', ['track.mail.example.net']);
    await setup.domains.jobs.runDue();
    expect(setup.row(domain).tracking_host).toBe('eu-t-link.example.org');

    expect(await set(null)).toMatchObject({ tracking_domain: null, tracking_host: null });
    await setup.domains.jobs.runDue();
    expect(setup.row(domain).tracking_host).toBe('link.example.org');
  });

  it('is used for https only after it was checked with HTTPS', async () => {
    const setup = await startDomains();
    const { tables, writer, clock, resolver } = setup;
    const domain = await published(setup);
    await setup.domains.prepareLinkHosts();
    await setup.verify(domain);
    const answering = new Set<string>();
    const restart = async (url: string) => {
      const { domains } = await startDomains({
        tables,
        writer,
        clock,
        resolver,
        platform: { public: { url } },
        answersHttps: (host) => Promise.resolve(answering.has(host)),
      });
      await domains.prepareLinkHosts();
      return { domains, base: () => linkBase(url, setup.row(domain)) };
    };
    expect((await restart('http://links.example.net')).base()).toBe('http://link.example.org');

    const https = await restart('https://links.example.net');
    expect(https.base()).toBe('https://links.example.net');
    await https.domains.jobs.runDue();
    expect(https.base()).toBe('https://links.example.net');
    answering.add('link.example.org');
    await https.domains.verify('acct_one', domain.domain_id);
    expect(https.base()).toBe('https://link.example.org');

    expect((await restart('https://links.example.net')).base()).toBe('https://link.example.org');
    expect((await restart('https://links.example.net:8443')).base()).toBe('https://links.example.net:8443');
  });

  it('is checked immediately when public.url changes to https', async () => {
    const setup = await startDomains();
    const { tables, writer, clock, resolver } = setup;
    const domain = await published(setup);
    await setup.domains.prepareLinkHosts();
    await setup.verify(domain);
    const platform = { public: { url: 'https://links.example.net' } };
    const { domains } = await startDomains({ tables, writer, clock, resolver, platform });
    await domains.prepareLinkHosts();
    await domains.jobs.runDue();
    expect(setup.row(domain).tracking_host).toBe('link.example.org');
  });
});
