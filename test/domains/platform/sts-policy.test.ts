import { describe, expect, it } from 'vitest';
import { parseStsPolicy } from '../../../src/delivery/mta-sts.ts';
import { platformOf } from '../../../src/domains/platform/platform.ts';
import { startDomains } from '../setup.ts';

const PUBLIC = { url: 'https://track.mail.example.net', tls: { listen: '0.0.0.0:443' } };
const CERTIFICATE = { tls: { certificateFile: '/a.pem' } };

async function recordsWith(platform: object) {
  const setup = await startDomains({ platform });
  const domain = await setup.register('example.org');
  const { recommendedDnsRecords } = setup.domains.records(domain);
  return recommendedDnsRecords.filter(({ purpose }) => purpose === 'MTA-STS');
}

describe('the MTA-STS records of a domain', () => {
  it('lead to the policy and its id where the public listener serves it', async () => {
    const records = await recordsWith({ public: PUBLIC });
    expect(records.map(({ type, name, value }) => `${type} ${name} ${value}`)).toEqual([
      'CNAME mta-sts.return-a.example.org track.mail.example.net',
      'CNAME _mta-sts.return-a.example.org mta-sts-id.mail.example.net',
    ]);
  });

  it('do not exist where it does not', async () => {
    expect(await recordsWith({})).toEqual([]);
    expect(await recordsWith({ public: { ...PUBLIC, tls: { listen: 'off' } } })).toEqual([]);
  });
});

describe('the policy', () => {
  const policyWith = (mx: object) =>
    platformOf({
      hostname: 'mail.example.net',
      delivery: { egress: [], returnPath: 'auto' },
      secondary: { type: 'builtin', pool: 'secondary' },
      public: PUBLIC,
      verification: { dmarcPolicy: 'enforced' },
      mx: { tls: {}, ...mx },
    }).stsPolicy;

  it('is enforced once the MX listener has a certificate of an authority, and then has another id', () => {
    const [testing, enforced] = [policyWith({}), policyWith(CERTIFICATE)];
    expect(testing?.text).toContain('mode: testing');
    expect(enforced?.text).toContain('mode: enforce');
    expect(enforced?.id).not.toBe(testing?.id);
    expect(enforced?.id).toMatch(/^[a-z0-9]{1,32}$/);
  });

  it('is one that our own delivery accepts', () => {
    expect(parseStsPolicy(policyWith(CERTIFICATE)?.text ?? '')).toMatchObject({
      mode: 'enforce',
      mx: ['mail.example.net'],
    });
  });
});
