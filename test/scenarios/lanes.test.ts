import { expect } from 'vitest';
import { registerScenarios } from './support/register.ts';
import {
  CHANGES_LANE,
  LANE_SETTINGS,
  LISTING,
  SECONDARY_ADDRESS,
  toPrimary,
} from './support/secondary-lane.ts';

registerScenarios(
  'lanes',
  {
    capped: {
      title: 'bounces mail above the limit of the secondary lane, without suppressing the recipient',
      settings: () => ({ secondary: { type: 'builtin', pool: 'secondary', share: 1, perHour: 1 } }),
      hosts: { mx: { script: { rcpt: toPrimary(LISTING) } } },
      messages: {
        ada: CHANGES_LANE,
        bob: {
          attempts: [{ reply: '554 5.7.1', action: 'bounce', sessions: ['mx rcpt 554'] }],
          status: 'bounced',
          lastEvent: { suppressed: false },
        },
      },
      play: async (run) => {
        await run.send('ada');
        await run.finish();
        await run.send('bob');
      },
    },
    'lane-content-refused': {
      title: 'does not send a message that is refused because of its content over the secondary lane',
      hosts: { mx: { script: { rcpt: toPrimary('554 5.7.1 Message content rejected as spam') } } },
      messages: {
        ada: {
          attempts: [{ reply: '554 5.7.1', action: 'bounce', sessions: ['mx rcpt 554'] }],
          status: 'bounced',
          events: ['email_sent', 'email_rejected'],
        },
      },
    },
    'lane-dmarc-refused': {
      title: 'does not send a message that fails DMARC over the secondary lane',
      hosts: {
        mx: { script: { rcpt: toPrimary('550 5.7.1 Email rejected per DMARC policy for kunde.example') } },
      },
      messages: {
        ada: {
          attempts: [{ reply: '550 5.7.1', action: 'bounce', sessions: ['mx rcpt 550'] }],
          status: 'bounced',
          lastEvent: { suppressed: false },
        },
      },
    },
    'lane-user-unknown': {
      title: 'does not send a message to an unknown user over the secondary lane',
      hosts: { mx: { script: { rcpt: toPrimary('550 5.1.1 No such user') } } },
      messages: {
        ada: {
          attempts: [{ reply: '550 5.1.1', action: 'bounce', sessions: ['mx rcpt 550'] }],
          status: 'bounced',
          lastEvent: { suppressed: true },
        },
      },
      suppressed: ['ada'],
    },
    'listed-address': {
      title:
        'sends mail once over the secondary lane when our address is blocklisted, and records the change',
      hosts: { mx: { script: { rcpt: toPrimary(LISTING) } } },
      messages: { ada: CHANGES_LANE },
      verify: async (run) => {
        expect(run.sink('mx').messages.map(({ remoteAddress }) => remoteAddress)).toEqual([
          SECONDARY_ADDRESS,
        ]);
        const { timeline } = await run.message('ada');
        expect(timeline.flatMap(({ lane }) => lane ?? [])).toEqual(['primary', 'secondary']);
        expect(timeline).toContainEqual(
          expect.objectContaining({ event: 'email_delayed', nextLane: 'secondary' }),
        );
      },
    },
  },
  { settings: LANE_SETTINGS, secondaryLane: true },
);
