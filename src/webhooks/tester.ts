import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { type EventKind, isEventKind } from '../events/event-types.ts';
import type { Tables } from '../store/tables.ts';
import type { WebhookCaller } from './call.ts';
import { findWebhook } from './find.ts';
import { errorOf } from './outcome.ts';
import { type WebhookPayload, webhookPayload } from './payload.ts';
import { sampleEvent } from './sample-event.ts';
import { signatureHeaders, type WebhookSecrets } from './secrets.ts';

/** What came of a test call. It is kept nowhere and counts for nothing. */
export interface TestResult {
  webhookId: string;
  /** The endpoint answered 2xx in time. */
  delivered: boolean;
  responseCode?: number;
  /** Its first 1 KiB. */
  responseBody?: string;
  error?: string;
  durationMs: number;
  /** What was sent. */
  payload: WebhookPayload;
}

/**
 * Calls the endpoint now with a sample event of this kind (default: the first that the webhook takes), signed
 * as a real one; also when the webhook is off, since that is how one finds out whether to turn it on.
 */
export type WebhookTester = (
  accountId: string,
  webhookId: string,
  kind: EventKind | undefined,
  signal: AbortSignal,
) => Promise<TestResult | Refusal>;

interface TesterSettings {
  tables: Tables;
  clock: Clock;
  ids: Ids;
  secrets: WebhookSecrets;
  caller: WebhookCaller;
}

export function createWebhookTester(settings: TesterSettings): WebhookTester {
  const { tables, clock, ids, secrets, caller } = settings;
  const underTest = new Set<number>();

  return async (accountId, webhookId, kind, signal) => {
    const webhook = findWebhook(tables, accountId, webhookId);
    if (isRefusal(webhook)) return webhook;
    if (underTest.has(webhook.number))
      return refuse('RATE_LIMITED', 'a test of this webhook is under way', { retryAfter: 1 });
    underTest.add(webhook.number);
    try {
      const payload = webhookPayload(
        sampleEvent(kind ?? firstKind(webhook.events), accountId, { clock, ids }),
      );
      const body = JSON.stringify(payload);
      const startedAt = clock.now();
      const headers = signatureHeaders(secrets.keys(tables, webhook, startedAt), {
        id: payload.id,
        body,
        now: startedAt,
      });
      const result = (await caller.call({ url: webhook.url, headers, body }, signal)) ?? CALLED_OFF;
      const error = errorOf(result);
      return {
        webhookId,
        delivered: error === null,
        ...(result.kind === 'answered' ? { responseCode: result.status, responseBody: result.body } : {}),
        ...(error === null ? {} : { error }),
        durationMs: clock.now() - startedAt,
        payload,
      };
    } finally {
      underTest.delete(webhook.number);
    }
  };
}

const CALLED_OFF = { kind: 'unanswered', why: 'the test was called off' } as const;

function firstKind(events: string): EventKind {
  const kinds: string[] = JSON.parse(events);
  return kinds.find(isEventKind) ?? 'email_delivered';
}
