import { describe, expect, it } from 'vitest';
import type { DomainRow } from '../../../src/store/domains/domains.ts';
import { type DomainsSetup, startDomains } from '../setup.ts';

/** The result of each record after `name`, by purpose or type. */
function resultsOf(setup: DomainsSetup, domain: DomainRow): Record<string, string> {
  return Object.fromEntries(
    setup.domains
      .lastCheck(setup.row(domain))
      .records.map(({ type, purpose, lastResult }) => [purpose ?? type, lastResult?.result ?? 'none']),
  );
}

describe('the results of the last check', () => {
  it('are stored for each record, with what was found and what passes', async () => {
    const setup = await startDomains();
    const domain = await setup.register('example.org');
    expect(setup.domains.lastCheck(domain)).toMatchObject({ checkedAt: null });
    expect(new Set(Object.values(resultsOf(setup, domain)))).toEqual(new Set(['none']));
    await setup.publishPlatform();
    setup.publish(domain, ({ purpose }) => purpose !== 'SPF');
    setup.dns.publish([{ name: 'example.org', type: 'TXT', value: 'v=spf1 mx ~all' }]);
    await setup.verify(domain);
    const { checkedAt, records } = setup.domains.lastCheck(setup.row(domain));
    expect(checkedAt).toBe(setup.clock.now());
    const spf = records.find(({ purpose }) => purpose === 'SPF');
    expect(spf).toMatchObject({
      isRequired: true,
      value: 'v=spf1 include:spf.mail.example.net ~all',
      lastResult: {
        check: 'spf',
        result: 'wrong',
        expected: 'v=spf1 mx include:spf.mail.example.net ~all',
        found: 'v=spf1 mx ~all',
        hint: expect.stringContaining('Change it to'),
      },
    });
    const required = records.filter(({ isRequired }) => isRequired);
    expect(required.map(({ lastResult }) => lastResult?.result)).toEqual([
      'ok',
      'wrong',
      'ok',
      'ok',
      'ok',
      'ok',
    ]);
  });

  it('include recommended records after a requested verification, which scheduled ones keep', async () => {
    const setup = await startDomains();
    const domain = await setup.register('example.org');
    await setup.publishPlatform();
    setup.publish(domain);
    setup.dns.publish([{ name: '_smtp._tls.return-a.example.org', type: 'TXT', value: 'something else' }]);
    await setup.verify(domain);
    const after = { 'TLS-RPT': 'wrong' };
    expect(resultsOf(setup, domain)).toMatchObject({ ...after, SPF: 'ok' });
    setup.dns.remove('example.org');
    setup.clock.advance(48 * 3_600_000);
    await setup.domains.jobs.runDue();
    expect(resultsOf(setup, domain)).toMatchObject({ ...after, SPF: 'missing' });
  });

  it('include the MX record of each host with an inbound route', async () => {
    const setup = await startDomains();
    const domain = await setup.register('example.org');
    for (const local of ['support', '*'])
      setup.tables.inboundRoutes.insert({
        route_id: `route_${local}`,
        account_id: 'acct_one',
        domain_id: domain.domain_id,
        name: local,
        local,
        host: 'in.example.org',
        action: 'store',
        webhook_id: null,
        spam_policy: 'mark',
        is_active: 1,
        created_at: 0,
        updated_at: 0,
      });
    const inbound = () =>
      setup.domains.lastCheck(setup.row(domain)).records.filter(({ purpose }) => purpose === 'Inbound mail');
    expect(inbound()).toMatchObject([
      { type: 'MX', name: 'in.example.org', value: 'mail.example.net', priority: 10, isRequired: false },
    ]);
    await setup.publishPlatform();
    await setup.verify(domain);
    expect(inbound()).toMatchObject([{ lastResult: { result: 'missing' } }]);
    setup.dns.set('in.example.org', 'MX', ['10 mail.example.net', '20 other.example.net']);
    setup.clock.advance(3_600_000);
    await setup.verify(domain);
    expect(inbound()).toMatchObject([{ lastResult: { result: 'ok' } }]);
  });

  it('do not apply to the record of another key', async () => {
    const setup = await startDomains();
    const domain = await setup.register('example.org');
    await setup.publishPlatform();
    setup.publish(domain);
    await setup.verify(domain);
    await setup.domains.rotateDkim('acct_one', domain.domain_id);
    const { records, dkimKeys } = setup.domains.lastCheck(setup.row(domain));
    expect(records[0]).toMatchObject({ description: expect.stringContaining('DKIM'), lastResult: null });
    expect(dkimKeys.map(({ lane, state }) => `${lane} ${state}`)).toEqual([
      'primary active',
      'secondary active',
      'primary pending',
    ]);
  });

  it('are limited to 4,000 characters for each text, and deleted with the domain', async () => {
    const setup = await startDomains();
    const domain = await setup.register('example.org');
    await setup.publishPlatform();
    const long = Array.from({ length: 40 }, (_, at) => `v=spf1 ${String(at).repeat(100)}.example ~all`);
    setup.dns.set('example.org', 'TXT', long);
    await setup.verify(domain);
    const spf = setup.domains
      .lastCheck(setup.row(domain))
      .records.find(({ purpose }) => purpose === 'SPF')?.lastResult;
    expect(spf?.found).toHaveLength(4000);
    expect(setup.tables.domainChecks.get(domain.domain_id)).not.toBeNull();
    await setup.domains.remove('acct_one', domain.domain_id);
    expect(setup.tables.domainChecks.get(domain.domain_id)).toBeNull();
  });
});
