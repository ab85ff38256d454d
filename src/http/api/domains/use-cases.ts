import * as z from 'zod';
import { isRefusal } from '../../../core/refusal.ts';
import type { Domains } from '../../../domains/service.ts';
import { type Route, route } from '../../route.ts';
import { pageEndFields, pageOfAll, pagingWide } from '../paging.ts';

/** `/web-setup/use-cases`: the use cases for which a domain can be registered. */
export function useCaseRoutes({ domains }: { domains: Domains }): Route[] {
  return [
    route({
      method: 'GET',
      path: '/web-setup/use-cases',
      operationId: 'listUseCases',
      tag: 'Domains',
      summary: 'List use cases',
      description: 'Two for every region. `id` is the `useCaseId` of a domain registration.',
      scope: 'setup',
      query: z.object(pagingWide),
      responses: {
        200: {
          description: 'A page of use cases.',
          data: z.object({
            useCases: z.array(useCase),
            message: z.string(),
            nextKey: pageEndFields.nextKey,
          }),
          example: EXAMPLE,
        },
      },
      refusals: [],
      handle: ({ caller, query }) => {
        const useCases = domains.useCases(caller.accountId);
        const ready = useCases.filter(({ canSendEmail }) => canSendEmail).length;
        const page = pageOfAll('use-cases', useCases, query, ({ id }) => id);
        if (isRefusal(page)) return page;
        const { count: _, ...end } = page.end;
        const message = `${useCases.length} use cases, ${ready} with a verified domain.`;
        return { status: 200, data: { useCases: page.rows, message, ...end } };
      },
    }),
  ];
}

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

const EXAMPLE = {
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
