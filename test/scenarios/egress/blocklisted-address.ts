import { expect } from 'vitest';
import { HOUR, MINUTE } from '../../../src/core/clock.ts';
import type { SinkSession } from '../../support/smtp-sink-session.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { many } from '../support/many.ts';
import type { Scenario } from '../support/scenario.ts';
import { addressSettings, NEW_ADDRESS, sourcesAt, WARM, WARM_ADDRESS } from '../support/source-addresses.ts';

const LISTED = `550 5.7.1 Service unavailable, Client host [${NEW_ADDRESS}] blocked using Spamhaus`;
const refuse = (session: SinkSession) => (session.remoteAddress === NEW_ADDRESS ? LISTED : undefined);

export default {
  title:
    'avoids a source address that a provider has blocklisted, probes it, and uses it again when mail is accepted',
  settings: ({ domain }) => addressSettings(domain, [{ name: 'listed', address: NEW_ADDRESS }]),
  hosts: { mx: { script: { mail: refuse } } },
  messages: {
    // Refused from the listed address, and retried from the other one.
    first: {
      attempts: [
        deferred('550 5.7.1', 'reputation-block', undefined, 'mx mail 550'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
    ...many(6, 'during'),
    ...many(8, 'after'),
  },
  play: async (run) => {
    const users = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}${n}`);
    await run.configure(addressSettings(run.domain, [{ name: 'listed', address: NEW_ADDRESS }, WARM]));
    // The name of the site decides that the first connection is from the listed address.
    await run.send('first');
    await run.settle();
    await run.env.advance(6 * MINUTE);
    await run.settle();
    for (const user of users('during', 6)) await run.send(user);
    await run.settle();
    expect(sourcesAt(run)).toEqual({ [WARM_ADDRESS]: 7 });
    run.sink('mx').program({ script: {} });
    await run.env.advance(HOUR);
    for (const user of users('after', 8)) {
      await run.send(user);
      await run.settle();
    }
    expect(sourcesAt(run)[NEW_ADDRESS] ?? 0).toBeGreaterThanOrEqual(3);
    const metrics = await (await fetch(`${run.env.daemon.url}/metrics`)).text();
    expect(metrics).not.toContain('postrider_egress_problems{entry="listed"');
  },
} satisfies Scenario;
