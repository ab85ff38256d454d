import * as z from 'zod';
import { mapFlags, REPORTED_CHECKS } from '../../../domains/verification/checks.ts';
import { DOMAIN_STATUS as status } from '../../../events/event-types.ts';

/* Domains and DNS records in responses, and examples for the documentation. */

const flags = mapFlags('primary', () => z.boolean());
const altFlags = mapFlags('secondary', () => z.boolean());
const altStatus = z.enum(['PENDING', 'ACTIVE']);
const altDomainId = z.string().describe('Id of the domain on the secondary lane.');
const POLICIES = ['none', 'quarantine', 'reject'] as const;
const names = { domain: z.string(), domainId: z.string() };

export const dnsRecord = z
  .object({
    type: z.enum(['TXT', 'CNAME', 'MX']),
    name: z.string().describe('Fully qualified name.'),
    value: z.string(),
    description: z.string(),
    purpose: z.string().optional(),
    priority: z.int().optional().describe('MX only.'),
    ttl: z.int().optional().describe('Seconds.'),
    chunks: z.array(z.string()).optional().describe('The strings of a TXT value of more than 255 bytes.'),
  })
  .meta({ id: 'DnsRecord' });
/** What sends from the domain track that do not state it. */
export const trackingDefaults = {
  enableOpenTracking: z.boolean().meta({
    id: 'DomainOpenTracking',
    description: 'Whether opens are tracked for sends that do not have `enableOpenTracking`.',
  }),
  enableClickTracking: z.boolean().meta({
    id: 'DomainClickTracking',
    description: 'Whether clicks are tracked for sends that do not have `enableClickTracking`.',
  }),
};

const recordSets = {
  dnsRecords: z.array(dnsRecord).meta({ id: 'DnsRecords', description: 'The records to publish.' }),
  recommendedDnsRecords: z
    .array(dnsRecord)
    .meta({ id: 'RecommendedDnsRecords', description: 'Recommended, not required for SUCCESS.' }),
};

export const domainSchema = z
  .object({
    ...names,
    groupId: z.string(),
    status,
    ...flags,
    useCase: z.enum(['tx', 'mk']),
    useCaseLabel: z.string(),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    trackingDomain: z.string().nullable().describe('Custom host of tracked links.'),
    ...trackingDefaults,
    lastCheckedAt: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Domain' });

export const registered = z
  .object({
    message: z.string(),
    ...names,
    groupId: z.string(),
    status,
    ...recordSets,
    altDomainId,
    altStatus,
  })
  .meta({ id: 'RegisteredDomain' });

export const recordsOfDomain = z
  .object({
    ...names,
    ...recordSets,
    status,
    ...flags,
    altDomainId,
    altStatus,
    ...altFlags,
  })
  .meta({ id: 'DomainDnsRecords' });

const check = z
  .object({
    check: z.enum(REPORTED_CHECKS),
    passed: z.boolean().describe('The last known result if `result` is `unknown`.'),
    result: z
      .enum(['ok', 'missing', 'wrong', 'unknown'])
      .describe('`unknown`: the DNS server did not respond.'),
    expected: z.string().describe('The record that passes, merged with the published one.'),
    found: z.string().nullable().describe('The published records, one per line.'),
    hint: z.string().describe('What to change; empty if nothing.'),
  })
  .meta({ id: 'DomainCheck' });

export const verified = z
  .object({
    message: z.string(),
    ...names,
    status,
    ...flags,
    altStatus,
    ...altFlags,
    checks: z.array(check),
  })
  .meta({ id: 'DomainVerification' });

export const lastCheck = z
  .object({
    ...names,
    status,
    useCase: z.enum(['tx', 'mk']),
    trackingDomain: z.string().nullable(),
    ...trackingDefaults,
    checkedAt: z.iso.datetime().nullable().describe('Null before the first check.'),
    records: z.array(
      z.intersection(
        dnsRecord,
        z.object({
          isRequired: z.boolean(),
          lastResult: check
            .omit({ check: true, passed: true })
            .extend({ check: z.enum(REPORTED_CHECKS).nullable() })
            .nullable()
            .describe('Null: not looked up yet.'),
        }),
      ),
    ),
    dkimKeys: z.array(
      z.object({
        selector: z.string(),
        lane: z.enum(['primary', 'secondary']),
        algorithm: z.enum(['rsa', 'ed25519']),
        state: z
          .enum(['active', 'pending', 'retiring', 'revoked'])
          .describe('`pending`: not found in DNS yet. `retiring`, `revoked`: signed before.'),
        since: z.iso.datetime(),
        publishedBy: z.enum(['owner', 'platform']).describe('Whose zone has the record.'),
      }),
    ),
  })
  .meta({ id: 'DomainLastCheck' });

export const dmarcPathSchema = z
  .object({
    ...names,
    policy: z.enum(POLICIES).nullable().describe('The policy that applies; null: none, or not known.'),
    published: z.string().nullable().describe('The record with the policy.'),
    publishedAt: z.string().nullable().describe('Its name, of the domain or of a domain above it.'),
    unknown: z.string().nullable().describe('Why the policy is not known.'),
    message: z.string().describe('What the reports say about the next step.'),
    firstReportAt: z.iso.datetime().nullable(),
    lastReportAt: z.iso.datetime().nullable(),
    lastFailureAt: z.iso.datetime().nullable().describe('End of the last report with unauthenticated mail.'),
    next: z
      .object({
        policy: z.enum(POLICIES),
        record: dnsRecord,
        isReady: z.boolean().describe('Whether the reports permit the step now.'),
        readyAt: z.iso.datetime().nullable().describe('When they do without further failures.'),
      })
      .nullable()
      .describe('The next stricter policy; null: there is none, or the policy is not known.'),
  })
  .meta({ id: 'DmarcPath' });

export const rotated = z
  .object({ message: z.string(), ...names, ...recordSets })
  .meta({ id: 'DkimRotation' });

const ID = 'domain_1769860800000_8m2k4x7q1zab';
const ALT_ID = 'alt_1769860800000_5c9d3e7f1abz';
const GROUP_ID = 'dgroup_1769860800000_4k2m9x7q1zab';
const TIME = '2026-01-31T12:00:00.000Z';
const NO_FLAGS = mapFlags('primary', () => false);
const NO_ALT_FLAGS = mapFlags('secondary', () => false);

const RECORDS: z.output<typeof dnsRecord>[] = [
  {
    type: 'TXT',
    name: 'example.com',
    value: 'v=spf1 include:spf.mail.example.net ~all',
    description: 'SPF: authorizes both lanes of this platform to send for your domain.',
    purpose: 'SPF',
  },
];

export const DOMAIN_EXAMPLES = {
  domainId: ID,
  groupId: GROUP_ID,
  domain: {
    domain: 'example.com',
    domainId: ID,
    groupId: GROUP_ID,
    status: 'PENDING',
    ...NO_FLAGS,
    useCase: 'tx',
    useCaseLabel: 'Transactional',
    createdAt: TIME,
    updatedAt: TIME,
    trackingDomain: null,
    enableOpenTracking: false,
    enableClickTracking: false,
    lastCheckedAt: null,
  } satisfies z.output<typeof domainSchema>,
  registered: {
    message: 'example.com is registered. Publish its DNS records, then verify it.',
    domain: 'example.com',
    domainId: ID,
    groupId: GROUP_ID,
    status: 'PENDING',
    dnsRecords: RECORDS,
    recommendedDnsRecords: [],
    altDomainId: ALT_ID,
    altStatus: 'PENDING',
  } satisfies z.output<typeof registered>,
  records: {
    domain: 'example.com',
    domainId: ID,
    dnsRecords: RECORDS,
    recommendedDnsRecords: [],
    status: 'PENDING',
    ...NO_FLAGS,
    altDomainId: ALT_ID,
    altStatus: 'PENDING',
    ...NO_ALT_FLAGS,
  } satisfies z.output<typeof recordsOfDomain>,
  verified: {
    message: 'The verification of example.com is still pending: SPF does not pass yet.',
    domain: 'example.com',
    domainId: ID,
    status: 'PENDING',
    ...NO_FLAGS,
    dkimEnabled: true,
    altStatus: 'PENDING',
    ...NO_ALT_FLAGS,
    checks: [
      {
        check: 'spf',
        passed: false,
        result: 'wrong',
        expected: 'v=spf1 include:_spf.example.org include:spf.mail.example.net ~all',
        found: 'v=spf1 include:_spf.example.org ~all',
        hint: 'The SPF of example.com gives "softfail" for our address 192.0.2.25. Change it to: v=spf1 include:_spf.example.org include:spf.mail.example.net ~all',
      },
    ],
  } satisfies z.output<typeof verified>,
  lastCheck: {
    domain: 'example.com',
    domainId: ID,
    status: 'PENDING',
    useCase: 'tx',
    trackingDomain: null,
    enableOpenTracking: false,
    enableClickTracking: false,
    checkedAt: TIME,
    records: [
      {
        type: 'TXT',
        name: 'example.com',
        value: 'v=spf1 include:spf.mail.example.net ~all',
        description: 'SPF: authorizes both lanes of this platform to send for your domain.',
        purpose: 'SPF',
        isRequired: true,
        lastResult: {
          check: 'spf',
          result: 'missing',
          expected: 'v=spf1 include:spf.mail.example.net ~all',
          found: null,
          hint: 'example.com has no SPF record. Publish: v=spf1 include:spf.mail.example.net ~all',
        },
      },
    ],
    dkimKeys: [
      {
        selector: 'k8m2x4q7',
        lane: 'primary',
        algorithm: 'rsa',
        state: 'active',
        since: TIME,
        publishedBy: 'owner',
      },
    ],
  } satisfies z.output<typeof lastCheck>,
  dmarcPath: {
    domain: 'example.com',
    domainId: ID,
    policy: 'quarantine',
    published: 'v=DMARC1; p=quarantine; rua=mailto:dmarc@return-a.example.com',
    publishedAt: '_dmarc.example.com',
    unknown: null,
    message:
      'DMARC reports show no unauthenticated mail since 2026-01-24: a policy below p=reject may be raised after 2026-02-07 if no such mail arrives before then.',
    firstReportAt: '2026-01-24T00:00:00.000Z',
    lastReportAt: TIME,
    lastFailureAt: null,
    next: {
      policy: 'reject',
      record: {
        type: 'TXT',
        name: '_dmarc.example.com',
        value: 'v=DMARC1; p=reject; rua=mailto:dmarc@return-a.example.com',
        description: 'Receivers reject mail in your name that is not authenticated.',
        purpose: 'DMARC',
      },
      isReady: false,
      readyAt: '2026-02-07T00:00:00.000Z',
    },
  } satisfies z.output<typeof dmarcPathSchema>,
  rotated: {
    message: 'The rotation of the DKIM key has started.',
    domain: 'example.com',
    domainId: ID,
    dnsRecords: RECORDS,
    recommendedDnsRecords: [],
  } satisfies z.output<typeof rotated>,
};
