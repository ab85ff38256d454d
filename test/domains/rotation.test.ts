import { describe, expect, it } from 'vitest';
import { DAY, MINUTE } from '../../src/core/clock.ts';
import type { DomainRow } from '../../src/store/domains/domains.ts';
import { accepted, type DomainsSetup, flagsOf, startDomains } from './setup.ts';

/** A verified domain, and its selector. */
async function verified(): Promise<{ setup: DomainsSetup; domain: DomainRow; first: string }> {
  const setup = await startDomains();
  const domain = await setup.register('example.org');
  await setup.publishPlatform();
  setup.publish(domain);
  await setup.verify(domain);
  return { setup, domain, first: signingSelector(setup, domain) };
}

function signingSelector(setup: DomainsSetup, domain: DomainRow): string {
  const keys = setup.domains.signingKeys(domain.domain_id, 'primary');
  expect(keys).toHaveLength(1);
  return keys[0]?.selector ?? '';
}

const rotate = async (setup: DomainsSetup, domain: DomainRow) =>
  accepted(await setup.domains.rotateDkim('acct_one', domain.domain_id));

/** The DKIM records to publish and to keep. */
function announced(setup: DomainsSetup, domain: DomainRow): { publish: string; keep: string[] } {
  const { dnsRecords, recommendedDnsRecords } = setup.domains.records(domain);
  const selector = (name: string) => name.slice(0, name.indexOf('.'));
  return {
    publish: selector(dnsRecords[0]?.name ?? ''),
    keep: recommendedDnsRecords
      .filter(({ name }) => name.includes('._domainkey.'))
      .map(({ name }) => selector(name)),
  };
}

describe('rotating the DKIM key', () => {
  it('announces the new key and signs with the old one', async () => {
    const { setup, domain, first } = await verified();
    expect(await rotate(setup, domain)).toMatchObject({ started: true });
    const { publish, keep } = announced(setup, domain);
    expect(publish).not.toBe(first);
    expect(keep).toEqual([first]);
    expect(signingSelector(setup, domain)).toBe(first);
    const { domain: row, checks } = await setup.verify(domain);
    expect(row.status).toBe('SUCCESS');
    expect(flagsOf(row)).toBe('DSMX');
    expect(checks[0]).toMatchObject({
      passed: true,
      expected: setup.domains.records(domain).dnsRecords[0]?.value,
      hint: expect.stringContaining('the new one is not found yet'),
    });
  });

  it('signs with the new key after the check that found it', async () => {
    const { setup, domain, first } = await verified();
    await rotate(setup, domain);
    const { publish } = announced(setup, domain);
    setup.publish(domain, ({ name }) => name.startsWith(publish));
    setup.clock.advance(MINUTE);
    await setup.domains.jobs.runDue();
    expect(signingSelector(setup, domain)).toBe(publish);
    expect(announced(setup, domain)).toEqual({ publish, keep: [first] });
    expect(flagsOf(setup.row(domain))).toBe('DSMX');
  });

  it('deletes the old key after its retirement period', async () => {
    const { setup, domain, first } = await verified();
    setup.clock.advance(30 * DAY);
    await rotate(setup, domain);
    const { publish } = announced(setup, domain);
    setup.publish(domain, ({ name }) => name.startsWith(publish));
    await setup.verify(domain);
    setup.clock.advance(6 * DAY);
    await setup.verify(domain);
    expect(announced(setup, domain).keep).toEqual([first]);
    setup.clock.advance(DAY);
    await setup.verify(domain);
    expect(announced(setup, domain)).toEqual({ publish, keep: [] });
    expect(setup.tables.dkimKeys.of(domain.domain_id).map(({ lane, state }) => `${lane} ${state}`)).toEqual([
      'secondary active',
      'primary active',
    ]);
  });

  it('starts one rotation for repeated and simultaneous requests', async () => {
    const { setup, domain } = await verified();
    const answers = await Promise.all([rotate(setup, domain), rotate(setup, domain), rotate(setup, domain)]);
    expect(answers.filter(({ started }) => started)).toHaveLength(1);
    const { publish } = announced(setup, domain);
    expect(await rotate(setup, domain)).toMatchObject({ started: false });
    expect(announced(setup, domain).publish).toBe(publish);
  });

  it('fails DKIM when the old record is removed before the new one is published', async () => {
    const { setup, domain, first } = await verified();
    await rotate(setup, domain);
    setup.dns.remove(`${first}._domainkey.example.org`);
    const { domain: row, checks } = await setup.verify(domain);
    expect(row.status).toBe('TEMPORARY_FAILURE');
    expect(checks[0]).toMatchObject({
      passed: false,
      hint: expect.stringMatching(/not found yet.*There is no TXT record/),
    });
    expect(signingSelector(setup, domain)).toBe(first);
  });

  it('passes with either key before the first verification', async () => {
    const setup = await startDomains();
    const domain = await setup.register('example.org');
    await rotate(setup, domain);
    await setup.publishPlatform();
    setup.publish(domain);
    expect((await setup.verify(domain)).domain.status).toBe('SUCCESS');
    expect(signingSelector(setup, domain)).toBe(announced(setup, domain).publish);
  });
});
