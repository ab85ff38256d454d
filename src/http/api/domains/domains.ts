import * as z from 'zod';
import { isoOrNull } from '../../../core/clock.ts';
import { isRefusal } from '../../../core/refusal.ts';
import {
  presentDomain,
  presentFlags,
  presentSecondaryFlags,
  presentTracking,
  verificationMessage,
} from '../../../domains/present.ts';
import { dmarcHistory } from '../../../domains/reports.ts';
import type { Domains } from '../../../domains/service.ts';
import type { Context } from '../../../store/context.ts';
import type { DomainRow } from '../../../store/domains/domains.ts';
import { mapResult, Reply, type Route, routesOf } from '../../route.ts';
import { pageEndFields, pageOfAll, pagesById, pagingWide } from '../paging.ts';
import {
  DOMAIN_EXAMPLES,
  dmarcPathSchema,
  domainSchema,
  lastCheck,
  recordsOfDomain,
  registered,
  rotated,
  trackingDefaults,
  verified,
} from './domain-schemas.ts';

const route = routesOf({ tag: 'Domains', scope: 'setup', permissions: ['read', 'develop'] });
const registration = { data: registered, example: DOMAIN_EXAMPLES.registered };
const NO_HISTORY = { firstAt: null, lastAt: null, lastFailureAt: null, unverified: 0 };

export const useCase = z
  .object({
    id: z.string().describe('`<use case>-<region code>`.'),
    useCase: z.enum(['tx', 'mk']),
    useCaseName: z.string(),
    description: z.string(),
    icon: z.string(),
    region: z.object({ code: z.string(), name: z.string() }),
    canSendEmail: z.boolean().describe('Whether the account has a verified domain for it.'),
  })
  .meta({ id: 'UseCase' });

const USE_CASES_EXAMPLE = {
  useCases: [
    {
      id: 'tx-local',
      useCase: 'tx',
      useCaseName: 'Transactional',
      description:
        'Messages that one person expects: password resets, order confirmations, invoices, system notifications.',
      icon: '🔔',
      region: { code: 'local', name: 'This server' },
      canSendEmail: true,
    },
  ],
  message: '2 use cases, 1 with a verified domain.',
  nextKey: 'dXNlLWNhc2VzOnR4LWxvY2Fs',
};

/**
 * `/web-setup/use-cases` and `/web-setup/domains`: sending domains, their DNS records and their verification, what the last
 * check found, and the way to a strict DMARC policy.
 */
export function domainRoutes(
  { reader }: Pick<Context, 'reader'>,
  { domains }: { domains: Domains },
): Route[] {
  return [
    route('GET /web-setup/use-cases', {
      operationId: 'listUseCases',
      summary: 'List use cases',
      description: 'Two for every region. `id` is the `useCaseId` of a domain registration.',
      query: z.object(pagingWide),
      response: {
        description: 'A page of use cases.',
        data: z.object({
          useCases: z.array(useCase),
          message: z.string(),
          nextKey: pageEndFields.nextKey,
        }),
        example: USE_CASES_EXAMPLE,
      },
      page: pagesById('use-cases'),
      handle: ({ caller, query, after }) => {
        const useCases = domains.useCases(caller.accountId);
        const ready = useCases.filter(({ canSendEmail }) => canSendEmail).length;
        const message = `${useCases.length} use cases, ${ready} with a verified domain.`;
        const page = pageOfAll(useCases, query.limit, after, ({ id }) => id);
        return mapResult(page, ({ rows, end: { nextKey } }) => ({ useCases: rows, message, nextKey }));
      },
    }),
    route('GET /web-setup/domains', {
      operationId: 'listDomains',
      summary: 'List domains',
      query: z.object(pagingWide),
      response: {
        description: 'A page of domains, oldest first.',
        data: z.object({
          domains: z.array(domainSchema),
          total: z.int().describe('Number of domains on all pages.'),
          nextKey: pageEndFields.nextKey,
        }),
        example: { domains: [DOMAIN_EXAMPLES.domain], total: 1 },
      },
      page: pagesById('domains'),
      handle: ({ caller, query, after }) => {
        const all = domains.list(caller.accountId);
        const page = pageOfAll(all, query.limit, after, ({ domain_id }) => domain_id);
        return mapResult(page, ({ rows, end: { nextKey } }) => ({
          domains: rows.map(presentDomain),
          total: all.length,
          nextKey,
        }));
      },
    }),
    route('PUT /web-setup/domains', {
      operationId: 'registerDomain',
      summary: 'Register a sending domain',
      description:
        'Registering a domain again for the same use case changes nothing and returns the existing domain.',
      body: z
        .object({
          domain: z.string().max(1000).describe('The name without protocol; U-labels are accepted.'),
          useCaseId: z.string().max(100),
          groupId: z.string().max(100).optional().describe('Default: the default group of the account.'),
        })
        .meta({ id: 'DomainInput' }),
      example: { domain: 'example.com', useCaseId: 'tx-local' },
      responses: {
        200: { description: 'The domain was already registered.', ...registration },
        201: { description: 'The domain was registered.', ...registration },
      },
      refusals: ['USE_CASE_NOT_FOUND', 'GROUP_NOT_FOUND', 'LIMIT_REACHED'],
      handle: async ({ caller, body }) => {
        const result = await domains.register(caller.accountId, body);
        if (isRefusal(result)) return result;
        const { domain, created } = result;
        return new Reply(
          {
            data: {
              message: created
                ? `${domain.name} is registered. Publish its DNS records, then verify it.`
                : `${domain.name} is already registered.`,
              ...namesOf(domain),
              groupId: domain.group_id,
              status: domain.status,
              ...domains.records(domain),
              altDomainId: domain.alt_domain_id,
              altStatus: domain.alt_status,
            },
          },
          { status: created ? 201 : 200 },
        );
      },
    }),
    route('GET /web-setup/domains/{domainId}', {
      operationId: 'getDomain',
      summary: 'Get a domain',
      response: { description: 'The domain.', data: domainSchema, example: DOMAIN_EXAMPLES.domain },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const domain = domains.get(caller.accountId, params.domainId);
        return isRefusal(domain) ? domain : presentDomain(domain);
      },
    }),
    route('PATCH /web-setup/domains/{domainId}', {
      operationId: 'updateDomain',
      refusesTestKeys: 'whileDomainFailed',
      summary: 'Set how mail is tracked',
      description:
        'Fields that are absent stay as they are. The host is used as soon as its DNS record points to this platform. Until then, and with `null`, links use `link.<domain>` or the default host.',
      body: z
        .object({
          trackingDomain: z.string().max(1000).nullable().optional().describe('A subdomain of the domain.'),
          enableOpenTracking: trackingDefaults.enableOpenTracking.optional(),
          enableClickTracking: trackingDefaults.enableClickTracking.optional(),
        })
        .meta({ id: 'DomainPatch' }),
      example: { trackingDomain: 'eu-t-link.example.com' },
      response: {
        description: 'The updated domain.',
        data: z.intersection(domainSchema, z.object({ message: z.string() })),
        example: { message: 'Publish the CNAME eu-t-link.example.com.', ...DOMAIN_EXAMPLES.domain },
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: async ({ caller, params, body }) => {
        const domain =
          Object.keys(body).length === 0
            ? domains.get(caller.accountId, params.domainId)
            : await domains.setTracking(caller.accountId, params.domainId, body);
        if (isRefusal(domain)) return domain;
        return { message: trackingMessage(domain, domains), ...presentDomain(domain) };
      },
    }),
    route('DELETE /web-setup/domains/{domainId}', {
      operationId: 'deleteDomain',
      summary: 'Delete a domain',
      description:
        'Queued mail from the domain is dropped with the event `email_failed` and the reason `domain_deleted`.',
      response: {
        description: 'The domain was deleted.',
        data: z.object({ message: z.string(), domainId: z.string() }),
        example: { message: 'example.com has been deleted.', domainId: DOMAIN_EXAMPLES.domainId },
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const domain = await domains.remove(caller.accountId, params.domainId);
        if (isRefusal(domain)) return domain;
        return { message: `${domain.name} has been deleted.`, domainId: domain.domain_id };
      },
    }),
    route('PUT /web-setup/domains/{domainId}/assign-group', {
      operationId: 'assignDomainGroup',
      summary: 'Move a domain to a group',
      body: z
        .object({ groupId: z.string().trim().min(1).max(100) })
        .meta({ id: 'DomainGroupAssignmentInput' }),
      example: { groupId: DOMAIN_EXAMPLES.groupId },
      response: {
        description: 'The domain was moved.',
        data: z.object({ message: z.string(), domainId: z.string(), groupId: z.string() }),
        example: {
          message: 'example.com has been moved to the group.',
          domainId: DOMAIN_EXAMPLES.domainId,
          groupId: DOMAIN_EXAMPLES.groupId,
        },
      },
      refusals: ['DOMAIN_NOT_FOUND', 'GROUP_NOT_FOUND'],
      handle: async ({ caller, params, body }) => {
        const domain = await domains.assignGroup(caller.accountId, params.domainId, body.groupId);
        if (isRefusal(domain)) return domain;
        const message = `${domain.name} has been moved to the group.`;
        return { message, domainId: domain.domain_id, groupId: domain.group_id };
      },
    }),
    route('GET /web-setup/domains/{domainId}/dns-records', {
      operationId: 'getDomainDnsRecords',
      summary: 'Get the DNS records of a domain',
      response: {
        description: 'The records to publish and the results of the last check.',
        data: recordsOfDomain,
        example: DOMAIN_EXAMPLES.records,
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const domain = domains.get(caller.accountId, params.domainId);
        if (isRefusal(domain)) return domain;
        return {
          ...namesOf(domain),
          ...domains.records(domain),
          status: domain.status,
          ...presentFlags(domain),
          altDomainId: domain.alt_domain_id,
          altStatus: domain.alt_status,
          ...presentSecondaryFlags(domain),
        };
      },
    }),
    route('POST /web-setup/domains/{domainId}/verify', {
      operationId: 'verifyDomain',
      refusesTestKeys: 'whileDomainFailed',
      stores: () => false,
      summary: 'Verify a domain now',
      description:
        'Queries DNS without using the cache. If DNS does not respond for a record, its last result remains. Limited to ten requests per minute and domain.',
      response: {
        description: 'The results of all checks.',
        data: verified,
        example: DOMAIN_EXAMPLES.verified,
      },
      refusals: ['DOMAIN_NOT_FOUND', 'RATE_LIMITED'],
      handle: async ({ caller, params }) => {
        const result = await domains.verify(caller.accountId, params.domainId);
        if (isRefusal(result)) return result;
        const { domain, checks } = result;
        return {
          message: verificationMessage(domain, checks),
          ...namesOf(domain),
          status: domain.status,
          ...presentFlags(domain),
          altStatus: domain.alt_status,
          ...presentSecondaryFlags(domain),
          checks,
        };
      },
    }),
    route('POST /web-setup/domains/{domainId}/rotate-dkim', {
      operationId: 'rotateDomainDkim',
      refusesTestKeys: 'whileDomainFailed',
      summary: 'Rotate the DKIM key',
      description:
        "The old key signs until a check finds the record of the new key; keep both records published until then. A request during a rotation changes nothing. Keys in the platform's zone (see the recommended CNAME records) are rotated without a new record.",
      response: {
        description: 'The rotation is in progress.',
        data: rotated,
        example: DOMAIN_EXAMPLES.rotated,
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const result = await domains.rotateDkim(caller.accountId, params.domainId);
        if (isRefusal(result)) return result;
        const { domain, started, isManaged } = result;
        const message = isManaged
          ? "The DKIM keys in the platform's zone are rotated at the next check. Nothing needs to be published."
          : started
            ? 'The rotation of the DKIM key has started. Publish the first record in addition to the old one; the old key signs until the new record is found.'
            : 'A rotation of the DKIM key is already in progress; this is its record.';
        return { message, ...namesOf(domain), ...domains.records(domain) };
      },
    }),
    route('GET /web-setup/domains/{domainId}/last-check', {
      operationId: 'getDomainLastCheck',
      summary: 'Get the last check of a domain',
      description:
        'Each record next to what the last check found, without a new lookup, and the DKIM keys. Recommended records are looked up only when a verification is requested.',
      response: { description: 'The last check.', data: lastCheck, example: DOMAIN_EXAMPLES.lastCheck },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const domain = domains.get(caller.accountId, params.domainId);
        if (isRefusal(domain)) return domain;
        const { checkedAt, ...rest } = domains.lastCheck(domain);
        return {
          ...namesOf(domain),
          status: domain.status,
          useCase: domain.use_case,
          trackingDomain: domain.tracking_domain,
          ...presentTracking(domain),
          checkedAt: isoOrNull(checkedAt),
          ...rest,
        };
      },
    }),
    route('GET /web-setup/domains/{domainId}/dmarc-path', {
      operationId: 'getDmarcPath',
      summary: 'Get the next step of the DMARC policy',
      description:
        'The policy in DNS now, and the record of the next stricter one: `p=none`, `p=quarantine`, `p=reject`. Two weeks of reports without unauthenticated mail permit a step; only reports that their organization has signed (`verified`) count. Before the DKIM record is verified, reports are not considered.',
      response: {
        description: 'The policy and the next step.',
        data: dmarcPathSchema,
        example: DOMAIN_EXAMPLES.dmarcPath,
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: async ({ caller: { accountId }, params }) => {
        const domain = domains.get(accountId, params.domainId);
        if (isRefusal(domain)) return domain;
        // Several accounts may register a name: its reports are for the one that proved control of it.
        const history =
          domain.dkim_enabled === 1 ? await reader.query(accountId, dmarcHistory, domain.name) : NO_HISTORY;
        const { next, ...path } = await domains.dmarcPath(domain, history);
        return {
          ...namesOf(domain),
          ...path,
          firstReportAt: isoOrNull(history.firstAt),
          lastReportAt: isoOrNull(history.lastAt),
          lastFailureAt: isoOrNull(history.lastFailureAt),
          next: next === null ? null : { ...next, readyAt: isoOrNull(next.readyAt) },
        };
      },
    }),
  ];
}

function namesOf(domain: DomainRow): { domain: string; domainId: string } {
  return { domain: domain.name, domainId: domain.domain_id };
}

function trackingMessage(domain: DomainRow, domains: Domains): string {
  const link = domains.records(domain).dnsRecords.find(({ purpose }) => purpose === 'Tracking');
  const host = domain.tracking_domain;
  if (host === null)
    return `Tracked links use ${link?.name} once it points to this platform, until then the default host.`;
  return `Tracked links use ${host} as soon as it is a CNAME to ${link?.value}.`;
}
