import { deferred, delivered } from '../support/attempts.ts';
import { explained } from '../support/explained.ts';
import { addressSettings } from '../support/source-addresses.ts';

const DEAD = { name: 'far', address: '127.0.0.13', proxy: 'socks5://127.0.0.1:9' };
const FAILED = {
  attempts: [deferred('451 4.4.4', 'network-error', undefined), delivered('mx dot 250')],
  status: 'delivered',
} as const;

export default explained({
  explains: 'address_unusable',
  text: 'cannot be used now',
  user: 'kim',
  hosts: { mx: {} },
  messages: {
    ada: FAILED,
    bob: FAILED,
    kim: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  cause: async (run) => {
    await run.configure(addressSettings(run.domain, [DEAD]));
    for (const user of ['ada', 'bob']) {
      await run.send(user);
      await run.settle();
    }
    await run.send('kim');
    await run.settle();
  },
  end: (run) => run.configure({}),
});
