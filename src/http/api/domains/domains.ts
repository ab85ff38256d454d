import * as z from 'zod';
import { isRefusal } from '../../../core/refusal.ts';
import {
  presentDomain,
  presentFlags,
  presentSecondaryFlags,
  verificationMessage,
} from '../../../domains/present.ts';
import type { Domains } from '../../../domains/service.ts';
import type { DomainRow } from '../../../store/domains/domains.ts';
import { type Route, type RouteDescription, route } from '../../route.ts';
import { pageEndFields, pageOfAll, pagingWide } from '../paging.ts';
import {
  DOMAIN_EXAMPLES,
  domainSchema,
  recordsOfDomain,
  registered,
  rotated,
  verified,
} from './domain-schemas.ts';

/** `/web-setup/domains`: sending domains, their DNS records and their verification. */
export function domainRoutes({ domains }: { domains: Domains }): Route[] {
  return [...collectionRoutes(domains), ...memberRoutes(domains), ...dnsRoutes(domains)];
}

const COMMON = { tag: 'Domains', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ domainId: z.string() });

function collectionRoutes(domains: Domains): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/domains',
      operationId: 'listDomains',
      summary: 'List domains',
      query: z.object(pagingWide),
      responses: {
        200: {
          description: 'A page of domains, oldest first.',
          data: z.object({
            domains: z.array(domainSchema),
            total: z.int().describe('Number of domains on all pages.'),
            nextKey: pageEndFields.nextKey,
          }),
          example: { domains: [DOMAIN_EXAMPLES.domain], total: 1 },
        },
      },
      refusals: [],
      handle: ({ caller, query }) => {
        const all = domains.list(caller.accountId);
        const page = pageOfAll('domains', all, query, ({ domain_id }) => domain_id);
        if (isRefusal(page)) return page;
        const { count: _, ...end } = page.end;
        return { status: 200, data: { domains: page.rows.map(presentDomain), total: all.length, ...end } };
      },
    }),
    route({
      ...COMMON,
      method: 'PUT',
      path: '/web-setup/domains',
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
        200: {
          description: 'The domain was already registered.',
          data: registered,
          example: DOMAIN_EXAMPLES.registered,
        },
        201: {
          description: 'The domain was registered.',
          data: registered,
          example: DOMAIN_EXAMPLES.registered,
        },
      },
      refusals: ['USE_CASE_NOT_FOUND', 'GROUP_NOT_FOUND', 'LIMIT_REACHED'],
      handle: async ({ caller, body }) => {
        const result = await domains.register(caller.accountId, body);
        if (isRefusal(result)) return result;
        const { domain, created } = result;
        return {
          status: created ? 201 : 200,
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
        };
      },
    }),
  ];
}

function memberRoutes(domains: Domains): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/domains/{domainId}',
      operationId: 'getDomain',
      summary: 'Get a domain',
      params,
      responses: { 200: { description: 'The domain.', data: domainSchema, example: DOMAIN_EXAMPLES.domain } },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const domain = domains.get(caller.accountId, params.domainId);
        return isRefusal(domain) ? domain : { status: 200, data: presentDomain(domain) };
      },
    }),
    route({
      ...COMMON,
      method: 'PATCH',
      path: '/web-setup/domains/{domainId}',
      operationId: 'updateDomain',
      summary: 'Set the host of tracked links',
      description:
        'The host is used as soon as its DNS record points to this platform. Until then, and with `null`, links use `link.<domain>` or the default host.',
      params,
      body: z
        .object({
          trackingDomain: z.string().max(1000).nullable().optional().describe('A subdomain of the domain.'),
        })
        .meta({ id: 'DomainPatch' }),
      example: { trackingDomain: 'eu-t-link.example.com' },
      responses: {
        200: {
          description: 'The updated domain.',
          data: z.intersection(domainSchema, z.object({ message: z.string() })),
          example: { message: 'Publish the CNAME eu-t-link.example.com.', ...DOMAIN_EXAMPLES.domain },
        },
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: async ({ caller, params, body }) => {
        const domain =
          body.trackingDomain === undefined
            ? domains.get(caller.accountId, params.domainId)
            : await domains.setTrackingDomain(caller.accountId, params.domainId, body.trackingDomain);
        if (isRefusal(domain)) return domain;
        return { status: 200, data: { message: trackingMessage(domain, domains), ...presentDomain(domain) } };
      },
    }),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/domains/{domainId}',
      operationId: 'deleteDomain',
      summary: 'Delete a domain',
      description:
        'Queued mail from the domain is dropped with the event `email_failed` and the reason `domain_deleted`.',
      params,
      responses: {
        200: {
          description: 'The domain was deleted.',
          data: z.object({ message: z.string(), domainId: z.string() }),
          example: { message: 'example.com has been deleted.', domainId: DOMAIN_EXAMPLES.domainId },
        },
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const domain = await domains.remove(caller.accountId, params.domainId);
        if (isRefusal(domain)) return domain;
        return {
          status: 200,
          data: { message: `${domain.name} has been deleted.`, domainId: domain.domain_id },
        };
      },
    }),
    route({
      ...COMMON,
      method: 'PUT',
      path: '/web-setup/domains/{domainId}/assign-group',
      operationId: 'assignDomainGroup',
      summary: 'Move a domain to a group',
      params,
      body: z
        .object({ groupId: z.string().trim().min(1).max(100) })
        .meta({ id: 'DomainGroupAssignmentInput' }),
      example: { groupId: DOMAIN_EXAMPLES.groupId },
      responses: {
        200: {
          description: 'The domain was moved.',
          data: z.object({ message: z.string(), domainId: z.string(), groupId: z.string() }),
          example: {
            message: 'example.com has been moved to the group.',
            domainId: DOMAIN_EXAMPLES.domainId,
            groupId: DOMAIN_EXAMPLES.groupId,
          },
        },
      },
      refusals: ['DOMAIN_NOT_FOUND', 'GROUP_NOT_FOUND'],
      handle: async ({ caller, params, body }) => {
        const domain = await domains.assignGroup(caller.accountId, params.domainId, body.groupId);
        if (isRefusal(domain)) return domain;
        const message = `${domain.name} has been moved to the group.`;
        return { status: 200, data: { message, domainId: domain.domain_id, groupId: domain.group_id } };
      },
    }),
  ];
}

function dnsRoutes(domains: Domains): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/domains/{domainId}/dns-records',
      operationId: 'getDomainDnsRecords',
      summary: 'Get the DNS records of a domain',
      params,
      responses: {
        200: {
          description: 'The records to publish and the results of the last check.',
          data: recordsOfDomain,
          example: DOMAIN_EXAMPLES.records,
        },
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const domain = domains.get(caller.accountId, params.domainId);
        if (isRefusal(domain)) return domain;
        return {
          status: 200,
          data: {
            ...namesOf(domain),
            ...domains.records(domain),
            status: domain.status,
            ...presentFlags(domain),
            altDomainId: domain.alt_domain_id,
            altStatus: domain.alt_status,
            ...presentSecondaryFlags(domain),
          },
        };
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/domains/{domainId}/verify',
      operationId: 'verifyDomain',
      stores: () => false,
      summary: 'Verify a domain now',
      description:
        'Queries DNS without using the cache. If DNS does not respond for a record, its last result remains. Limited to ten requests per minute and domain.',
      params,
      responses: {
        200: { description: 'The results of all checks.', data: verified, example: DOMAIN_EXAMPLES.verified },
      },
      refusals: ['DOMAIN_NOT_FOUND', 'RATE_LIMITED'],
      handle: async ({ caller, params }) => {
        const result = await domains.verify(caller.accountId, params.domainId);
        if (isRefusal(result)) return result;
        const { domain, checks } = result;
        return {
          status: 200,
          data: {
            message: verificationMessage(domain, checks),
            ...namesOf(domain),
            status: domain.status,
            ...presentFlags(domain),
            altStatus: domain.alt_status,
            ...presentSecondaryFlags(domain),
            checks,
          },
        };
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/domains/{domainId}/rotate-dkim',
      operationId: 'rotateDomainDkim',
      summary: 'Rotate the DKIM key',
      description:
        "The old key signs until a check finds the record of the new key; keep both records published until then. A request during a rotation changes nothing. Keys in the platform's zone (see the recommended CNAME records) are rotated without a new record.",
      params,
      responses: {
        200: { description: 'The rotation is in progress.', data: rotated, example: DOMAIN_EXAMPLES.rotated },
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
        return { status: 200, data: { message, ...namesOf(domain), ...domains.records(domain) } };
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
