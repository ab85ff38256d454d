import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/core/clock.ts';
import type { NameServerSetting } from '../../src/domains/platform/platform.ts';
import type { DomainRow } from '../../src/store/domains/domains.ts';
import { accepted, type DomainsSetup, startDomains } from './setup.ts';

const SERVER: NameServerSetting = { listen: '127.0.0.1:53', nameServers: [], addresses: ['192.0.2.25'] };

/** A verified domain that has all recommended CNAME records. */
async function delegated(keys: { ed25519?: boolean; platformSignature?: boolean } = {}) {
  const steps: string[] = [];
  const setup = await startDomains({
    platform: {
      dns: { server: SERVER },
      domains: { ed25519: false, platformSignature: false, ...keys },
    },
    onKeyStep: (step) => steps.push(step),
  });
  const domain = await setup.register('example.org');
  await setup.publishPlatform();
  setup.publish(domain);
  setup.dns.publish(
    setup.domains.records(domain).recommendedDnsRecords.filter(({ type }) => type === 'CNAME'),
  );
  await setup.verify(domain);
  return { setup, domain, steps };
}

/** Advances the clock, runs the checks that are due, and publishes the zone. */
async function pass(setup: DomainsSetup, ms: number): Promise<void> {
  setup.clock.advance(ms);
  setup.resolver.clear();
  await setup.domains.jobs.runDue();
  await setup.publishPlatform();
}

const signers = (setup: DomainsSetup, domain: DomainRow, lane: 'primary' | 'secondary' = 'primary') =>
  setup.domains.signingKeys(domain.domain_id, lane).map(({ selector }) => selector.slice(0, 2));

const states = (setup: DomainsSetup, domain: DomainRow) =>
  setup.tables.dkimKeys.of(domain.domain_id).map(({ slot, state }) => `${slot ?? '-'} ${state}`);

describe('keys in the zone of the platform', () => {
  it('are recommended as CNAME records after the six required records', async () => {
    const { setup, domain } = await delegated({ ed25519: true });
    const { dnsRecords, recommendedDnsRecords } = setup.domains.records(domain);
    expect(dnsRecords).toHaveLength(6);
    const aliases = recommendedDnsRecords.filter(({ type }) => type === 'CNAME');
    const id = domain.alt_domain_id;
    expect(aliases.map(({ name, value, purpose }) => [name.slice(0, 2), value, purpose])).toEqual([
      ['pa', `a.${id}.dkim.mail.example.net`, 'DKIM rotation'],
      ['pb', `b.${id}.dkim.mail.example.net`, 'DKIM rotation'],
      ['pt', `t.${id}.dkim.mail.example.net`, 'DKIM rotation'],
      ['pe', `e.${id}.dkim.mail.example.net`, 'Ed25519 DKIM'],
      ['pf', `f.${id}.dkim.mail.example.net`, 'Ed25519 DKIM'],
    ]);
  });

  it('are not recommended where the zone is published elsewhere', async () => {
    const setup = await startDomains();
    const domain = await setup.register('example.org');
    expect(setup.domains.records(domain).recommendedDnsRecords.every(({ type }) => type === 'TXT')).toBe(
      true,
    );
  });

  it('rotate without a change of the zone of the domain', async () => {
    const { setup, domain, steps } = await delegated();
    expect(signers(setup, domain)).toEqual(['pr']);
    await pass(setup, MINUTE);
    expect(states(setup, domain)).toEqual(['- active', 's active', 'a pending', 'b pending', 't pending']);
    expect(signers(setup, domain)).toEqual(['pr']);
    await pass(setup, HOUR);
    expect(states(setup, domain)).toEqual(['- active', 's active', 'a active', 'b pending', 't pending']);
    expect(signers(setup, domain)).toEqual(['pa']);
    await pass(setup, 181 * DAY);
    expect(signers(setup, domain)).toEqual(['pb']);
    expect(signers(setup, domain, 'secondary')).toEqual(['pt']);
    expect(states(setup, domain)).toEqual(['- active', 's retiring', 'a retiring', 'b active', 't active']);
    await pass(setup, 8 * DAY);
    expect(states(setup, domain)).toEqual(['- active', 's revoked', 'a revoked', 'b active', 't active']);
    const revoked = (await setup.domains.zone()).filter(({ value }) => value === 'v=DKIM1; k=rsa; p=');
    expect(revoked.map(({ name }) => name)).toEqual([
      `${domain.alt_domain_id}.dkim.mail.example.net`,
      `a.${domain.alt_domain_id}.dkim.mail.example.net`,
    ]);
    expect((await setup.verify(domain)).domain).toMatchObject({ status: 'SUCCESS', alt_status: 'ACTIVE' });
    await pass(setup, 31 * DAY);
    await pass(setup, DAY);
    expect(states(setup, domain).toSorted()).toEqual([
      '- active',
      'a pending',
      'b active',
      's pending',
      't active',
    ]);
    expect(steps.filter((step) => step === 'delete')).toHaveLength(2);
  });

  it('make the TXT record of the owner unnecessary while they sign', async () => {
    const { setup, domain } = await delegated();
    await pass(setup, MINUTE);
    await pass(setup, HOUR);
    setup.dns.remove(setup.domains.records(domain).dnsRecords[0]?.name ?? '');
    const { domain: row, checks } = await setup.verify(domain);
    expect(row.status).toBe('SUCCESS');
    expect(checks[0]).toMatchObject({ passed: true, hint: expect.stringContaining('rotated automatically') });
  });

  it('stop signing when the CNAME records are removed', async () => {
    const { setup, domain } = await delegated();
    await pass(setup, MINUTE);
    await pass(setup, HOUR);
    for (const { name, type } of setup.domains.records(domain).recommendedDnsRecords)
      if (type === 'CNAME') setup.dns.remove(name);
    expect((await setup.verify(domain)).domain.status).toBe('SUCCESS');
    expect(signers(setup, domain)).toEqual(['pr']);
  });

  it('rotate on request at the next check', async () => {
    const { setup, domain } = await delegated();
    await pass(setup, MINUTE);
    await pass(setup, HOUR);
    expect(accepted(await setup.domains.rotateDkim('acct_one', domain.domain_id))).toMatchObject({
      started: true,
    });
    expect(signers(setup, domain)).toEqual(['pa']);
    await pass(setup, MINUTE);
    expect(signers(setup, domain)).toEqual(['pb']);
    expect(setup.domains.records(domain).dnsRecords[0]?.name.slice(0, 2)).toBe('pr');
  });

  it('add an Ed25519 signature and one of the platform', async () => {
    const { setup, domain } = await delegated({ ed25519: true, platformSignature: true });
    await pass(setup, MINUTE);
    await pass(setup, HOUR);
    await pass(setup, MINUTE);
    const keys = setup.domains.signingKeys(domain.domain_id, 'primary');
    expect(
      keys.map(({ domain: d, selector, key }) => [d, selector.slice(0, 2), key.asymmetricKeyType]),
    ).toEqual([
      ['example.org', 'pa', 'rsa'],
      ['example.org', 'pe', 'ed25519'],
      ['mail.example.net', 'pf', 'rsa'],
    ]);
    const zone = await setup.domains.zone();
    expect(zone.find(({ name }) => name.startsWith('e.'))?.value).toMatch(
      /^v=DKIM1; k=ed25519; p=[\w+/]{43}=$/,
    );
    expect(zone.filter(({ name }) => name.endsWith('._domainkey.mail.example.net'))).toHaveLength(1);
  });
});
