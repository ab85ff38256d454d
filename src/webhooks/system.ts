import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import type { Random } from '../core/random.ts';
import type { Seal } from '../core/seal.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { Writer } from '../store/database/writer.ts';
import type { Reader } from '../store/readers/reads.ts';
import type { MayAdd, Tables } from '../store/tables.ts';
import { createWebhookCaller } from './call.ts';
import { createWebhookSecrets } from './secrets.ts';
import { createWebhookSender, type WebhookSender, type WebhookSenderDeps } from './sender.ts';
import { createWebhooks, type Webhooks } from './service.ts';

export interface WebhookSystemDeps {
  clock: Clock;
  random: Random;
  ids: Ids;
  log: Log;
  tables: Tables;
  reader: Reader;
  writer: Writer;
  seal: Seal;
  resolver: Resolver;
  allowPrivateNetworks(): boolean;
  ownPorts(): ReadonlySet<number>;
  userAgent: string;
  mayAdd: MayAdd;
  observe: NonNullable<WebhookSenderDeps['observe']>;
}

/** Webhook resources and the sender of their deliveries, as the daemon runs them. */
export function createWebhookSystem(deps: WebhookSystemDeps): { webhooks: Webhooks; sender: WebhookSender } {
  const shared = { ...deps, secrets: createWebhookSecrets(deps), caller: createWebhookCaller(deps) };
  const sender = createWebhookSender(shared);
  return {
    sender,
    webhooks: createWebhooks({ ...shared, onChange: sender.changed, nextProbeAt: sender.nextProbeAt }),
  };
}
