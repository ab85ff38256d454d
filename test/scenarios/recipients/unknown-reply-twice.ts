import { expect } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'suppresses a recipient that is rejected with an unclassified 550 on two days',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: { mx: { script: { rcpt: '550 Nope' } } },
  messages: {
    ada: {
      attempts: [bounced('550', 'unclassified', 'mx rcpt 550')],
      status: 'bounced',
      lastEvent: { suppressed: true },
    },
  },
  suppressed: ['ada'],
  play: async (run) => {
    const first = await run.send('ada');
    await run.settle();
    expect((await run.message(first)).timeline.at(-1)).toMatchObject({
      event: 'email_bounced',
      suppressed: false,
    });
    await run.env.advance(DAY);
    await run.send('ada');
  },
} satisfies Scenario;
