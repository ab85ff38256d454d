import * as z from 'zod';
import type { Webhooks } from '../../webhooks/service.ts';
import type { ConsoleAccess } from './access.ts';
import { type ConsoleRoute, consoleRoute } from './console-route.ts';

/** `/console/webhook-health`: how the endpoints of an account respond. The webhooks themselves are in the API. */
export function webhookRoutes({
  access,
  webhooks,
}: {
  access: ConsoleAccess;
  webhooks: Pick<Webhooks, 'health'>;
}): ConsoleRoute[] {
  return [
    consoleRoute('GET /console/webhook-health', {
      operationId: 'getWebhookHealth',
      summary: 'See how webhooks respond',
      access: 'read',
      query: z.object({ webhookId: z.string().max(100).optional() }),
      handle: async ({ caller, query }): Promise<WebhookHealthResponse> => {
        const { accountId } = access.identityOf(caller);
        const found = accountId === null ? [] : await webhooks.health(accountId, query.webhookId);
        return { webhooks: found };
      },
    }),
  ];
}

/** `nextProbeAt`: while its deliveries wait for the endpoint, which is overloaded: time of the next call. */
export type PresentedHealth = Awaited<ReturnType<Webhooks['health']>>[number];

export interface WebhookHealthResponse {
  webhooks: PresentedHealth[];
}
