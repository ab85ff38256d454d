import { z } from 'zod';
import type { Domains } from '../../domains/service.ts';
import { type Route, route } from '../route.ts';

/** `/web-setup/use-cases`: what a domain can be registered for here. */
export function useCaseRoutes({ domains }: { domains: Domains }): Route[] {
  return [
    route({
      method: 'GET',
      path: '/web-setup/use-cases',
      operationId: 'listUseCases',
      tag: 'Domains',
      summary: 'Use cases',
      description: 'Two for every region. `id` is the `useCaseId` of a registration.',
      scope: 'setup',
      answers: {
        200: {
          description: 'All use cases.',
          data: z.object({ useCases: z.array(useCase), message: z.string() }),
          example: EXAMPLE,
        },
      },
      refusals: [],
      handle: ({ caller }) => {
        const useCases = domains.useCases(caller.accountId);
        const ready = useCases.filter(({ canSendEmail }) => canSendEmail).length;
        return {
          status: 200,
          data: { useCases, message: `${useCases.length} use cases, ${ready} with a domain that may send.` },
        };
      },
    }),
  ];
}

const useCase = z.object({
  id: z.string().describe('`<use case>-<region code>`.'),
  useCase: z.enum(['tx', 'mk']),
  useCaseName: z.string(),
  description: z.string(),
  icon: z.string(),
  region: z.object({ code: z.string(), name: z.string() }),
  canSendEmail: z.boolean().describe('Whether the account has a verified domain for it.'),
});

const EXAMPLE = {
  useCases: [
    {
      id: 'tx-local',
      useCase: 'tx',
      useCaseName: 'Transactional',
      description:
        'Messages that one person awaits: password resets, order confirmations, invoices, system notifications.',
      icon: '🔔',
      region: { code: 'local', name: 'This server' },
      canSendEmail: true,
    },
  ],
  message: '1 use cases, 1 with a domain that may send.',
};
