import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const BLOCKED =
  "550 5.7.1 Unfortunately, messages from [192.0.2.25] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3140).";

export default {
  title:
    'defers mail whose MAIL is rejected because of our address, and delivers it when the block is lifted',
  hosts: { mx: { script: { mail: inTurn(BLOCKED) } } },
  messages: {
    ada: {
      attempts: [
        deferred('550 5.7.1', 'reputation-block', 5 * MINUTE, 'mx mail 550'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;
