import { expect } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { many } from '../support/many.ts';
import type { ScenarioRun } from '../support/run.ts';
import type { Scenario } from '../support/scenario.ts';

const BLOCKED =
  "550 5.7.1 Unfortunately, messages from [192.0.2.25] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3140).";

const refused = (run: ScenarioRun) =>
  run.sink('mx').sessions.flatMap(({ commands }) => commands.filter((line) => line.startsWith('MAIL')))
    .length;

const REFUSED = deferred('550 5.7.1', 'reputation-block', undefined, 'mx mail 550');

export default {
  title:
    'suspends a site that blocks the only source address, probes it with one message after longer waits, and loses no mail',
  settings: ({ domain }) => ({
    'delivery.shaping': [{ match: domain, connections: 1, messagesPerConnection: 1 }],
  }),
  hosts: { mx: { script: { mail: BLOCKED } } },
  messages: {
    // The oldest one is the first probe, too.
    early0: { attempts: [REFUSED, REFUSED, delivered('mx dot 250')], status: 'delivered' },
    early1: { attempts: [REFUSED, delivered('mx dot 250')], status: 'delivered' },
    early2: { attempts: [REFUSED, delivered('mx dot 250')], status: 'delivered' },
    ...many(12, 'late'),
  },
  play: async (run) => {
    for (const user of ['early0', 'early1', 'early2']) {
      await run.send(user);
      await run.settle();
    }
    expect(refused(run)).toBe(3);
    for (let n = 0; n < 12; n++) await run.send(`late${n}`);
    await run.settle();
    expect(refused(run)).toBe(3);
    const { data } = await run.env.api.get<{ blockedAt: string | null }>(
      `/web-setup/queue/destinations/${run.domain}`,
    );
    expect(data.blockedAt).not.toBeNull();
    const { checks } = await readiness(run);
    expect(checks.find(({ check }) => check === 'queue')).toMatchObject({
      ok: true,
      details: { blocked: [{ receiver: run.domain, reply: expect.stringContaining('S3140') }] },
    });
    const events = await run.env.api.get<{ events: { event: string; receiver?: string }[] }>(
      '/web-setup/events?event=source_address_blocked&limit=10',
    );
    expect(events.data.events.map(({ receiver }) => receiver)).toContain(run.domain);
    // The first probe is refused, the next one is due after twice the wait.
    await run.env.advance(31 * MINUTE);
    await run.settle();
    expect(refused(run)).toBe(4);
    await run.env.advance(31 * MINUTE);
    await run.settle();
    expect(refused(run)).toBe(4);
    run.sink('mx').program({ script: {} });
    await run.env.advance(30 * MINUTE);
  },
} satisfies Scenario;

async function readiness({ env }: ScenarioRun) {
  const response = await fetch(`${env.daemon.url}/readyz`);
  const body = (await response.json()) as {
    data: { checks: { check: string; ok: boolean; details?: object }[] };
  };
  return body.data;
}
