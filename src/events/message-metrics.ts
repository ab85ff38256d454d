import { Counter, type Registry } from 'prom-client';
import { createTopLabels } from '../core/top-labels.ts';
import { BOUNCE_CLASSES } from '../mail/classify/rules.ts';
import { COUNTED_OUTCOMES, type CountedMessages } from '../store/messages/hourly-counts.ts';

/** Accounts and providers with separate time series: those with the most messages. */
const MAX_ACCOUNTS = 50;
const MAX_PROVIDERS = 30;

/**
 * Registers the counters of messages; returns the function that adds the counts of a commit, to be called when the commit
 * is on disk. The table of `postrider stats` has the same counts.
 */
export function registerMessageCounters(
  registry: Registry,
  now: () => number = () => performance.now(),
): (counted: readonly CountedMessages[]) => void {
  const registers = [registry];
  const messages = new Counter({
    name: 'postrider_messages_total',
    help: 'Messages by stream (tx, mk), outcome, and class of a bounce, a deferral or a failure. `deferred` counts attempts; `opened` and `clicked` count the first by a person.',
    labelNames: ['stream', 'outcome', 'class'],
    registers,
  });
  // Prometheus computes rates from differences: the first increment counts only if the series existed before.
  for (const stream of ['tx', 'mk']) {
    for (const outcome of COUNTED_OUTCOMES) messages.inc({ stream, outcome, class: '' }, 0);
    for (const outcome of ['deferred', 'bounced'])
      for (const name of BOUNCE_CLASSES) messages.inc({ stream, outcome, class: name }, 0);
  }
  const ofAccounts = new Counter({
    name: 'postrider_account_messages_total',
    help: `Messages by account and outcome: the ${MAX_ACCOUNTS} accounts with the most messages, the rest as \`other\`.`,
    labelNames: ['account', 'outcome'],
    registers,
  });
  const ofProviders = new Counter({
    name: 'postrider_provider_messages_total',
    help: `Messages by mailbox provider or recipient domain and outcome: the ${MAX_PROVIDERS} with the most messages, the rest as \`other\`.`,
    labelNames: ['provider', 'outcome'],
    registers,
  });
  const accounts = createTopLabels({
    max: MAX_ACCOUNTS,
    now,
    onDropped: (account) => {
      for (const outcome of COUNTED_OUTCOMES) ofAccounts.remove({ account, outcome });
    },
  });
  const providers = createTopLabels({
    max: MAX_PROVIDERS,
    now,
    onDropped: (provider) => {
      for (const outcome of COUNTED_OUTCOMES) ofProviders.remove({ provider, outcome });
    },
  });
  return (counted) => {
    for (const { stream, outcome, outcomeClass, accountId, provider, messages: count } of counted) {
      messages.inc({ stream, outcome, class: outcomeClass }, count);
      ofAccounts.inc({ account: accounts.labelOf(accountId, count), outcome }, count);
      ofProviders.inc({ provider: providers.labelOf(provider, count), outcome }, count);
    }
  };
}
