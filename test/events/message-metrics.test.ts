import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { registerMessageCounters } from '../../src/events/message-metrics.ts';
import { BOUNCE_CLASSES } from '../../src/mail/classify/rules.ts';

it('has the series of every class before the first message, so that a first burst is an increase', async () => {
  const registry = new Registry();
  registerMessageCounters(registry);
  const text = await registry.metrics();
  for (const stream of ['tx', 'mk'])
    for (const outcome of ['deferred', 'bounced'])
      for (const name of BOUNCE_CLASSES)
        expect(text).toContain(
          `postrider_messages_total{stream="${stream}",outcome="${outcome}",class="${name}"} 0`,
        );
});
