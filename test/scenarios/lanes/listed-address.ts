import { expect } from 'vitest';
import type { Scenario } from '../support/scenario.ts';
import { CHANGES_LANE, LISTING, SECONDARY_ADDRESS, toPrimary } from '../support/secondary-lane.ts';

export default {
  title: 'sends mail once over the secondary lane when our address is blocklisted, and records the change',
  hosts: { mx: { script: { rcpt: toPrimary(LISTING) } } },
  messages: { ada: CHANGES_LANE },
  verify: async (run) => {
    expect(run.sink('mx').messages.map(({ remoteAddress }) => remoteAddress)).toEqual([SECONDARY_ADDRESS]);
    const { timeline } = await run.message('ada');
    expect(timeline.flatMap(({ lane }) => lane ?? [])).toEqual(['primary', 'secondary']);
    expect(timeline).toContainEqual(
      expect.objectContaining({ event: 'email_delayed', nextLane: 'secondary' }),
    );
  },
} satisfies Scenario;
