import * as z from 'zod';
import { iso } from '../../core/clock.ts';
import type { CallCounts, WebhookHealth } from '../../webhooks/health.ts';
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
        return { webhooks: found.map(present) };
      },
    }),
  ];
}

function present({ last, since, nextProbeAt, ...health }: FoundHealth): PresentedHealth {
  return {
    ...health,
    last: last === null ? null : { ...last, at: iso(last.at) },
    since: iso(since),
    nextProbeAt: nextProbeAt === null ? null : iso(nextProbeAt),
  };
}

type FoundHealth = WebhookHealth & { nextProbeAt: number | null };

/** As in `WebhookHealth`; times are ISO 8601. */
export interface PresentedHealth extends CallCounts {
  webhookId: string;
  last: (Omit<NonNullable<WebhookHealth['last']>, 'at'> & { at: string }) | null;
  since: string;
  parts: CallCounts[];
  waiting: number;
  /** While its deliveries wait for the endpoint, which is overloaded: time of the next call. */
  nextProbeAt: string | null;
}

export interface WebhookHealthResponse {
  webhooks: PresentedHealth[];
}
