import * as z from 'zod';
import { iso } from '../../../core/clock.ts';
import { isRefusal } from '../../../core/refusal.ts';
import { dmarcHistory } from '../../../domains/reports.ts';
import type { Domains } from '../../../domains/service.ts';
import type { Reader } from '../../../store/readers/reads.ts';
import { type Route, type RouteDescription, route } from '../../route.ts';
import { DOMAIN_EXAMPLES, dmarcPathSchema, lastCheck } from './domain-schemas.ts';

export interface DomainCheckDeps {
  domains: Pick<Domains, 'get' | 'lastCheck' | 'dmarcPath'>;
  reader: Reader;
}

const COMMON = { tag: 'Domains', scope: 'setup', method: 'GET' } satisfies Partial<RouteDescription>;
const params = z.object({ domainId: z.string() });
const NO_HISTORY = { firstAt: null, lastAt: null, lastFailureAt: null, unverified: 0 };

const timeOf = (at: number | null) => (at === null ? null : iso(at));

/** What the last check of a domain found, and its way to a strict DMARC policy. */
export function domainCheckRoutes({ domains, reader }: DomainCheckDeps): Route[] {
  return [
    route({
      ...COMMON,
      path: '/web-setup/domains/{domainId}/last-check',
      operationId: 'getDomainLastCheck',
      summary: 'Get the last check of a domain',
      description:
        'Each record next to what the last check found, without a new lookup, and the DKIM keys. Recommended records are looked up only when a verification is requested.',
      params,
      responses: {
        200: { description: 'The last check.', data: lastCheck, example: DOMAIN_EXAMPLES.lastCheck },
      },
      refusals: ['DOMAIN_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const domain = domains.get(caller.accountId, params.domainId);
        if (isRefusal(domain)) return domain;
        const { checkedAt, ...rest } = domains.lastCheck(domain);
        return {
          status: 200,
          data: {
            domain: domain.name,
            domainId: domain.domain_id,
            status: domain.status,
            useCase: domain.use_case,
            trackingDomain: domain.tracking_domain,
            checkedAt: timeOf(checkedAt),
            ...rest,
          },
        };
      },
    }),
    route({
      ...COMMON,
      path: '/web-setup/domains/{domainId}/dmarc-path',
      operationId: 'getDmarcPath',
      summary: 'Get the next step of the DMARC policy',
      description:
        'The policy in DNS now, and the record of the next stricter one: `p=none`, `p=quarantine`, `p=reject`. Two weeks of reports without unauthenticated mail permit a step; only reports that their organization has signed (`verified`) count. Before the DKIM record is verified, reports are not considered.',
      params,
      responses: {
        200: {
          description: 'The policy and the next step.',
          data: dmarcPathSchema,
          example: DOMAIN_EXAMPLES.dmarcPath,
        },
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
          status: 200,
          data: {
            domain: domain.name,
            domainId: domain.domain_id,
            ...path,
            firstReportAt: timeOf(history.firstAt),
            lastReportAt: timeOf(history.lastAt),
            lastFailureAt: timeOf(history.lastFailureAt),
            next: next === null ? null : { ...next, readyAt: timeOf(next.readyAt) },
          },
        };
      },
    }),
  ];
}
