import { expect } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { inTurn } from '../support/answers.ts';
import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'fails a deferred message when another message to the same recipient bounces and suppresses it',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later', '550 5.1.1 No such user') } } },
  messages: {
    ada: { attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')], status: 'bounced' },
  },
  suppressed: ['ada'],
  play: async (run) => {
    const first = await run.send('ada');
    await run.settle();
    await run.send('ada');
    await run.settle();
    await run.env.advance(10 * MINUTE);
    await eventually('the first message to fail', async () => (await run.message(first)).status === 'failed');
    expect((await run.message(first)).timeline.at(-1)).toMatchObject({ event: 'email_suppressed' });
    expect(run.sink('mx').sessions).toHaveLength(1);
  },
} satisfies Scenario;
