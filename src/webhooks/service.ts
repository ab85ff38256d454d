import { type Clock, DAY } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Writer } from '../store/database/writer.ts';
import { createLocalReader, type Reader } from '../store/readers/reads.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import type { WebhookRow } from '../store/webhooks.ts';
import type { WebhookCaller } from './call.ts';
import { createWebhookDeliveries, type WebhookDeliveries } from './deliveries.ts';
import { type WebhookHealth, webhookHealth } from './health.ts';
import { changedFields, newFields, type WebhookInput, type WebhookPatch } from './input.ts';
import {
  fieldsOf,
  findWebhook,
  presentWebhook,
  presentWebhookDetail,
  type Webhook,
  type WebhookDetail,
  type WebhookFields,
} from './resource.ts';
import { presentSecret, type WebhookSecrets } from './secrets.ts';
import { createWebhookTester, type WebhookTester } from './tester.ts';

export interface WebhooksDeps {
  tables: Tables;
  /** Reads lists; default: on this thread. */
  reader?: Reader;
  writer: Writer;
  clock: Clock;
  ids: Ids;
  log: Log;
  secrets: WebhookSecrets;
  caller: WebhookCaller;
  allowPrivateNetworks(): boolean;
  /** The limit on the number of an account's webhooks. */
  mayAdd: MayAdd;
  /** Called after a webhook was changed or deleted, with its number. */
  onChange?: (webhook: number) => void;
  nextProbeAt?: (webhook: number) => number | null;
}

/** Webhooks of accounts. A webhook of another account is refused like one that does not exist. */
export interface Webhooks extends WebhookDeliveries {
  /** Oldest first. */
  list(accountId: string, options?: { includeInactive?: boolean }): Webhook[];
  get(accountId: string, webhookId: string): WebhookDetail | Refusal;
  /** How the endpoints of the account respond, or that of one webhook. `nextProbeAt`: see `WebhookSender`. */
  health(accountId: string, webhookId?: string): Promise<(WebhookHealth & { nextProbeAt: number | null })[]>;
  create(accountId: string, input: WebhookInput): Promise<WebhookDetail | Refusal>;
  update(accountId: string, webhookId: string, patch: WebhookPatch): Promise<WebhookDetail | Refusal>;
  /** Deletes a webhook with its deliveries. */
  remove(accountId: string, webhookId: string): Promise<Webhook | Refusal>;
  /** Creates a new secret; calls are also signed with the old one for a day. */
  rotateSecret(accountId: string, webhookId: string): Promise<WebhookDetail | Refusal>;
  test: WebhookTester;
}

/** How long an old secret still signs. */
const OLD_SECRET_MS = DAY;
const MAX_OLD_SECRETS = 5;

/**
 * A webhook gets its first secret in the unit of work that creates it. `update` checks the URL again; a changed URL,
 * and enabling the webhook, reset `failingSince`. `onChange` is not called for a new webhook.
 */
export function createWebhooks(deps: WebhooksDeps): Webhooks {
  const { tables, writer, clock, ids, log, secrets, allowPrivateNetworks, onChange } = deps;
  const reader = deps.reader ?? createLocalReader(tables);

  function present(row: WebhookRow): WebhookDetail {
    const [key] = secrets.keys(tables, row, clock.now());
    if (key === undefined) throw new Error(`Webhook ${row.webhook_id} has no secret`);
    return presentWebhookDetail(row, presentSecret(key));
  }

  /** Changes a webhook of the account in a unit of work; resolves with the row that `edit` returned. */
  async function change(
    accountId: string,
    webhookId: string,
    edit: (all: Tables, row: WebhookRow) => WebhookRow | Refusal,
  ): Promise<WebhookRow | Refusal> {
    const changed = await writer.run((all): WebhookRow | Refusal => {
      const row = findWebhook(all, accountId, webhookId);
      return isRefusal(row) ? row : edit(all, row);
    }, accountId);
    if (!isRefusal(changed)) onChange?.(changed.number);
    return changed;
  }

  return {
    list: (accountId, { includeInactive = false } = {}) =>
      tables.webhooks
        .list(accountId)
        .filter((row) => includeInactive || row.is_active === 1)
        .map(presentWebhook),
    get: (accountId, webhookId) => {
      const row = findWebhook(tables, accountId, webhookId);
      return isRefusal(row) ? row : present(row);
    },
    health: async (accountId, webhookId) => {
      const found = await reader.query(accountId, webhookHealth, { accountId, webhookId, now: clock.now() });
      return found.map(({ number, ...health }) => ({
        ...health,
        nextProbeAt: deps.nextProbeAt?.(number) ?? null,
      }));
    },
    create: async (accountId, input) => {
      const fields = newFields(input, allowPrivateNetworks());
      if (isRefusal(fields)) return fields;
      const created = await writer.run((all): WebhookRow | Refusal => {
        const limit = deps.mayAdd(all, accountId);
        if (limit !== null) return limit;
        const now = clock.now();
        const row = {
          ...columns(fields),
          webhook_id: ids.make('webhook'),
          account_id: accountId,
          off_reason: null,
          failing_since: null,
          created_at: now,
          updated_at: now,
        };
        const number = all.webhooks.insert(row);
        all.webhooks.addSecret(number, secrets.create(row.webhook_id));
        return { ...row, number };
      }, accountId);
      if (isRefusal(created)) return created;
      log.info({ webhookId: created.webhook_id, accountId }, 'webhook created');
      return present(created);
    },
    update: async (accountId, webhookId, patch) => {
      const changed = await change(accountId, webhookId, (all, row) => {
        const fields = changedFields(fieldsOf(row), patch, allowPrivateNetworks());
        if (isRefusal(fields)) return fields;
        const isReset = fields.url !== row.url || (fields.isActive && row.is_active === 0);
        const next = {
          ...row,
          ...columns(fields),
          off_reason: fields.isActive || row.is_active === 1 ? null : row.off_reason,
          failing_since: isReset ? null : row.failing_since,
          updated_at: clock.now(),
        };
        all.webhooks.update(next);
        return next;
      });
      return isRefusal(changed) ? changed : present(changed);
    },
    remove: async (accountId, webhookId) => {
      const removed = await change(accountId, webhookId, (all, row) => {
        all.webhooks.remove(row.number);
        return row;
      });
      if (isRefusal(removed)) return removed;
      log.info({ webhookId, accountId }, 'webhook deleted');
      return presentWebhook(removed);
    },
    rotateSecret: async (accountId, webhookId) => {
      const rotated = await change(accountId, webhookId, (all, row) => {
        const now = clock.now();
        const expiries = all.webhooks.secrets(row.number, now).flatMap(({ expires_at: at }) => at ?? []);
        if (expiries.length >= MAX_OLD_SECRETS)
          return refuse(
            'RATE_LIMITED',
            `${expiries.length} old secrets of webhook ${webhookId} are still valid; wait until one has expired`,
            { retryAfter: Math.ceil((Math.min(...expiries) - now) / 1000) },
          );
        all.webhooks.retireSecret(row.number, now + OLD_SECRET_MS, now);
        all.webhooks.addSecret(row.number, secrets.create(webhookId));
        const next = { ...row, updated_at: now };
        all.webhooks.update(next);
        return next;
      });
      if (isRefusal(rotated)) return rotated;
      log.info({ webhookId, accountId }, 'webhook secret rotated');
      return present(rotated);
    },
    test: createWebhookTester(deps),
    ...createWebhookDeliveries(deps),
  };
}

function columns({ url, events, name, description, isActive }: WebhookFields) {
  return {
    url,
    events: JSON.stringify(events),
    name,
    description,
    is_active: isActive ? (1 as const) : (0 as const),
  };
}
