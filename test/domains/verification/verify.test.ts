import { describe, expect, it, vi } from 'vitest';
import { HOUR, MINUTE } from '../../../src/core/clock.ts';
import { PATIENCE } from '../../../src/domains/verification/status.ts';
import type { DomainRow } from '../../../src/store/domains/domains.ts';
import { flagsOf, type House, startHouse } from '../setup.ts';

/** Every test makes RSA keys, which takes seconds on a busy machine. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** The zone of a domain that has everything, and what a test does to it. */
async function published(house: House): Promise<DomainRow> {
  const domain = await house.register('example.org');
  await house.publishPlatform();
  house.publish(domain);
  return domain;
}

const dkimName = (house: House, domain: DomainRow) => house.domains.records(domain).dnsRecords[0]?.name ?? '';
const dkimValue = (house: House, domain: DomainRow) =>
  house.domains.records(domain).dnsRecords[0]?.value ?? '';

describe('verifying a domain over real DNS', () => {
  it('finds everything in order when the list was followed', async () => {
    const house = await startHouse();
    const domain = await published(house);
    const { domain: row, checks } = await house.verify(domain);
    expect(row).toMatchObject({
      status: 'SUCCESS',
      alt_status: 'ACTIVE',
      alt_dkim_enabled: 1,
      alt_spf_configured: 1,
      alt_dmarc_configured: 1,
      tracking_host: 'link.example.org',
      last_checked_at: house.clock.now(),
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
    expect(house.events).toEqual([
      {
        kind: 'domain_verified',
        domain: 'example.org',
        data: { status: 'SUCCESS', previousStatus: 'PENDING', failing: [] },
      },
    ]);
  });

  it.each<[string, (house: House, domain: DomainRow) => void, string, string, string | RegExp]>([
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
      'the DKIM key beside another',
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
    const house = await startHouse();
    const domain = await published(house);
    change(house, domain);
    const { domain: row, checks } = await house.verify(domain);
    expect(flagsOf(row)).toBe(flags);
    expect(row.status).toBe(flags === 'DSMX' ? 'SUCCESS' : 'PENDING');
    const found = checks.find((one) => one.check === check);
    expect(found?.passed).toBe(flags === 'DSMX');
    expect(found?.hint).toMatch(hint);
  });

  it.each(['SERVFAIL', 'REFUSED', 'silent', 'bad bytes'] as const)(
    'keeps every flag when all of DNS is suddenly %s',
    async (behaviour) => {
      const house = await startHouse({ timeoutMs: 150 });
      const domain = await published(house);
      await house.verify(domain);
      for (const name of new Set(house.dns.questions.map((question) => question.name))) {
        house.dns.remove(name);
        house.dns.set(name, '*', behaviour);
      }
      const { domain: row, checks } = await house.verify(domain);
      expect(flagsOf(row)).toBe('DSMX');
      expect(row).toMatchObject({
        status: 'SUCCESS',
        alt_status: 'ACTIVE',
        tracking_host: 'link.example.org',
      });
      expect(
        checks
          .filter(({ check }) => check !== 'returnPathSpf')
          .every(({ passed, hint }) => passed && hint.includes('Nothing can be said')),
      ).toBe(true);
      // Whom we ask is nobody's business but the operator's.
      expect(JSON.stringify(checks)).not.toContain(house.dns.address);
    },
  );

  it('asks past our caches when a person asks, and not by the clock', async () => {
    const house = await startHouse();
    const domain = await published(house);
    const asked = () => house.dns.asked('_dmarc.example.org', 'TXT');
    await house.verify(domain);
    await house.verify(domain);
    expect(asked()).toBe(2);
    house.clock.advance(MINUTE);
    house.tables.domains.update({ ...house.row(domain), next_check_at: house.clock.now() });
    await house.domains.background.tick();
    expect(asked()).toBe(2);
    expect(house.row(domain).last_checked_at).toBe(house.clock.now());
  });

  it('only proves the account that holds the published key', async () => {
    const house = await startHouse();
    await house.publishPlatform();
    const mine = await house.register('example.org', 'acct_one');
    const theirs = await house.register('example.org', 'acct_two');
    house.publish(mine);
    expect(flagsOf((await house.verify(mine)).domain)).toBe('DSMX');
    expect(flagsOf((await house.verify(theirs)).domain)).toBe('-SMX');
    expect(house.row(theirs).status).toBe('PENDING');
  });

  it('is allowed ten times a minute for a domain', async () => {
    const house = await startHouse({ timeoutMs: 50 });
    const [one, two] = [await house.register('one.example'), await house.register('two.example')];
    for (let count = 0; count < 10; count++) await house.verify(one);
    house.clock.advance(15_000);
    expect(await house.domains.verify('acct_one', one.domain_id)).toMatchObject({
      code: 'RATE_LIMITED',
      extras: { retryAfter: 45 },
    });
    await house.verify(two);
    house.clock.advance(45_000);
    await house.verify(one);
  });

  it('decides whose envelope sender passes SPF', async () => {
    const house = await startHouse();
    const domain = await published(house);
    expect((await house.verify(domain)).domain.return_path).toBe('platform');
    house.dns.set('return-a.example.org', 'TXT', ['v=spf1 include:spf.mail.example.net ~all']);
    expect((await house.verify(domain)).domain.return_path).toBe('customer');
    // Neither passes: then the customer's own aligns at least.
    house.dns.remove('return-a.example.org', 'TXT');
    house.dns.remove('mail.example.net', 'TXT');
    expect((await house.verify(domain)).domain.return_path).toBe('customer');
  });

  it.each(['customer', 'platform'] as const)(
    'leaves the envelope sender as configured: %s',
    async (returnPath) => {
      const house = await startHouse({ settings: { delivery: { egress: [], returnPath } } });
      const domain = await published(house);
      expect((await house.verify(domain)).domain.return_path).toBe(returnPath);
    },
  );
});

describe('SPF of the secondary lane', () => {
  const RELAY = { type: 'relay' as const, spfInclude: 'spf.relay.example' };

  it.each([
    ['passes where our record includes the relay', RELAY, () => {}, 1],
    [
      'fails where it does not',
      RELAY,
      (house: House) => house.dns.set('spf.mail.example.net', 'TXT', ['v=spf1 ip4:192.0.2.25 -all']),
      0,
    ],
    ['passes with ours for a relay without a record', { type: 'relay' as const }, () => {}, 1],
  ])('%s', async (_, secondary, change, configured) => {
    const house = await startHouse({ settings: { secondary } });
    house.dns.set('spf.relay.example', 'TXT', ['v=spf1 ip4:198.51.100.0/24 -all']);
    const domain = await published(house);
    change(house);
    expect((await house.verify(domain)).domain).toMatchObject({
      spf_configured: 1,
      alt_spf_configured: configured,
    });
  });

  it('is that of its own addresses', async () => {
    const egress = [
      { address: '192.0.2.25', pools: ['default'] },
      { address: '192.0.2.26', pools: ['secondary'] },
    ];
    const house = await startHouse({ settings: { delivery: { egress, returnPath: 'auto' } } });
    const domain = await published(house);
    house.dns.set('example.org', 'TXT', ['v=spf1 ip4:192.0.2.26 ~all']);
    expect((await house.verify(domain)).domain).toMatchObject({ spf_configured: 0, alt_spf_configured: 1 });
  });
});

describe('the life of a domain by the clock', () => {
  it('goes from PENDING over everything back to SUCCESS, with one event for each change', async () => {
    const house = await startHouse();
    const domain = await house.register('example.org');
    await house.publishPlatform();
    const { clock, dns, domains, events } = house;
    /** Runs the background for a time, in steps of ten minutes; returns the status then. */
    const wait = async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 10 * MINUTE) {
        clock.advance(10 * MINUTE);
        await domains.background.tick();
      }
      return house.row(domain).status;
    };
    const told = () => events.map(({ kind }) => kind);

    expect(await wait(HOUR)).toBe('PENDING');
    expect(house.row(domain).check_count).toBeGreaterThan(2);

    house.publish(domain);
    expect(await wait(2 * HOUR)).toBe('SUCCESS');
    expect(told()).toEqual(['domain_verified']);

    dns.remove('_dmarc.example.org');
    expect(await wait(26 * HOUR)).toBe('TEMPORARY_FAILURE');
    expect(told()).toEqual(['domain_verified', 'domain_failing']);
    expect(events.at(-1)?.data).toMatchObject({
      status: 'TEMPORARY_FAILURE',
      failing: [{ check: 'dmarc', hint: expect.stringContaining('no DMARC record') }],
    });
    const since = house.row(domain).failing_since ?? 0;

    // Our own resolver breaks down over the end of the patience: nobody's mail stops for that.
    await wait(since + PATIENCE - clock.now() - HOUR);
    dns.set('_dmarc.example.org', '*', 'SERVFAIL');
    expect(await wait(3 * HOUR)).toBe('TEMPORARY_FAILURE');
    dns.remove('_dmarc.example.org');
    expect(await wait(2 * HOUR)).toBe('FAILED');
    expect(told()).toEqual(['domain_verified', 'domain_failing', 'domain_failed']);

    house.publish(domain, ({ purpose }) => purpose === 'DMARC');
    expect(await wait(26 * HOUR)).toBe('SUCCESS');
    expect(told()).toEqual(['domain_verified', 'domain_failing', 'domain_failed', 'domain_verified']);
    expect(house.row(domain).failing_since).toBeNull();
  });

  it('fails a domain as soon as its patience is over', async () => {
    const house = await startHouse();
    const domain = await published(house);
    await house.verify(domain);
    house.dns.remove('_dmarc.example.org');
    await house.verify(domain);
    const { clock, domains } = house;
    while (house.row(domain).next_check_at < (house.row(domain).failing_since ?? 0) + PATIENCE) {
      clock.advance(house.row(domain).next_check_at - clock.now());
      await domains.background.tick();
      expect(house.row(domain).status).toBe('TEMPORARY_FAILURE');
    }
    clock.advance(house.row(domain).next_check_at - clock.now());
    await domains.background.tick();
    expect(house.row(domain)).toMatchObject({
      status: 'FAILED',
      last_checked_at: (house.row(domain).failing_since ?? 0) + PATIENCE,
    });
  });

  it('stops with what runs, without writing, and takes it up again', async () => {
    const house = await startHouse({ timeoutMs: 5000 });
    const domain = await house.register('slow.example');
    house.dns.set('*', '*', 'silent');
    house.clock.advance(MINUTE);
    const running = house.domains.background.tick();
    await house.domains.background.stop();
    await running;
    expect(house.row(domain)).toEqual(domain);
    expect(house.tables.domains.dueForCheck(house.clock.now(), 10)).toEqual([domain]);
  });

  it('does not try a domain every second whose check is broken', async () => {
    const house = await startHouse({
      recordDomainEvent: () => {
        throw new Error('broken');
      },
    });
    const domain = await published(house);
    house.clock.advance(MINUTE);
    await house.domains.background.tick();
    expect(house.row(domain)).toMatchObject({ status: 'PENDING', next_check_at: house.clock.now() + HOUR });
  });
});

describe('the host of tracked links', () => {
  it('is the custom one once it leads here, and falls back at once when it is given up', async () => {
    const house = await startHouse();
    const domain = await published(house);
    const set = (host: string | null) => house.domains.setTrackingDomain('acct_one', domain.domain_id, host);
    await house.verify(domain);
    expect(await set('eu-t-link.example.org')).toMatchObject({
      tracking_domain: 'eu-t-link.example.org',
      tracking_host: 'link.example.org',
    });

    house.dns.set('eu-t-link.example.org', 'CNAME', ['track.mail.example.net']);
    await house.domains.background.tick();
    expect(house.row(domain).tracking_host).toBe('eu-t-link.example.org');

    expect(await set(null)).toMatchObject({ tracking_domain: null, tracking_host: null });
    await house.domains.background.tick();
    expect(house.row(domain).tracking_host).toBe('link.example.org');
  });
});
