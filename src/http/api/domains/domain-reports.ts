import * as z from 'zod';
import { DAY, iso } from '../../../core/clock.ts';
import { invalid, isRefusal } from '../../../core/refusal.ts';
import { type DomainReports, domainReports, MAX_DAYS } from '../../../domains/reports.ts';
import type { Domains } from '../../../domains/service.ts';
import type { Context } from '../../../store/context.ts';
import type { DmarcReportRow } from '../../../store/domains/dmarc-reports.ts';
import { type Route, routesOf } from '../../route.ts';
import { requestTime } from '../fields.ts';

const route = routesOf({ tag: 'Domains', scope: 'setup', permissions: ['read', 'develop'] });

/*
 * `GET /web-setup/domains/{domainId}/reports`: reports of receivers on mail with the domain in From (DMARC)
 * and on encryption of sessions with its return path or its own mail servers (TLS-RPT, RFC 8460). Several accounts may
 * register the same name: reports are shown only to the account that proved control of it by its DKIM record.
 */

const DEFAULT_DAYS = 30;
const MAX_ROWS = 200;

const date = z.string().describe('Day on which the reports ended, in UTC.');

const verified = z
  .boolean()
  .describe(
    'Whether the DKIM signature of the mail belongs to the organization that the report names. Only such reports count for `dmarc-path`.',
  );
const signer = z
  .string()
  .nullable()
  .describe('The organizational domain whose DKIM signature was verified; null: none.');

export const domainReportsSchema = z.object({
  domainId: z.string(),
  domain: z.string(),
  from: z.string(),
  to: z.string(),
  message: z.string().optional().describe('Why no reports are shown.'),
  dmarc: z.object({
    messages: z.int().describe('Messages with the domain in From that receivers reported.'),
    passed: z.int().describe('Messages that passed by aligned DKIM or SPF.'),
    sources: z
      .array(
        z.object({
          sourceIp: z.string(),
          messages: z.int(),
          passed: z.int(),
          dkimPassed: z.int(),
          spfPassed: z.int(),
          quarantined: z.int(),
          rejected: z.int(),
        }),
      )
      .describe(`By number of messages, at most ${MAX_ROWS}.`),
    days: z
      .array(
        z.object({
          date,
          messages: z.int(),
          passed: z.int(),
          dkimPassed: z.int(),
          spfPassed: z.int(),
        }),
      )
      .describe(`Newest first, at most ${MAX_DAYS}; without days that have no reports.`),
    reports: z
      .array(
        z.object({
          organization: z.string(),
          reportId: z.string(),
          begin: z.string(),
          end: z.string(),
          policyDomain: z.string(),
          policy: z.string().describe('The policy `p` that the receiver found.'),
          messages: z.int(),
          truncated: z.boolean().describe('The report had more rows than are stored.'),
          verified,
          signer,
        }),
      )
      .describe(`Newest first, at most ${MAX_ROWS}.`),
  }),
  tls: z.object({
    successful: z.int().describe('Encrypted sessions with the return path.'),
    failed: z.int(),
    failures: z.array(
      z.object({
        type: z.string().describe('`certificate-expired`, `starttls-not-supported`, … (RFC 8460 §4.3).'),
        receivingHost: z.string(),
        reason: z.string(),
        sessions: z.int(),
      }),
    ),
    days: z.array(z.object({ date, successful: z.int(), failed: z.int() })).describe('As in `dmarc`.'),
    reports: z.array(
      z.object({
        organization: z.string(),
        reportId: z.string(),
        policyType: z.string(),
        begin: z.string(),
        end: z.string(),
        successful: z.int(),
        failed: z.int(),
        verified,
        signer,
      }),
    ),
  }),
});

const EXAMPLE: z.output<typeof domainReportsSchema> = {
  domainId: 'domain_1769860800000_5k2n8v1c4x7z',
  domain: 'example.com',
  from: '2026-01-01T00:00:00.000Z',
  to: '2026-01-31T00:00:00.000Z',
  dmarc: {
    messages: 1204,
    passed: 1198,
    sources: [
      {
        sourceIp: '192.0.2.25',
        messages: 1198,
        passed: 1198,
        dkimPassed: 1198,
        spfPassed: 1190,
        quarantined: 0,
        rejected: 0,
      },
    ],
    days: [{ date: '2026-01-30', messages: 1204, passed: 1198, dkimPassed: 1198, spfPassed: 1190 }],
    reports: [
      {
        organization: 'receiver.example',
        reportId: '1769817600.4711',
        begin: '2026-01-30T00:00:00.000Z',
        end: '2026-01-30T23:59:59.000Z',
        policyDomain: 'example.com',
        policy: 'reject',
        messages: 1204,
        truncated: false,
        verified: true,
        signer: 'receiver.example',
      },
    ],
  },
  tls: {
    successful: 311,
    failed: 1,
    failures: [
      {
        type: 'certificate-expired',
        receivingHost: 'mail.example.net',
        reason: '',
        sessions: 1,
      },
    ],
    days: [{ date: '2026-01-30', successful: 311, failed: 1 }],
    reports: [
      {
        organization: 'receiver.example',
        reportId: '2026-01-30_return-a.example.com',
        policyType: 'no-policy-found',
        begin: '2026-01-30T00:00:00.000Z',
        end: '2026-01-30T23:59:59.000Z',
        successful: 311,
        failed: 1,
        verified: true,
        signer: 'receiver.example',
      },
    ],
  },
};

/**
 * One route with the scope `setup`, which reads in a reader thread. Without a verified DKIM record of the domain all
 * numbers are 0 and `message` states why.
 */
export function domainReportRoutes(
  { clock, reader }: Pick<Context, 'clock' | 'reader'>,
  { domains }: { domains: Pick<Domains, 'get'> },
): Route[] {
  return [
    route('GET /web-setup/domains/{domainId}/reports', {
      operationId: 'getDomainReports',
      summary: 'Get the DMARC and TLS reports of a domain',
      description:
        'Reports of receivers on mail with the domain in From, totaled by source address, and on encryption of sessions with its return path, or with the domain itself if its TLSRPT record names `tlsrpt@return-a.<domain>`. Anyone can send reports: `verified` states which ones the reporting organization has signed. A report whose period ends in the future counts as ending when it was received.',
      query: z.object({
        from: requestTime
          .optional()
          .describe(
            `Start, inclusive, of the period in which reports ended. Default: ${DEFAULT_DAYS} days before \`to\`.`,
          ),
        to: requestTime.optional().describe('End, exclusive. Default: now.'),
        verified: z
          .stringbool({ truthy: ['true'], falsy: ['false'] })
          .optional()
          .describe(
            'Only reports, in the totals as well, that the reporting organization has signed (`true`), or only others (`false`).',
          ),
      }),
      response: {
        description: 'Totals and individual reports.',
        data: domainReportsSchema,
        example: EXAMPLE,
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      narrowBy: ['from', 'to'],
      handle: async ({ caller: { accountId }, params, query }) => {
        const domain = domains.get(accountId, params.domainId);
        if (isRefusal(domain)) return domain;
        const to = query.to === undefined ? clock.now() + 1 : Date.parse(query.to);
        const from = query.from === undefined ? to - DEFAULT_DAYS * DAY : Date.parse(query.from);
        if (from > to) return invalid('from', 'must not be after `to`');
        const proven = domain.dkim_enabled === 1;
        const period = { from, to, limit: proven ? MAX_ROWS : 0, verified: query.verified };
        const { dmarc, tls } = await reader.query(accountId, domainReports, domain.name, period);
        return {
          domainId: domain.domain_id,
          domain: domain.name,
          from: iso(from),
          to: iso(to),
          ...(proven
            ? {}
            : { message: `Reports are shown once the DKIM record of ${domain.name} is verified.` }),
          dmarc: presentDmarc(dmarc),
          tls: presentTls(tls),
        };
      },
    }),
  ];
}

function presentDmarc({ total, sources, days, reports }: DomainReports['dmarc']) {
  return {
    ...total,
    sources: sources.map((row) => ({
      sourceIp: row.source_ip,
      messages: row.messages,
      passed: row.passed,
      dkimPassed: row.dkim_passed,
      spfPassed: row.spf_passed,
      quarantined: row.quarantined,
      rejected: row.rejected,
    })),
    days: days.map((row) => ({
      date: row.day,
      messages: row.messages,
      passed: row.passed,
      dkimPassed: row.dkim_passed,
      spfPassed: row.spf_passed,
    })),
    reports: reports.map((row) => ({
      organization: row.organization,
      reportId: row.report_id,
      begin: iso(row.begin_at),
      end: iso(row.end_at),
      policyDomain: row.policy_domain,
      policy: policyOf(row),
      messages: row.messages,
      truncated: row.truncated === 1,
      ...presentSigner(row),
    })),
  };
}

function policyOf({ policy }: DmarcReportRow): string {
  const published: { p: string } = JSON.parse(policy);
  return published.p;
}

function presentTls({ total, failures, days, reports }: DomainReports['tls']) {
  return {
    ...total,
    failures: failures.map((row) => ({
      type: row.type,
      receivingHost: row.receiving_host,
      reason: row.reason,
      sessions: row.sessions,
    })),
    days: days.map(({ day, successful, failed }) => ({ date: day, successful, failed })),
    reports: reports.map((row) => ({
      organization: row.organization,
      reportId: row.report_id,
      policyType: row.policy_type,
      begin: iso(row.begin_at),
      end: iso(row.end_at),
      successful: row.successful,
      failed: row.failed,
      ...presentSigner(row),
    })),
  };
}

function presentSigner({ verified: isVerified, signer: by }: Pick<DmarcReportRow, 'verified' | 'signer'>) {
  return { verified: isVerified === 1, signer: by === '' ? null : by };
}
