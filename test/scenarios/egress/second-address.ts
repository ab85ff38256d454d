import { expect } from 'vitest';
import { deferred, delivered } from '../support/attempts.ts';
import { many } from '../support/many.ts';
import type { Scenario } from '../support/scenario.ts';
import { addressSettings, NEW_ADDRESS, sourcesAt, WARM, WARM_ADDRESS } from '../support/source-addresses.ts';

const LISTED = `550 5.7.1 messages from [${NEW_ADDRESS}] weren't sent: part of their network is on our block list (S3140)`;

export default {
  title: 'delivers all mail from the second address after one refusal of the first one at MAIL',
  settings: ({ domain }) => addressSettings(domain, [{ name: 'blocked', address: NEW_ADDRESS }]),
  hosts: {
    mx: {
      script: { mail: ({ remoteAddress }) => (remoteAddress === NEW_ADDRESS ? LISTED : undefined) },
    },
  },
  messages: {
    first: {
      attempts: [
        deferred('550 5.7.1', 'reputation-block', undefined, 'mx mail 550'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
    ...many(30, 'user'),
  },
  play: async (run) => {
    await run.configure(addressSettings(run.domain, [{ name: 'blocked', address: NEW_ADDRESS }, WARM]));
    await run.send('first');
    await run.settle();
    for (let n = 0; n < 30; n++) await run.send(`user${n}`);
    await run.finish();
    expect(sourcesAt(run)).toEqual({ [WARM_ADDRESS]: 31 });
  },
} satisfies Scenario;
