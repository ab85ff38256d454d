import { createPublicKey, sign, verify } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { enqueue } from '../support/store.ts';
import { accepted, startDomains } from './setup.ts';

describe('registering a domain', () => {
  it('returns the required records in the documented order', async () => {
    const { domains } = await startDomains();
    const { domain, created } = accepted(
      await domains.register('acct_one', { domain: 'Example.org.', useCaseId: 'tx-eu' }),
    );
    expect(created).toBe(true);
    expect(domain).toMatchObject({
      domain_id: expect.stringMatching(/^domain_\d{13}_[a-z0-9]{12}$/),
      group_id: 'dgroup_acct_one',
      name: 'example.org',
      use_case: 'tx',
      region: 'eu',
      status: 'PENDING',
      alt_domain_id: expect.stringMatching(/^alt_\d{13}_[a-z0-9]{12}$/),
      alt_status: 'PENDING',
    });
    const { dnsRecords, recommendedDnsRecords } = domains.records(domain);
    expect(dnsRecords).toEqual([
      {
        type: 'TXT',
        name: expect.stringMatching(/^pr[a-z0-9]{8}\._domainkey\.example\.org$/),
        value: expect.stringMatching(/^v=DKIM1; k=rsa; p=[A-Za-z0-9+/]{390,}=*$/),
        description: expect.any(String),
        chunks: [expect.any(String), expect.any(String)],
      },
      {
        type: 'TXT',
        name: 'example.org',
        value: 'v=spf1 include:spf.mail.example.net ~all',
        description: expect.any(String),
        purpose: 'SPF',
      },
      {
        type: 'CNAME',
        name: 'link.example.org',
        value: 'track.mail.example.net',
        description: expect.any(String),
        purpose: 'Tracking',
      },
      {
        type: 'TXT',
        name: '_dmarc.example.org',
        value: 'v=DMARC1; p=reject; rua=mailto:dmarc@return-a.example.org',
        description: expect.stringMatching(/strict policy.*BIMI/),
        purpose: 'DMARC',
      },
      {
        type: 'MX',
        name: 'return-a.example.org',
        value: 'mail.example.net',
        description: expect.any(String),
        priority: 10,
      },
      {
        type: 'CNAME',
        name: expect.stringMatching(/^ps[a-z0-9]{8}\._domainkey\.example\.org$/),
        value: 'Creation in progress',
        description: expect.any(String),
        purpose: 'Secondary DKIM',
        ttl: 300,
      },
    ]);
    const [dkim] = dnsRecords;
    expect(dkim?.chunks?.join('')).toBe(dkim?.value);
    expect(dkim?.chunks?.every((chunk) => Buffer.byteLength(chunk) <= 255)).toBe(true);
    expect(recommendedDnsRecords.map(({ type, name, value }) => `${type} ${name} ${value}`)).toEqual([
      'TXT return-a.example.org v=spf1 include:spf.mail.example.net ~all',
      'TXT _smtp._tls.return-a.example.org v=TLSRPTv1; rua=mailto:tlsrpt@return-a.example.org',
    ]);
  });

  it('returns the existing domain the second time', async () => {
    const { domains } = await startDomains();
    const options = { domain: 'example.org', useCaseId: 'tx-local' };
    const first = accepted(await domains.register('acct_one', options));
    const second = accepted(await domains.register('acct_one', { ...options, domain: 'EXAMPLE.org.' }));
    expect(second).toEqual({ domain: first.domain, created: false });
  });

  it('creates one domain for simultaneous requests', async () => {
    const { domains, tables } = await startDomains();
    const options = { domain: 'example.org', useCaseId: 'tx-local' };
    const answers = await Promise.all(Array.from({ length: 8 }, () => domains.register('acct_one', options)));
    const results = answers.map(accepted);
    expect(new Set(results.map(({ domain }) => domain.domain_id)).size).toBe(1);
    expect(results.filter(({ created }) => created)).toHaveLength(1);
    const [{ domain } = { domain: null }] = results;
    expect(tables.domains.list('acct_one')).toEqual([domain]);
    expect(tables.dkimKeys.of(domain?.domain_id ?? '')).toHaveLength(1);
  });

  it('creates a domain with separate keys for each use case and account', async () => {
    const { domains, register } = await startDomains();
    const all = [
      await register('example.org', 'acct_one', 'tx-local'),
      await register('example.org', 'acct_one', 'mk-local'),
      await register('example.org', 'acct_two', 'tx-local'),
    ];
    const names = all.flatMap((domain) =>
      domains.records(domain).dnsRecords.flatMap(({ name }) => (name.includes('_domainkey') ? [name] : [])),
    );
    expect(new Set(names).size).toBe(6);
    expect(
      domains
        .list('acct_one')
        .map(({ use_case }) => use_case)
        .sort(),
    ).toEqual(['mk', 'tx']);
    expect(domains.list('acct_two')).toHaveLength(1);
  });

  it.each([
    [{ domain: 'co.uk', useCaseId: 'tx-local' }, 'VALIDATION_ERROR'],
    [{ domain: 'example.org', useCaseId: 'tx-mars' }, 'USE_CASE_NOT_FOUND'],
    [{ domain: 'example.org', useCaseId: 'tx-local', groupId: 'dgroup_0_nothing' }, 'GROUP_NOT_FOUND'],
    [{ domain: 'example.org', useCaseId: 'tx-local', groupId: 'dgroup_acct_two' }, 'GROUP_NOT_FOUND'],
  ])('refuses %o', async (options, code) => {
    const { domains, tables } = await startDomains();
    expect(await domains.register('acct_one', options)).toMatchObject({ code });
    expect(tables.domains.list(null)).toEqual([]);
  });
});

describe('the secondary lane', () => {
  it('is provisioned in the background, once, also after a restart', async () => {
    const { domains, tables } = await startDomains();
    const { domain } = accepted(
      await domains.register('acct_one', { domain: 'example.org', useCaseId: 'tx-local' }),
    );
    await Promise.all([domains.jobs.runDue(), domains.provisionSecondary(domain.domain_id)]);
    const row = accepted(domains.get('acct_one', domain.domain_id));
    expect(domains.records(row).dnsRecords[5]).toMatchObject({
      value: `${domain.alt_domain_id}.dkim.mail.example.net`,
      ttl: 300,
    });
    expect(tables.dkimKeys.of(domain.domain_id).map(({ lane }) => lane)).toEqual(['primary', 'secondary']);
    expect((await domains.zone()).map(({ name }) => name)).toContain(
      `${domain.alt_domain_id}.dkim.mail.example.net`,
    );
  });

  it('is provisioned for the accounts in turns', async () => {
    const provisioned: string[] = [];
    const log = createLog(
      { level: 'info', hashAddresses: false },
      {
        write: (line: string) => {
          const { msg, domain } = JSON.parse(line);
          if (msg === 'secondary lane provisioned') provisioned.push(domain);
        },
      },
    );
    const { domains } = await startDomains({ log });
    for (const domain of ['a.example', 'b.example', 'c.example'])
      accepted(await domains.register('acct_one', { domain, useCaseId: 'tx-local' }));
    accepted(await domains.register('acct_two', { domain: 'd.example', useCaseId: 'tx-local' }));
    await domains.jobs.runDue();
    expect(provisioned).toEqual(['a.example', 'd.example', 'b.example', 'c.example']);
  });

  it('is tried again later for a domain for which it cannot be used, and provisioned for the others', async () => {
    let problem: string | null = 'the relay does not respond';
    const { domains, tables, clock } = await startDomains({
      probeSecondary: async () => {
        const found = problem;
        problem = null;
        return found;
      },
    });
    for (const domain of ['a.example', 'b.example'])
      accepted(await domains.register('acct_one', { domain, useCaseId: 'tx-local' }));
    const provisioned = () =>
      tables.domains.list('acct_one').flatMap((row) => (row.alt_provisioned === 1 ? [row.name] : []));
    await domains.jobs.runDue();
    expect(provisioned()).toEqual(['b.example']);
    await domains.jobs.runDue();
    expect(provisioned()).toEqual(['b.example']);
    clock.advance(5 * 60_000);
    await domains.jobs.runDue();
    expect(provisioned().toSorted()).toEqual(['a.example', 'b.example']);
  });
});

describe('signing keys', () => {
  it('are the private keys of the published records', async () => {
    const { domains, register } = await startDomains();
    const domain = await register('example.org');
    for (const [lane, record] of [
      ['primary', 0],
      ['secondary', 5],
    ] as const) {
      const [key, ...more] = domains.signingKeys(domain.domain_id, lane);
      expect(more).toEqual([]);
      expect(`${key?.selector}._domainkey.${key?.domain}`).toBe(
        domains.records(domain).dnsRecords[record]?.name,
      );
      const published =
        lane === 'primary'
          ? domains.records(domain).dnsRecords[0]
          : (await domains.zone()).find(({ name }) => name.startsWith(domain.alt_domain_id));
      const publicKey = createPublicKey({
        key: Buffer.from(published?.value.split('p=')[1] ?? '', 'base64'),
        format: 'der',
        type: 'spki',
      });
      expect(
        verify('sha256', Buffer.from('x'), publicKey, sign('sha256', Buffer.from('x'), key?.key ?? '')),
      ).toBe(true);
    }
  });

  it('are none for a deleted domain whose key id is reused', async () => {
    const { domains, register } = await startDomains();
    const first = await register('example.org');
    const [old] = domains.signingKeys(first.domain_id, 'primary');
    accepted(await domains.remove('acct_one', first.domain_id));
    expect(domains.signingKeys(first.domain_id, 'primary')).toEqual([]);
    const second = await register('example.org');
    const [now] = domains.signingKeys(second.domain_id, 'primary');
    expect(now?.key.equals(old?.key ?? now.key)).toBe(false);
  });
});

describe('deleting a domain', () => {
  it('deletes its queued mail and its keys in the same unit of work', async () => {
    const dropped: string[] = [];
    const { domains, register, tables, clock, events } = await startDomains({
      dropQueued: (tables, domainId) => {
        for (const seq of tables.queue.ofDomain(domainId, 10)) tables.queue.remove(seq);
        dropped.push(domainId);
      },
    });
    const domain = await register('example.org');
    enqueue(tables, clock.now(), { domain_id: domain.domain_id });
    accepted(await domains.remove('acct_one', domain.domain_id));
    expect(dropped).toEqual([domain.domain_id]);
    expect(events.map(({ kind }) => kind)).toEqual(['domain_deleted']);
    expect(tables.queue.count()).toBe(0);
    expect(tables.dkimKeys.of(domain.domain_id)).toEqual([]);
    expect(domains.get('acct_one', domain.domain_id)).toMatchObject({ code: 'DOMAIN_NOT_FOUND' });
  });

  it('changes nothing when the mail cannot be dropped', async () => {
    const { domains, register } = await startDomains({
      dropQueued: () => {
        throw new Error('no');
      },
    });
    const domain = await register('example.org');
    await expect(domains.remove('acct_one', domain.domain_id)).rejects.toThrow('no');
    expect(domains.get('acct_one', domain.domain_id)).toEqual(domain);
  });
});

describe('the log', () => {
  it('states only changes that are on disk', async () => {
    const lines: string[] = [];
    const log = createLog(
      { level: 'info', hashAddresses: false },
      { write: (line: string) => void lines.push(JSON.parse(line).msg) },
    );
    const { domains, register, writer, tables } = await startDomains({ log });
    const { domain_id: id } = await register('example.org');
    expect(lines).toEqual(['domain registered', 'secondary lane provisioned']);
    lines.length = 0;
    vi.spyOn(writer, 'run').mockImplementation(async (unit) => {
      await unit(tables);
      throw new Error('the commit failed');
    });
    for (const change of [
      domains.register('acct_one', { domain: 'other.example', useCaseId: 'tx-local' }),
      domains.rotateDkim('acct_one', id),
      domains.remove('acct_one', id),
    ])
      await expect(change).rejects.toThrow('the commit failed');
    expect(lines).toEqual([]);
  });
});

describe("another account's domain", () => {
  it('is refused like an unknown domain', async () => {
    const { domains, register } = await startDomains();
    const { domain_id: id } = await register('example.org');
    const attempts = [
      (id: string) => domains.get('acct_two', id),
      (id: string) => domains.remove('acct_two', id),
      (id: string) => domains.verify('acct_two', id),
      (id: string) => domains.rotateDkim('acct_two', id),
      (id: string) => domains.assignGroup('acct_two', id, 'dgroup_acct_two'),
      (id: string) => domains.setTracking('acct_two', id, { trackingDomain: null }),
    ];
    for (const attempt of attempts) {
      expect(await attempt(id)).toMatchObject({
        code: 'DOMAIN_NOT_FOUND',
        message: `There is no domain ${id}`,
      });
      expect(await attempt('domain_0_never')).toMatchObject({
        code: 'DOMAIN_NOT_FOUND',
        message: 'There is no domain domain_0_never',
      });
    }
  });
});

describe('use cases', () => {
  it('can send when one of their domains is verified', async () => {
    const { domains, register, tables } = await startDomains();
    const domain = await register('example.org', 'acct_one', 'mk-eu');
    const sendable = (accountId: string) =>
      domains.useCases(accountId).flatMap(({ id, canSendEmail }) => (canSendEmail ? [id] : []));
    expect(domains.useCases('acct_one').map(({ id, useCaseName }) => `${id} ${useCaseName}`)).toEqual([
      'tx-local Transactional',
      'mk-local Marketing',
      'tx-eu Transactional',
      'mk-eu Marketing',
    ]);
    for (const [status, expected] of [
      ['PENDING', []],
      ['SUCCESS', ['mk-eu']],
      ['TEMPORARY_FAILURE', ['mk-eu']],
      ['FAILED', []],
    ] as const) {
      tables.domains.update({ ...domain, status });
      expect(sendable('acct_one')).toEqual(expected);
    }
    expect(sendable('acct_two')).toEqual([]);
  });
});

describe('the limit on domains', () => {
  it('refuses a domain beyond the limit, except an existing name', async () => {
    const { domains } = await startDomains({ limits: { domains: 2 } });
    const register = (domain: string, accountId = 'acct_one') =>
      domains.register(accountId, { domain, useCaseId: 'tx-local' });
    // Three simultaneous requests: the unit of work that inserts the row checks the limit.
    const results = await Promise.all(['a.example', 'b.example', 'c.example'].map((name) => register(name)));
    const registered = results.flatMap((result) => ('domain' in result ? [result.domain.name] : []));
    expect(registered).toHaveLength(2);
    expect(await register('d.example')).toMatchObject({
      code: 'LIMIT_REACHED',
      status: 409,
      message: 'This account has reached its limit of 2 domains',
      extras: { details: [{ name: 'domains' }] },
    });
    expect(accepted(await register(registered[0] ?? '')).created).toBe(false);
    expect(accepted(await register('d.example', 'acct_two')).created).toBe(true);
  });
});
