import { expect } from 'vitest';
import { deferred } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'fails a transactional message after two days, with the last reply, and marks the last attempt',
  settings: () => ({ 'delivery.retry.first': '20h', 'delivery.retry.max': '20h' }),
  hosts: { mx: { script: { rcpt: '452 4.2.2 Mailbox full' } } },
  messages: {
    ada: {
      attempts: Array.from({ length: 3 }, () =>
        deferred('452 4.2.2', 'mailbox-full', undefined, 'mx rcpt 452'),
      ),
      status: 'failed',
      lastEvent: {
        reason: 'expired',
        attempts: 3,
        classification: 'mailbox-full',
        lastDiagnostic: 'Mailbox full',
      },
    },
  },
  verify: async (run) => {
    const { timeline } = await run.message('ada');
    const attempts = timeline.filter(({ type }) => type === 'attempt');
    expect(attempts.map(({ lastAttempt }) => lastAttempt)).toEqual([undefined, undefined, true]);
  },
} satisfies Scenario;
