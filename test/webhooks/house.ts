import { onTestFinished } from 'vitest';
import type { AccountLimitDefaults } from '../../src/accounts/limits.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal, type Refusal } from '../../src/core/refusal.ts';
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
import { enqueue, heldClock, insertAccount, startStore } from '../support/store.ts';

/** The webhooks room over a real database, a DNS server and a held clock; it calls real endpoints. */
export interface Wish {
  allowPrivateNetworks?: boolean;
  /** Real time, for one call. */
  timeoutMs?: number;
  trusted?: string;
  caller?: WebhookCaller;
  limits?: AccountLimitDefaults;
}

/** Calls that get no answer, as those of a process that is killed in the middle. */
export const UNANSWERED: WebhookCaller = {
  call: (_, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(null))),
  close: () => Promise.resolve(),
};

export async function startHouse(wish: Wish = {}) {
  const { allowPrivateNetworks = true, timeoutMs = 5000, trusted } = wish;
  const dns = await startDnsServer();
  const store = startStore(heldClock(), wish.limits);
  const { tables, writer, clock, ids } = store;
  insertAccount(tables, 'acct_two', clock.now());
  const resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: 2000,
    clock,
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
    createWebhookCaller({ resolver, allowPrivateNetworks, timeoutMs, trusted, userAgent: 'Postrider/test' });
  const caller = wish.caller ?? newCaller();
  const senderParts = { clock, random: systemRandom, log, tables, writer, secrets };
  const sender = createWebhookSender({ ...senderParts, caller });
  const recorder = createRecorder({ clock, ids, onWebhookDue: sender.due });
  const webhooks = createWebhooks({
    ...senderParts,
    ids,
    caller,
    allowPrivateNetworks,
    mayAdd: store.limits.mayAdd.webhooks,
    onChange: sender.changed,
  });
  onTestFinished(async () => {
    await sender.stop();
    resolver.close();
    await dns.close();
  });

  /** Records `email_sent` of a new message; resolves after the commit. */
  function sent(columns: Partial<MessageRow> = {}): Promise<MessageRow> {
    return writer.run((all) => {
      const message = enqueue(all, clock.now(), columns);
      recorder.message(all, message, exampleEvent('email_sent'));
      return message;
    });
  }

  /** Several, in one commit. */
  function sentAtOnce(count: number): Promise<void> {
    return writer.run((all) => {
      for (let n = 0; n < count; n++)
        recorder.message(all, enqueue(all, clock.now()), exampleEvent('email_sent'));
    });
  }

  return {
    ...store,
    dns,
    sender,
    webhooks,
    recorder,
    logged,
    sent,
    sentAtOnce,
    /** A webhook that takes everything, of the first account unless told. */
    hook: async (url: string, accountId = 'acct_one') =>
      granted(await webhooks.create(accountId, { url, events: '*' })),
    /** Tells all that can be told at this time of the held clock. */
    tell: async () => {
      await sender.round();
      await sender.idle();
    },
    /** As after a new start of the daemon: the one before is forgotten, with all that it had under way. */
    restarted: () => {
      const next = createWebhookSender({ ...senderParts, caller: newCaller() });
      onTestFinished(() => next.stop());
      return next;
    },
  };
}

export type House = Awaited<ReturnType<typeof startHouse>>;

/** What must not have been refused. */
export function granted<T>(result: T | Refusal): T {
  if (isRefusal(result)) throw new Error(`${result.code}: ${result.message}`);
  return result;
}
