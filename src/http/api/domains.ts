import { z } from 'zod';
import { isRefusal } from '../../core/refusal.ts';
import type { Domains } from '../../domains/service.ts';
import { shownAltFlags, shownDomain, shownFlags } from '../../domains/shown.ts';
import { verificationMessage } from '../../domains/verification/messages.ts';
import type { DomainRow } from '../../store/domains/domains.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import { domainRecord, EXAMPLES, recordsOfDomain, registered, rotated, verified } from './domain-forms.ts';
import { pageEndForm, pageOfAll, pagingWide } from './paging.ts';

/** `/web-setup/domains`: sending domains, what to publish for them, and whether it is there. */
export function domainRoutes({ domains }: { domains: Domains }): Route[] {
  return [...wholeList(domains), ...oneDomain(domains), ...dnsOfDomain(domains)];
}

const COMMON = { tag: 'Domains', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ domainId: z.string() });

function wholeList(domains: Domains): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/domains',
      operationId: 'listDomains',
      summary: 'All domains',
      query: z.object(pagingWide),
      answers: {
        200: {
          description: 'Oldest first.',
          data: z.object({
            domains: z.array(domainRecord),
            total: z.int().describe('On all pages.'),
            nextKey: pageEndForm.nextKey,
          }),
          example: { domains: [EXAMPLES.domain], total: 1 },
        },
      },
      refusals: [],
      handle: ({ caller, query }) => {
        const all = domains.list(caller.accountId);
        const page = pageOfAll('domains', all, query, ({ domain_id }) => domain_id);
        if (isRefusal(page)) return page;
        const { count: _, ...end } = page.end;
        return { status: 200, data: { domains: page.rows.map(shownDomain), total: all.length, ...end } };
      },
    }),
    route({
      ...COMMON,
      method: 'PUT',
      path: '/web-setup/domains',
      operationId: 'registerDomain',
      summary: 'Registers a sending domain',
      description:
        'Registering the same domain for the same use case again changes nothing and answers the existing record.',
      body: z.object({
        domain: z.string().max(1000).describe('The name alone, without protocol; U-labels are taken.'),
        useCaseId: z.string().max(100),
        groupId: z.string().max(100).optional().describe("The account's default group when not given."),
      }),
      example: { domain: 'example.com', useCaseId: 'tx-local' },
      answers: {
        200: { description: 'It was registered before.', data: registered, example: EXAMPLES.registered },
        201: { description: 'Registered.', data: registered, example: EXAMPLES.registered },
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
              : `${domain.name} was registered before; this is its record.`,
            ...named(domain),
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

function oneDomain(domains: Domains): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/domains/{domainId}',
      operationId: 'getDomain',
      summary: 'One domain',
      params,
      answers: { 200: { description: 'The domain.', data: domainRecord, example: EXAMPLES.domain } },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const domain = domains.get(caller.accountId, params.domainId);
        return isRefusal(domain) ? domain : { status: 200, data: shownDomain(domain) };
      },
    }),
    route({
      ...COMMON,
      method: 'PATCH',
      path: '/web-setup/domains/{domainId}',
      operationId: 'updateDomain',
      summary: 'Sets the host of tracked links',
      description:
        'The host is used once it leads to this platform; until then, and with `null`, links use `link.<domain>` or the default.',
      params,
      body: z.object({
        trackingDomain: z.string().max(1000).nullable().optional().describe('A name below the domain.'),
      }),
      example: { trackingDomain: 'eu-t-link.example.com' },
      answers: {
        200: {
          description: 'The domain as it is now.',
          data: domainRecord.extend({ message: z.string() }),
          example: { message: 'Publish the CNAME eu-t-link.example.com.', ...EXAMPLES.domain },
        },
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: async ({ caller, params, body }) => {
        const domain =
          body.trackingDomain === undefined
            ? domains.get(caller.accountId, params.domainId)
            : await domains.setTrackingDomain(caller.accountId, params.domainId, body.trackingDomain);
        if (isRefusal(domain)) return domain;
        return { status: 200, data: { message: trackingMessage(domain, domains), ...shownDomain(domain) } };
      },
    }),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/domains/{domainId}',
      operationId: 'deleteDomain',
      summary: 'Deletes a domain',
      description:
        'Mail from it that still waits is dropped with the event `email_failed`, reason `domain_deleted`.',
      params,
      answers: {
        200: {
          description: 'Deleted.',
          data: z.object({ message: z.string(), domainId: z.string() }),
          example: { message: 'example.com has been deleted.', domainId: EXAMPLES.domainId },
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
      summary: 'Moves a domain to a group',
      params,
      body: z.object({ groupId: z.string().trim().min(1).max(100) }),
      example: { groupId: EXAMPLES.groupId },
      answers: {
        200: {
          description: 'Moved.',
          data: z.object({ message: z.string(), domainId: z.string(), groupId: z.string() }),
          example: {
            message: 'example.com has been moved to the group.',
            domainId: EXAMPLES.domainId,
            groupId: EXAMPLES.groupId,
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

function dnsOfDomain(domains: Domains): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/domains/{domainId}/dns-records',
      operationId: 'getDomainDnsRecords',
      summary: 'The DNS records of a domain',
      params,
      answers: {
        200: {
          description: 'What to publish, and the flags.',
          data: recordsOfDomain,
          example: EXAMPLES.records,
        },
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const domain = domains.get(caller.accountId, params.domainId);
        if (isRefusal(domain)) return domain;
        return {
          status: 200,
          data: {
            ...named(domain),
            ...domains.records(domain),
            status: domain.status,
            ...shownFlags(domain),
            altDomainId: domain.alt_domain_id,
            altStatus: domain.alt_status,
            ...shownAltFlags(domain),
          },
        };
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/domains/{domainId}/verify',
      operationId: 'verifyDomain',
      summary: 'Verifies a domain now',
      description:
        'Asks DNS past our caches. A record that DNS did not answer for keeps its last result. At most ten times a minute for a domain.',
      params,
      answers: { 200: { description: 'What was found.', data: verified, example: EXAMPLES.verified } },
      refusals: ['DOMAIN_NOT_FOUND', 'RATE_LIMITED'],
      handle: async ({ caller, params }) => {
        const result = await domains.verify(caller.accountId, params.domainId);
        if (isRefusal(result)) return result;
        const { domain, checks } = result;
        return {
          status: 200,
          data: {
            message: verificationMessage(domain, checks),
            ...named(domain),
            status: domain.status,
            ...shownFlags(domain),
            altStatus: domain.alt_status,
            ...shownAltFlags(domain),
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
      summary: 'Changes the DKIM key',
      description:
        'The old key signs until the record of the new one is seen by a check; keep both records until then. Asking again while a change is under way changes nothing.',
      params,
      answers: { 200: { description: 'Under way.', data: rotated, example: EXAMPLES.rotated } },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const result = await domains.rotateDkim(caller.accountId, params.domainId);
        if (isRefusal(result)) return result;
        const { domain, started } = result;
        const message = started
          ? 'The change of the DKIM key has begun. Publish the first record beside the old one; the old key signs until the new record is seen.'
          : 'A change of the DKIM key is under way already; this is its record.';
        return { status: 200, data: { message, ...named(domain), ...domains.records(domain) } };
      },
    }),
  ];
}

function named(domain: DomainRow): { domain: string; domainId: string } {
  return { domain: domain.name, domainId: domain.domain_id };
}

function trackingMessage(domain: DomainRow, domains: Domains): string {
  const link = domains.records(domain).dnsRecords.find(({ purpose }) => purpose === 'Tracking');
  const host = domain.tracking_domain;
  if (host === null) return `Tracked links use ${link?.name} when it leads here, else the default host.`;
  return `Tracked links use ${host} as soon as it is a CNAME to ${link?.value}.`;
}
