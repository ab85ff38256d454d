import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EgressSet } from '../../../../src/domains/platform/egress-addresses.ts';
import { checkSpf } from '../../../../src/domains/verification/checks/spf.ts';
import { mergedSpf } from '../../../../src/domains/verification/checks/spf-record.ts';
import { viewOf, type Zone } from '../../zone.ts';

const OURS = 'v=spf1 include:spf.mail.example.net ~all';
const PLATFORM: Zone = { 'TXT spf.mail.example.net': ['v=spf1 ip4:192.0.2.25 ip6:2001:db8::25 ~all'] };
const KNOWN: EgressSet = { addresses: ['192.0.2.25', '2001:db8::25'], unknown: null };

function check(zone: Zone, egress = KNOWN) {
  return checkSpf(viewOf({ ...PLATFORM, ...zone }), {
    domain: 'example.com',
    zone: 'example.com',
    include: 'spf.mail.example.net',
    egress,
    helo: 'mail.example.net',
  });
}

/** Terms that take `n` lookups and match nothing. */
const lookups = (n: number) => Array.from({ length: n }, (_, at) => `include:i${at}.example.org`).join(' ');
const included = (n: number): Zone =>
  Object.fromEntries(Array.from({ length: n }, (_, at) => [`TXT i${at}.example.org`, ['v=spf1 -all']]));

describe('SPF passes', () => {
  it.each<[string, string[]]>([
    ['as suggested', [OURS]],
    ['among other texts', ['google-site-verification=1', OURS]],
    ['with others in it', ['v=spf1 ip4:198.51.100.0/24 include:spf.mail.example.net -all']],
    ['in capitals and with more spaces', ['V=SPF1  INCLUDE:spf.mail.example.net  -ALL']],
    ['by the addresses themselves', ['v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 -all']],
    ['in two strings', ['v=spf1 include:spf.|mail.example.net ~all']],
  ])('%s', async (_, records) => {
    expect(await check({ 'TXT example.com': records })).toMatchObject({ verdict: 'pass', hint: '' });
  });

  it('through a redirect', async () => {
    const zone = { 'TXT example.com': ['v=spf1 redirect=_spf.example.com'], 'TXT _spf.example.com': [OURS] };
    expect(await check(zone)).toMatchObject({ verdict: 'pass' });
  });

  it('with +all, with a hint', async () => {
    expect(await check({ 'TXT example.com': ['v=spf1 +all'] })).toMatchObject({
      verdict: 'pass',
      hint: expect.stringContaining('allows everyone to send'),
    });
  });
});

describe('SPF does not pass', () => {
  it.each<[string, Zone, string, string]>([
    ['without a record', {}, OURS, `There is no SPF record at example.com. Publish: ${OURS}`],
    [
      'when another record allows others only',
      { 'TXT example.com': ['v=spf1 include:i0.example.org -all'], ...included(1) },
      'v=spf1 include:i0.example.org include:spf.mail.example.net -all',
      'gives "fail" for our address 192.0.2.25 and 2001:db8::25',
    ],
    [
      'when one of our addresses is missing',
      { 'TXT example.com': ['v=spf1 ip4:192.0.2.25 ~all'] },
      'v=spf1 ip4:192.0.2.25 include:spf.mail.example.net ~all',
      'gives "softfail" for our address 2001:db8::25',
    ],
    [
      'with two records',
      { 'TXT example.com': ['v=spf1 include:i0.example.org -all', OURS], ...included(1) },
      'v=spf1 include:i0.example.org include:spf.mail.example.net ~all',
      'There are 2 SPF records at example.com, which receivers treat as an error. Merge them into one: v=spf1 include:i0',
    ],
    [
      'with the include after all',
      {
        'TXT example.com': ['v=spf1 mx -all include:spf.mail.example.net'],
        'MX example.com': ['10 mx.example.com'],
        'A mx.example.com': ['198.51.100.1'],
      },
      'v=spf1 mx include:spf.mail.example.net -all',
      'a term before the include matches first',
    ],
    [
      'with too many lookups',
      { 'TXT example.com': [`v=spf1 ${lookups(11)} include:spf.mail.example.net -all`], ...included(11) },
      `v=spf1 include:spf.mail.example.net ${lookups(11)} -all`,
      'more than 10 DNS lookups',
    ],
    [
      'with too many hosts that do not exist',
      {
        'TXT example.com': [
          'v=spf1 a:a.example.org a:b.example.org a:c.example.org include:spf.mail.example.net -all',
        ],
      },
      'v=spf1 include:spf.mail.example.net a:a.example.org a:b.example.org a:c.example.org -all',
      'more than two hosts that do not exist',
    ],
    [
      'with a malformed term',
      { 'TXT example.com': ['v=spf1 ip4:192.0.2.300 include:spf.mail.example.net ~all'] },
      OURS,
      'as an error',
    ],
    [
      'when the platform has not published its part',
      { 'TXT example.com': [OURS], 'TXT spf.mail.example.net': 'ENOTFOUND' },
      OURS,
      'the operator of this platform must publish the records of "postrider zone"',
    ],
    [
      "when the platform's part lacks an address",
      { 'TXT example.com': [OURS], 'TXT spf.mail.example.net': ['v=spf1 ip4:192.0.2.25 ~all'] },
      OURS,
      'spf.mail.example.net does not list that address',
    ],
    ['with quotation marks', { 'TXT example.com': [`"${OURS}"`] }, OURS, 'without quotation marks'],
    ['under a doubled name', { 'TXT example.com.example.com': [OURS] }, OURS, 'enter the name as "@"'],
  ])('%s', async (_, zone, expected, hint) => {
    expect(await check(zone)).toMatchObject({
      verdict: 'fail',
      expected,
      hint: expect.stringContaining(hint),
    });
  });
});

describe('SPF is unknown', () => {
  it.each<[string, Zone, EgressSet]>([
    ['when the name itself does not answer', { 'TXT example.com': 'ETIMEOUT' }, KNOWN],
    [
      'when an include fails for now',
      { 'TXT example.com': [OURS], 'TXT spf.mail.example.net': 'ESERVFAIL' },
      KNOWN,
    ],
    [
      'when our own addresses are not known for now',
      { 'TXT example.com': [OURS] },
      { addresses: [], unknown: 'SERVFAIL' },
    ],
  ])('%s', async (_, zone, egress) => {
    expect(await check(zone, egress)).toMatchObject({ verdict: 'unknown' });
  });
});

describe('SPF without a known address of ours', () => {
  const NONE: EgressSet = { addresses: [], unknown: null };
  const NESTED: Zone = { 'TXT example.com': ['v=spf1 include:a.example.org ~all'] };

  it.each<[string, Zone, string, string]>([
    ['passes with the include', { 'TXT example.com': [OURS] }, 'pass', ''],
    [
      'passes though our part is not published',
      { 'TXT example.com': [OURS], 'TXT spf.mail.example.net': 'ENOTFOUND' },
      'pass',
      '',
    ],
    ['passes with the include in an include', { ...NESTED, 'TXT a.example.org': [OURS] }, 'pass', ''],
    [
      'fails without it',
      { 'TXT example.com': ['v=spf1 ip4:192.0.2.25 -all'] },
      'fail',
      'gives "fail" for our addresses. Change it to: v=spf1 ip4:192.0.2.25 include:spf.mail',
    ],
    [
      'fails with it after all',
      { 'TXT example.com': ['v=spf1 -all include:spf.mail.example.net'] },
      'fail',
      'a term before the include matches first',
    ],
    [
      'fails with it in a record that is an error',
      { 'TXT example.com': ['v=spf1 ipv4:192.0.2.25 include:spf.mail.example.net ~all'] },
      'fail',
      'as an error',
    ],
    [
      'is unknown while our part cannot be looked up',
      { 'TXT example.com': [OURS], 'TXT spf.mail.example.net': 'ESERVFAIL' },
      'unknown',
      'SERVFAIL',
    ],
    [
      'is unknown while an include cannot be looked up',
      { ...NESTED, 'TXT a.example.org': 'ETIMEOUT' },
      'unknown',
      '',
    ],
  ])('%s', async (_, zone, verdict, hint) => {
    expect(await check(zone, NONE)).toMatchObject({ verdict, hint: expect.stringContaining(hint) });
  });
});

const VALID_AND_INVALID_TERMS = [
  'mx',
  'a',
  'ptr',
  'all',
  '-all',
  '~all',
  '+all',
  '–all',
  'include:',
  'include:i0.example.org',
  'include:none.example.org',
  'include:example.com',
  'redirect=i0.example.org',
  'redirect=',
  'exp=why.example.com',
  'exp=why.example.com',
  'ip4:192.0.2.300',
  'ip4:192.0.2.0/33',
  'ip6:::/129',
  '-ip4:192.0.2.0/24',
  '?ip4:192.0.2.25',
  'ipv4:198.51.100.1',
  '198.51.100.1',
  'a:',
  'a:x..y',
  'mx/99',
  'exists:%{i}.example.org',
  'exists:%{z}.example.org',
  'foo',
  'foo:bar',
  'foo=bar',
  'include=x',
  '"',
  ',',
  'a:a.example.org',
  'a:b.example.org',
  'a:c.example.org',
  'include:loop.example.org',
  'v=spf1',
];

describe('the suggested record', () => {
  it.each<[string, string, string]>([
    ['an address without its prefix', 'v=spf1 198.51.100.1 -all', 'v=spf1 ip4:198.51.100.1'],
    ['ipv4 for ip4', 'v=spf1 ipv4:198.51.100.1 -all', 'v=spf1 ip4:198.51.100.1'],
    ['ip4 with an IPv6 address', 'v=spf1 ip4:2001:db8::7 -all', 'v=spf1 ip6:2001:db8::7'],
    [
      'an equals sign instead of a colon',
      'v=spf1 include=i0.example.org -all',
      'v=spf1 include:i0.example.org',
    ],
    ['a space inside a term', 'v=spf1 include: i0.example.org -all', 'v=spf1 include:i0.example.org'],
    ['a prefix length that does not exist', 'v=spf1 ip4:198.51.100.0/33 mx -all', 'v=spf1 mx'],
    ['an unknown mechanism', 'v=spf1 spf:other.example mx -all', 'v=spf1 mx'],
    ['an include without a record', 'v=spf1 include:none.example.org mx -all', 'v=spf1 mx'],
    ['an include of itself', 'v=spf1 include:example.com mx -all', 'v=spf1 mx'],
  ])('corrects or removes %s', async (_, record, begins) => {
    const zone = { 'TXT example.com': [record], ...included(1), 'A example.com': ['198.51.100.9'] };
    const { expected } = await check({ ...zone, 'MX example.com': ['10 example.com'] });
    expect(expected).toBe(`${begins} include:spf.mail.example.net -all`);
  });

  it('passes when published in place of any record', async () => {
    const term = fc.oneof(fc.constantFrom(...VALID_AND_INVALID_TERMS), fc.string({ maxLength: 12 }));
    const record = fc
      .tuple(
        fc.constantFrom('v=spf1 ', '"v=spf1 ', ' v = spf1 ', 'V=SPF1;'),
        fc.array(term, { maxLength: 14 }),
      )
      .map(([version, terms]) => `${version}${terms.join(' ')}`);
    await fc.assert(
      fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 2 }), async (records) => {
        const zone: Zone = {
          ...included(1),
          'A example.com': ['198.51.100.9'],
          'MX example.com': ['10 example.com'],
          'TXT loop.example.org': ['v=spf1 include:loop.example.org -all'],
        };
        const { expected } = await check({ ...zone, 'TXT example.com': records });
        const published = await check({ ...zone, 'TXT example.com': [expected] });
        expect([published.verdict, published.expected]).toEqual(['pass', expected]);
      }),
      { numRuns: 300 },
    );
  });
});

describe('mergedSpf', () => {
  it.each<[string, string[], string]>([
    ['nothing', [], 'v=spf1 include:us ~all'],
    ['an include before the final all', ['v=spf1 mx -all'], 'v=spf1 mx include:us -all'],
    ['no all', ['v=spf1 mx'], 'v=spf1 mx include:us'],
    ['a redirect, which stays last', ['v=spf1 redirect=_spf.x'], 'v=spf1 include:us redirect=_spf.x'],
    [
      'a redirect without effect because of an all',
      ['v=spf1 redirect=_spf.x -all'],
      'v=spf1 include:us -all',
    ],
    ['the include after all', ['v=spf1 -all include:us'], 'v=spf1 include:us -all'],
    ['the include already there', ['v=spf1 mx +include:US ?all'], 'v=spf1 mx include:us ?all'],
    ['two records: the less strict all', ['v=spf1 a -all', 'v=spf1 mx ~all'], 'v=spf1 a mx include:us ~all'],
    ['the same term twice', ['v=spf1 mx -all', 'v=spf1 mx -all'], 'v=spf1 mx include:us -all'],
    ['+all, which allows everyone', ['v=spf1 +all'], 'v=spf1 include:us ~all'],
    ['an exp, which stays', ['v=spf1 mx exp=why.x -all'], 'v=spf1 mx include:us -all exp=why.x'],
    ['quotation marks', ['"v=spf1 mx -all"'], 'v=spf1 mx include:us -all'],
  ])('%s', (_, records, merged) => {
    expect(mergedSpf(records, 'us')).toBe(merged);
  });
});
