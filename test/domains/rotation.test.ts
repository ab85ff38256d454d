import { describe, expect, it, vi } from 'vitest';
import { DAY, MINUTE } from '../../src/core/clock.ts';
import type { DomainRow } from '../../src/store/domains/domains.ts';
import { accepted, flagsOf, type House, startHouse } from './setup.ts';

/** Every test makes RSA keys, which takes seconds on a busy machine. */
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** A verified domain, and the selector it was verified with. */
async function verified(): Promise<{ house: House; domain: DomainRow; first: string }> {
  const house = await startHouse();
  const domain = await house.register('example.org');
  await house.publishPlatform();
  house.publish(domain);
  await house.verify(domain);
  return { house, domain, first: signingSelector(house, domain) };
}

function signingSelector(house: House, domain: DomainRow): string {
  const keys = house.domains.signingKeys(domain.domain_id, 'primary');
  expect(keys).toHaveLength(1);
  return keys[0]?.selector ?? '';
}

const rotate = async (house: House, domain: DomainRow) =>
  accepted(await house.domains.rotateDkim('acct_one', domain.domain_id));

/** The DKIM records that the customer is told of: to publish, and to keep. */
function told(house: House, domain: DomainRow): { publish: string; keep: string[] } {
  const { dnsRecords, recommendedDnsRecords } = house.domains.records(domain);
  const selector = (name: string) => name.slice(0, name.indexOf('.'));
  return {
    publish: selector(dnsRecords[0]?.name ?? ''),
    keep: recommendedDnsRecords
      .filter(({ name }) => name.includes('._domainkey.'))
      .map(({ name }) => selector(name)),
  };
}

describe('changing the DKIM key', () => {
  it('announces the new key, and goes on signing with the old one', async () => {
    const { house, domain, first } = await verified();
    expect(await rotate(house, domain)).toMatchObject({ started: true });
    const { publish, keep } = told(house, domain);
    expect(publish).not.toBe(first);
    expect(keep).toEqual([first]);
    expect(signingSelector(house, domain)).toBe(first);
    const { domain: row, checks } = await house.verify(domain);
    expect(row.status).toBe('SUCCESS');
    expect(flagsOf(row)).toBe('DSMX');
    expect(checks[0]).toMatchObject({
      passed: true,
      expected: house.domains.records(domain).dnsRecords[0]?.value,
      hint: expect.stringContaining('the new one is not seen yet'),
    });
  });

  it('signs with the new key from the check on that has seen it', async () => {
    const { house, domain, first } = await verified();
    await rotate(house, domain);
    const { publish } = told(house, domain);
    house.publish(domain, ({ name }) => name.startsWith(publish));
    house.clock.advance(MINUTE);
    await house.domains.background.tick();
    expect(signingSelector(house, domain)).toBe(publish);
    expect(told(house, domain)).toEqual({ publish, keep: [first] });
    expect(flagsOf(house.row(domain))).toBe('DSMX');
  });

  it('forgets the old key some days later, not before', async () => {
    const { house, domain, first } = await verified();
    house.clock.advance(30 * DAY);
    await rotate(house, domain);
    const { publish } = told(house, domain);
    house.publish(domain, ({ name }) => name.startsWith(publish));
    await house.verify(domain);
    house.clock.advance(6 * DAY);
    await house.verify(domain);
    expect(told(house, domain).keep).toEqual([first]);
    house.clock.advance(DAY);
    await house.verify(domain);
    expect(told(house, domain)).toEqual({ publish, keep: [] });
    expect(house.tables.dkimKeys.of(domain.domain_id).map(({ lane, state }) => `${lane} ${state}`)).toEqual([
      'secondary active',
      'primary active',
    ]);
  });

  it('asked for again, also at the same time, is one change', async () => {
    const { house, domain } = await verified();
    const answers = await Promise.all([rotate(house, domain), rotate(house, domain), rotate(house, domain)]);
    expect(answers.filter(({ started }) => started)).toHaveLength(1);
    const { publish } = told(house, domain);
    expect(await rotate(house, domain)).toMatchObject({ started: false });
    expect(told(house, domain).publish).toBe(publish);
  });

  it('fails DKIM when the old record goes before the new one is there', async () => {
    const { house, domain, first } = await verified();
    await rotate(house, domain);
    house.dns.remove(`${first}._domainkey.example.org`);
    const { domain: row, checks } = await house.verify(domain);
    expect(row.status).toBe('TEMPORARY_FAILURE');
    expect(checks[0]).toMatchObject({
      passed: false,
      hint: expect.stringMatching(/not seen yet.*There is no TXT record/),
    });
    expect(signingSelector(house, domain)).toBe(first);
  });

  it('passes with either key before the first verification', async () => {
    const house = await startHouse();
    const domain = await house.register('example.org');
    await rotate(house, domain);
    await house.publishPlatform();
    house.publish(domain);
    expect((await house.verify(domain)).domain.status).toBe('SUCCESS');
    expect(signingSelector(house, domain)).toBe(told(house, domain).publish);
  });
});
