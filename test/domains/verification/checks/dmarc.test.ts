import fc from 'fast-check';
import { dmarc } from 'mailauth/lib/dmarc/index.js';
import { describe, expect, it } from 'vitest';
import type { DmarcRequirement } from '../../../../src/domains/platform/platform.ts';
import { checkDmarc, dmarcRecord } from '../../../../src/domains/verification/checks/dmarc.ts';
import { discoverPolicy, mergedDmarc } from '../../../../src/domains/verification/checks/dmarc-record.ts';
import { insertDomain, startStore } from '../../../support/store.ts';
import { viewOf, type Zone } from '../../zone.ts';

const US = 'dmarc@return-a.shop.example.com';
const OURS = `v=DMARC1; p=reject; rua=mailto:${US}`;
const AT = 'TXT _dmarc.shop.example.com';
const ABOVE = 'TXT _dmarc.example.com';

function check(zone: Zone, policy: DmarcRequirement = 'enforced') {
  return checkDmarc({
    view: viewOf(zone),
    platform: { dmarcPolicy: policy },
    domain: { name: 'shop.example.com' },
  });
}

describe('with verification.dmarcPolicy = "any"', () => {
  it.each<[string, Zone, string]>([
    ['p=none with rua passes', { [AT]: [`v=DMARC1; p=none; rua=mailto:${US}`] }, 'pass'],
    ['p=none without rua fails', { [AT]: ['v=DMARC1; p=none'] }, 'fail'],
    [
      'an inherited p=none with rua passes',
      { [ABOVE]: ['v=DMARC1; p=none; rua=mailto:a@example.com'] },
      'pass',
    ],
    ['an enforced policy passes', { [AT]: [OURS] }, 'pass'],
    ['no record fails', {}, 'fail'],
  ])('%s', async (_, zone, verdict) => {
    expect(await check(zone, 'any')).toMatchObject({ verdict });
  });

  it('names the tag that p=none lacks', async () => {
    const { hint } = await check({ [AT]: ['v=DMARC1; p=none'] }, 'any');
    expect(hint).toContain(`Add rua=mailto:${US} to it`);
  });

  it('advises when to raise the policy', async () => {
    const { hint } = await check({ [AT]: [`v=DMARC1; p=none; rua=mailto:${US}`] }, 'any');
    expect(hint).toMatch(/^The policy is p=none.* After two weeks/);
  });
});

describe('the refusal of p=none', () => {
  it.each<[string, Zone]>([
    ['its own', { [AT]: [`v=DMARC1; p=none; rua=mailto:${US}`] }],
    ['an inherited one', { [ABOVE]: ['v=DMARC1; p=none'] }],
  ])('names the setting that accepts it: %s', async (_, zone) => {
    const { verdict, hint } = await check(zone);
    expect([verdict, hint]).toEqual(['fail', expect.stringContaining('verification.dmarcPolicy = "any"')]);
  });
});

describe('the description of the record', () => {
  it('names the setting unless p=none suffices already', () => {
    const { tables, clock } = startStore();
    const columns = { account_id: 'acct_one', domain_id: 'domain_shop', name: 'shop.example.com' };
    const domain = insertDomain(tables, columns, clock.now());
    const described = (dmarcPolicy: DmarcRequirement) =>
      dmarcRecord({
        domain,
        keys: [],
        platform: {
          hostname: 'mail.example.net',
          keyPolicy: { rotationMs: null, ed25519: false },
          dmarcPolicy,
          stsPolicy: null,
        },
      }).description;
    expect(described('enforced')).toContain('verification.dmarcPolicy = "any"');
    expect(described('any')).toMatch(/start with p=none and raise the policy/);
  });
});

describe('DMARC passes', () => {
  it.each<[string, Zone, string]>([
    ['as published by us', { [AT]: [OURS] }, ''],
    ['with quarantine, with a hint on reports', { [AT]: ['v=DMARC1; p=quarantine'] }, `add mailto:${US}`],
    ['with capitals and spaces', { [AT]: [`v = DMARC1 ;P=REJECT; rua=mailto:${US}`] }, ''],
    ['among other texts', { [AT]: ['verification=1', OURS] }, ''],
    ['whatever the policy above is', { [AT]: [OURS], [ABOVE]: ['v=DMARC1; p=none; sp=none'] }, ''],
    ['although the name above does not answer', { [AT]: [OURS], [ABOVE]: 'ESERVFAIL' }, ''],
    [
      'with a policy inherited by p',
      { [ABOVE]: [`v=DMARC1; p=reject; rua=mailto:${US}`] },
      'inherited from _dmarc.example.com (p=reject)',
    ],
    [
      'with a policy inherited by sp',
      { [ABOVE]: ['v=DMARC1; p=none; sp=quarantine'] },
      'inherited from _dmarc.example.com (sp=quarantine)',
    ],
    [
      'under a public suffix with a policy',
      { 'TXT _dmarc.com': ['v=DMARC1; p=reject; psd=y'] },
      'inherited from _dmarc.com',
    ],
    [
      'with np for a name that exists',
      { [ABOVE]: ['v=DMARC1; p=reject; np=none'], 'A shop.example.com': ['192.0.2.1'] },
      'p=reject',
    ],
    ['with t=y, with a hint', { [AT]: ['v=DMARC1; p=reject; t=y'] }, 't=y (testing)'],
    ['with pct, with a hint', { [AT]: ['v=DMARC1; p=reject; pct=20'] }, 'pct tag'],
    ['with aspf=s, with a hint', { [AT]: ['v=DMARC1; p=reject; aspf=s'] }, 'remove that tag'],
  ])('%s', async (_, zone, hint) => {
    const found = await check(zone);
    expect(found).toMatchObject({ verdict: 'pass', hint: expect.stringContaining(hint) });
    if (hint === '') expect(found.hint).toBe('');
  });
});

describe('DMARC does not pass', () => {
  it.each<[string, Zone, string, string]>([
    [
      'when there is none anywhere',
      {},
      OURS,
      `There is no DMARC record at _dmarc.shop.example.com or at a domain above it. Publish: ${OURS}`,
    ],
    [
      'with p=none',
      { [AT]: ['v=DMARC1; p=none; rua=mailto:a@example.com,mailto:b@example.org'] },
      `v=DMARC1; p=reject; rua=mailto:a@example.com,mailto:b@example.org,mailto:${US}`,
      'at least p=quarantine is required',
    ],
    [
      'with sp=none above',
      { [ABOVE]: ['v=DMARC1; p=reject; sp=none'] },
      OURS,
      'inherits from _dmarc.example.com is sp=none',
    ],
    [
      'with np=none above, when the name does not exist',
      { [ABOVE]: ['v=DMARC1; p=reject; np=none'] },
      OURS,
      'np=none',
    ],
    [
      'with two records',
      { [AT]: ['v=DMARC1; p=quarantine; rua=mailto:a@example.com', 'v=DMARC1; p=none'] },
      `v=DMARC1; p=quarantine; rua=mailto:a@example.com,mailto:${US}`,
      'There are 2 DMARC records at _dmarc.shop.example.com, so receivers ignore all of them. Merge them into one: v=DMARC1; p=quarantine',
    ],
    [
      'with two records above',
      { [ABOVE]: [OURS, 'v=DMARC1; p=reject'] },
      OURS,
      'several DMARC records at _dmarc.example.com',
    ],
    [
      'with a misspelled policy',
      { [AT]: ['v=DMARC1; p=rejct; rua=mailto:a@example.com'] },
      `v=DMARC1; p=reject; rua=mailto:a@example.com,mailto:${US}`,
      'no valid policy',
    ],
    ['with the version last', { [AT]: ['p=reject; v=DMARC1'] }, OURS, 'There is no DMARC record'],
    [
      'under a doubled name',
      { 'TXT _dmarc.shop.example.com.shop.example.com': [OURS] },
      OURS,
      'enter the name as "_dmarc"',
    ],
  ])('%s', async (_, zone, expected, hint) => {
    expect(await check(zone)).toMatchObject({
      verdict: 'fail',
      expected,
      hint: expect.stringContaining(hint),
    });
  });
});

describe('DMARC is unknown', () => {
  it.each<[string, Zone]>([
    ['when its own name does not answer', { [AT]: 'ETIMEOUT', [ABOVE]: [OURS] }],
    ['when a name above does not answer', { [ABOVE]: 'ESERVFAIL' }],
    [
      'when np matters and the name does not answer',
      { [ABOVE]: ['v=DMARC1; p=reject; np=none'], 'A shop.example.com': 'ETIMEOUT' },
    ],
  ])('%s', async (_, zone) => {
    expect(await check(zone)).toMatchObject({ verdict: 'unknown' });
  });
});

describe('mergedDmarc', () => {
  it.each<[string, string[], string]>([
    ['nothing', [], OURS],
    ['ours already there', [OURS], OURS],
    [
      'other tags, which stay',
      ['v=DMARC1; p=none; sp=reject; adkim=s; fo=1'],
      `v=DMARC1; p=reject; sp=reject; rua=mailto:${US}; adkim=s; fo=1`,
    ],
    ['aspf=s, which is removed', ['v=DMARC1; p=reject; aspf=s'], OURS],
    ['an invalid sp, which is removed', ['v=DMARC1; p=reject; sp=nonne'], OURS],
    [
      'two records',
      ['v=DMARC1; p=reject; rua=mailto:a@x', 'v=DMARC1; p=none; rua=mailto:b@x; fo=1'],
      `v=DMARC1; p=reject; rua=mailto:a@x,mailto:b@x,mailto:${US}; fo=1`,
    ],
  ])('%s', (_, records, merged) => {
    expect(mergedDmarc(records, US)).toBe(merged);
  });
});

describe('discoverPolicy', () => {
  const record = fc
    .record({
      p: fc.constantFrom('none', 'quarantine', 'reject', 'oops', null),
      sp: fc.constantFrom('none', 'quarantine', 'reject', 'oops', null, null, null),
      np: fc.constantFrom('none', 'reject', null, null, null),
      psd: fc.constantFrom('y', 'n', 'u', null, null, null, null),
      rua: fc.constantFrom('mailto:a@example.org', null),
    })
    .map((tags) =>
      [
        'v=DMARC1',
        ...Object.entries(tags).flatMap(([tag, value]) => (value === null ? [] : [`${tag}=${value}`])),
      ].join('; '),
    );
  const names = [
    'a.b.c.d.e.f.g.h.test',
    'b.c.d.e.f.g.h.test',
    'c.d.e.f.g.h.test',
    'g.h.test',
    'h.test',
    'test',
  ];
  const zone = fc.dictionary(
    fc.constantFrom(...names.map((name) => `TXT _dmarc.${name}`)),
    fc.array(record, { minLength: 1, maxLength: 2 }),
    { maxKeys: 4 },
  );

  it('agrees with an independent implementation of RFC 9989', async () => {
    await fc.assert(
      fc.asyncProperty(zone, fc.constantFrom(...names.slice(0, 5)), async (zone, domain) => {
        const view = viewOf(zone);
        const theirs = await dmarc({
          headerFrom: [domain],
          spfDomains: [],
          dkimDomains: [],
          resolver: view.resolve,
        });
        const { found } = await discoverPolicy(view, domain);
        // The other implementation returns "none" for a record without a policy.
        const policy = theirs && theirs.status.result !== 'none' ? theirs.policy : 'none';
        expect(found?.policy ?? 'none').toBe(policy);
      }),
      { numRuns: 500 },
    );
  });
});
