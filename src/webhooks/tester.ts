import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { type EventKind, isEventKind } from '../events/event-types.ts';
import type { Tables } from '../store/tables.ts';
import type { CallResult, WebhookCaller } from './call.ts';
import { errorOf } from './outcome.ts';
import { signatureHeaders, type WebhookPayload, webhookPayload } from './payload.ts';
import { findWebhook } from './resource.ts';
import { sampleEvent } from './sample-event.ts';
import type { WebhookSecrets } from './secrets.ts';

/** The result of a test call, which is not stored and counts in no statistics. */
export interface WebhookTestResult {
  webhookId: string;
  /** The endpoint replied 2xx in time. */
  delivered: boolean;
  responseCode?: number;
  /** The first KiB. */
  responseBody?: string;
  error?: string;
  durationMs: number;
  payload: WebhookPayload;
}

/**
 * Calls the endpoint with a signed sample event of this kind (default: the first kind to which the webhook
 * subscribes). Calls disabled webhooks too, so that an account can test a webhook before it enables it.
 */
export type WebhookTester = (
  accountId: string,
  webhookId: string,
  kind: EventKind | undefined,
  signal: AbortSignal,
) => Promise<WebhookTestResult | Refusal>;

export interface WebhookTesterDeps {
  tables: Tables;
  clock: Clock;
  ids: Ids;
  secrets: WebhookSecrets;
  caller: WebhookCaller;
}

/**
 * Refuses an unknown webhook, and a second test of a webhook while one is in progress (`RATE_LIMITED`). Writes nothing;
 * an abort of `signal` is a result with an error.
 */
export function createWebhookTester(deps: WebhookTesterDeps): WebhookTester {
  const { tables, clock, ids, secrets, caller } = deps;
  /** Numbers of the webhooks that are being tested. */
  const running = new Set<number>();

  return async (accountId, webhookId, kind, signal) => {
    const webhook = findWebhook(tables, accountId, webhookId);
    if (isRefusal(webhook)) return webhook;
    if (running.has(webhook.number))
      return refuse('RATE_LIMITED', `A test of webhook ${webhookId} is in progress`, { retryAfter: 1 });
    running.add(webhook.number);
    try {
      const event = sampleEvent(kind ?? firstKind(webhook.events), accountId, { clock, ids });
      const payload = webhookPayload(event);
      const body = JSON.stringify(payload);
      const startedAt = clock.now();
      const headers = signatureHeaders(secrets.keys(tables, webhook, startedAt), {
        id: payload.id,
        body,
        now: startedAt,
      });
      const result = (await caller.call({ accountId, url: webhook.url, headers, body }, signal)) ?? CANCELLED;
      const error = errorOf(result);
      return {
        webhookId,
        delivered: error === null,
        ...(result.kind === 'response' ? { responseCode: result.status, responseBody: result.body } : {}),
        ...(error === null ? {} : { error }),
        durationMs: clock.now() - startedAt,
        payload,
      };
    } finally {
      running.delete(webhook.number);
    }
  };
}

const CANCELLED: CallResult = { kind: 'no-response', reason: 'the test was cancelled' };

function firstKind(events: string): EventKind {
  const kinds: string[] = JSON.parse(events);
  return kinds.find(isEventKind) ?? 'email_delivered';
}
