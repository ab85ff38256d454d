import { type Clock, DAY } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Reader } from '../store/readers/reads.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import type { WebhookRow } from '../store/webhooks.ts';
import type { Writer } from '../store/writer.ts';
import type { WebhookCaller } from './call.ts';
import { findWebhook } from './find.ts';
import { changedFields, type WebhookFields, type WebhookWish, webhookName } from './form.ts';
import { createWebhookHistory, type WebhookHistory } from './history.ts';
import { type WebhookSecrets, writtenSecret } from './secrets.ts';
import { fieldsOf, type ShownWebhook, shownWebhook, type WholeWebhook, wholeWebhook } from './shown.ts';
import { createWebhookTester, type WebhookTester } from './tester.ts';

/**
 * Webhooks of accounts: making, reading, changing and deleting them. Whoever asks for another account's
 * webhook gets the same refusal as for one that never was.
 */
export interface WebhooksHouse {
  tables: Tables;
  /** Where lists are read; default: this thread. */
  reader?: Reader;
  writer: Writer;
  clock: Clock;
  ids: Ids;
  log: Log;
  secrets: WebhookSecrets;
  caller: WebhookCaller;
  allowPrivateNetworks: boolean;
  /** The limit on the number of an account's webhooks. */
  mayAdd: MayAdd;
  /** Told after the commit: the sender, where there is one. */
  onChange?: (webhook: number) => void;
}

export interface Webhooks extends WebhookHistory {
  /** Oldest first; those that are off only when asked for. */
  list(accountId: string, options?: { includeInactive?: boolean }): ShownWebhook[];
  get(accountId: string, webhookId: string): WholeWebhook | Refusal;
  create(accountId: string, wish: WebhookWish): Promise<WholeWebhook | Refusal>;
  /** Changes the fields that are given. */
  update(accountId: string, webhookId: string, wish: Partial<WebhookWish>): Promise<WholeWebhook | Refusal>;
  /** With everything that was still to be told. */
  remove(accountId: string, webhookId: string): Promise<ShownWebhook | Refusal>;
  /** A new secret; the old one signs along for a day. */
  rotateSecret(accountId: string, webhookId: string): Promise<WholeWebhook | Refusal>;
  test: WebhookTester;
}

/** How long an old secret signs along, and how many may at once. */
const ROTATION = DAY;
const OLD_SECRETS = 5;

export function createWebhooks(house: WebhooksHouse): Webhooks {
  const { tables, writer, clock, ids, log, secrets, allowPrivateNetworks, onChange } = house;

  function whole(row: WebhookRow): WholeWebhook {
    const [key] = secrets.keys(tables, row, clock.now());
    if (key === undefined) throw new Error(`webhook ${row.webhook_id} has no secret`);
    return wholeWebhook(row, writtenSecret(key));
  }

  /** A unit over a webhook of the account; resolves to it as it is then, after the sender was told. */
  async function change<Result extends WebhookRow | Refusal>(
    accountId: string,
    webhookId: string,
    edit: (all: Tables, row: WebhookRow) => Result,
  ): Promise<Result | Refusal> {
    const changed = await writer.run((all): WebhookRow | Refusal => {
      const row = findWebhook(all, accountId, webhookId);
      return isRefusal(row) ? row : edit(all, row);
    });
    if (!isRefusal(changed)) onChange?.(changed.number);
    return changed as Result | Refusal;
  }

  return {
    list: (accountId, { includeInactive = false } = {}) =>
      tables.webhooks
        .list(accountId)
        .filter((row) => includeInactive || row.is_active === 1)
        .map(shownWebhook),
    get: (accountId, webhookId) => {
      const row = findWebhook(tables, accountId, webhookId);
      return isRefusal(row) ? row : whole(row);
    },
    create: async (accountId, wish) => {
      const fields = newFields(wish, allowPrivateNetworks);
      if (isRefusal(fields)) return fields;
      const made = await writer.run((all): WebhookRow | Refusal => {
        const full = house.mayAdd(all, accountId);
        if (full !== null) return full;
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
        all.webhooks.addSecret(number, secrets.make(row.webhook_id));
        return { ...row, number };
      });
      if (isRefusal(made)) return made;
      log.info({ webhookId: made.webhook_id, accountId }, 'webhook made');
      return whole(made);
    },
    update: async (accountId, webhookId, wish) => {
      const changed = await change(accountId, webhookId, (all, row) => {
        const fields = changedFields(fieldsOf(row), wish, allowPrivateNetworks);
        if (isRefusal(fields)) return fields;
        const anew = fields.url !== row.url || (fields.isActive && row.is_active === 0);
        const next = {
          ...row,
          ...columns(fields),
          off_reason: fields.isActive || row.is_active === 1 ? null : row.off_reason,
          failing_since: anew ? null : row.failing_since,
          updated_at: clock.now(),
        };
        all.webhooks.update(next);
        return next;
      });
      return isRefusal(changed) ? changed : whole(changed);
    },
    remove: async (accountId, webhookId) => {
      const removed = await change(accountId, webhookId, (all, row) => {
        all.webhooks.remove(row.number);
        return row;
      });
      if (isRefusal(removed)) return removed;
      log.info({ webhookId, accountId }, 'webhook deleted');
      return shownWebhook(removed);
    },
    rotateSecret: async (accountId, webhookId) => {
      const rotated = await change(accountId, webhookId, (all, row) => {
        const now = clock.now();
        const old = all.webhooks.secrets(row.number, now).flatMap(({ expires_at: at }) => at ?? []);
        if (old.length >= OLD_SECRETS)
          return refuse(
            'RATE_LIMITED',
            `${old.length} old secrets still sign along; wait until one has had its day`,
            {
              retryAfter: Math.ceil((Math.min(...old) - now) / 1000),
            },
          );
        all.webhooks.retireSecret(row.number, now + ROTATION, now);
        all.webhooks.addSecret(row.number, secrets.make(webhookId));
        const next = { ...row, updated_at: now };
        all.webhooks.update(next);
        return next;
      });
      if (isRefusal(rotated)) return rotated;
      log.info({ webhookId, accountId }, "webhook's secret changed");
      return whole(rotated);
    },
    test: createWebhookTester(house),
    ...createWebhookHistory(house),
  };
}

function newFields(wish: WebhookWish, allowPrivateNetworks: boolean): WebhookFields | Refusal {
  const { description = null, isActive = true } = wish;
  const nothing = { url: '', events: [], name: '', description, isActive };
  const fields = changedFields(nothing, wish, allowPrivateNetworks);
  return isRefusal(fields)
    ? fields
    : { ...fields, name: webhookName(wish.name, fields.description, fields.url) };
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
