import { onTestFinished } from 'vitest';
import type { AccountLimitDefaults } from '../../src/accounts/limits.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createSeal } from '../../src/core/seal.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import { createRecorder } from '../../src/events/record.ts';
import type { MessageRow } from '../../src/store/messages/messages.ts';
import { createWebhookCaller, type WebhookCaller } from '../../src/webhooks/call.ts';
import { createWebhookSecrets } from '../../src/webhooks/secrets.ts';
import { createWebhookSender } from '../../src/webhooks/sender.ts';
import { createWebhooks } from '../../src/webhooks/service.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { exampleEvent } from '../support/events.ts';
import { granted } from '../support/refusal.ts';
import { enqueue, heldClock, insertAccount, startStore } from '../support/store.ts';

export interface WebhookEnvOptions {
  allowPrivateNetworks?: boolean;
  /** The timeout of one call, in real time. */
  timeoutMs?: number;
  trusted?: string;
  caller?: WebhookCaller;
  limits?: AccountLimitDefaults;
}

/** Calls that get no response, as those of a process that is killed during a call. */
export const NO_RESPONSE: WebhookCaller = {
  call: (_, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(null))),
  close: () => Promise.resolve(),
};

/** Starts webhooks over a real database, a DNS server and a held clock; calls reach real endpoints. */
export async function startWebhooks(options: WebhookEnvOptions = {}) {
  const { allowPrivateNetworks = true, timeoutMs = 5000, trusted } = options;
  const dns = await startDnsServer();
  const store = startStore(heldClock(), options.limits);
  const { tables, writer, clock, ids } = store;
  insertAccount(tables, 'acct_two', clock.now());
  const resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: 2000,
    monotonic: clock,
    random: systemRandom,
  });
  const logged: { level: string; msg: string; [field: string]: unknown }[] = [];
  const log = createLog(
    { level: 'debug', hashAddresses: false },
    { write: (line) => logged.push(JSON.parse(line)) },
  );
  const secrets = createWebhookSecrets({
    seal: createSeal(Buffer.alloc(32, 7), systemRandom),
    random: systemRandom,
  });
  const newCaller = () =>
    createWebhookCaller({
      resolver,
      allowPrivateNetworks: () => allowPrivateNetworks,
      timeoutMs,
      trusted,
      userAgent: 'Postrider/test',
    });
  const caller = options.caller ?? newCaller();
  const shared = { clock, random: systemRandom, log, tables, writer, secrets };
  const sender = createWebhookSender(shared, { ...shared, caller });
  const recorder = createRecorder({ clock, ids }, { onWebhookDue: sender.due });
  const webhooks = createWebhooks(
    { ...store, log, random: systemRandom },
    {
      secrets,
      caller,
      allowPrivateNetworks: () => allowPrivateNetworks,
      mayAdd: store.limits.mayAdd.webhooks,
      sender,
    },
  );
  onTestFinished(async () => {
    await sender.stop();
    resolver.close();
    await dns.close();
  });

  /** Records `email_sent` of a new message; resolves after the commit. */
  function sent(columns: Partial<MessageRow> = {}): Promise<MessageRow> {
    return writer.run((tx) => {
      const message = enqueue(tx, clock.now(), columns);
      recorder.message(tx, message, exampleEvent('email_sent'));
      return message;
    });
  }

  /** Records several in one commit. */
  function sentTogether(count: number): Promise<MessageRow[]> {
    return writer.run((tx) =>
      Array.from({ length: count }, () => {
        const message = enqueue(tx, clock.now());
        recorder.message(tx, message, exampleEvent('email_sent'));
        return message;
      }),
    );
  }

  return {
    ...store,
    dns,
    sender,
    webhooks,
    recorder,
    logged,
    sent,
    sentTogether,
    /** Creates a webhook that subscribes to all events. */
    hook: async (url: string, accountId = 'acct_one') =>
      granted(await webhooks.create(accountId, { url, events: '*' })),
    /** Sends all deliveries that are due at this time of the held clock. */
    sendDue: async () => {
      await sender.round();
      await sender.idle();
    },
    /** A second sender, as after a restart of the daemon: calls in progress of the first are unknown to it. */
    restarted: () => {
      const next = createWebhookSender(shared, { ...shared, caller: newCaller() });
      onTestFinished(() => next.stop());
      return next;
    },
  };
}

export type WebhookEnv = Awaited<ReturnType<typeof startWebhooks>>;
