import { MINUTE } from '../../../src/core/clock.ts';
import { PLATFORM } from '../../support/in-process-daemon.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 5321 §5.1
  title: 'uses neither this server as MX host, nor hosts that are not more preferred than it',
  hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } }, backup: {} },
  zone: () => ({ '@': { MX: ['10 mx', `20 ${PLATFORM}.`, '20 backup', '30 backup'] } }),
  messages: {
    ada: {
      attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  connections: { backup: [] },
} satisfies Scenario;
