import { Counter } from 'prom-client';
import type { AccountLimits } from '../accounts/limits.ts';
import { createStatusFollower } from '../audience/standing.ts';
import { programVersion } from '../config/version.ts';
import type { Resolver } from '../dns/resolver.ts';
import { createRecorder } from '../events/record.ts';
import { createWebhookCaller } from '../webhooks/call.ts';
import { mayCallPrivateNetworks, ownPorts } from '../webhooks/private-networks.ts';
import { createWebhookSecrets } from '../webhooks/secrets.ts';
import { createWebhookSender } from '../webhooks/sender.ts';
import { createWebhooks } from '../webhooks/service.ts';
import type { DaemonBase } from './storage.ts';

/** The recorder of events and the webhooks, which receive them. */
export type DaemonEvents = ReturnType<typeof createEvents>;

/** Creates the webhooks and the recorder. The first calls of webhooks are made after `webhookSender.start`. */
export function createEvents(
  base: DaemonBase,
  { resolver, limits }: { resolver: Resolver; limits: AccountLimits },
) {
  const { config, clock, ids, registry, tables, onStop } = base;
  const webhookCalls = new Counter({
    name: 'postrider_webhook_calls_total',
    help: 'Webhook calls by outcome.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  const allowPrivateNetworks = () => mayCallPrivateNetworks(config, tables);
  const secrets = createWebhookSecrets(base);
  const caller = createWebhookCaller({
    resolver,
    allowPrivateNetworks,
    ownPorts: () => ownPorts(config),
    userAgent: `Postrider/${programVersion()}`,
  });
  const sender = createWebhookSender(base, {
    secrets,
    caller,
    observe: (outcome) => webhookCalls.inc({ outcome }),
  });
  const mayAdd = limits.mayAdd.webhooks;
  const webhooks = createWebhooks(base, { secrets, caller, allowPrivateNetworks, mayAdd, sender });
  onStop(() => sender.stop());
  const onSuppressionChange = createStatusFollower(clock);
  const recorder = createRecorder(
    { clock, ids },
    {
      onSuppressionChange,
      onWebhookDue: sender.due,
      operatorAccounts: (tx) => {
        const { operatorAccounts: configured } = config.webhooks;
        if (configured.length > 0) return configured.filter((id) => tx.accounts.get(id) !== null);
        const accounts = tx.accounts.list().map(({ account_id }) => account_id);
        return accounts.length === 1 ? accounts : [];
      },
    },
  );
  return { webhooks, webhookSender: sender, recorder, onSuppressionChange };
}
