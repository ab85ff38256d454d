import { MINUTE } from '../../../src/core/clock.ts';
import { startSocksServer } from '../../support/socks-server.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';
import { addressSettings } from '../support/source-addresses.ts';

/** RFC 1928 §6: connection not allowed by ruleset. */
const NOT_ALLOWED = 2;

export default {
  title: 'defers mail while the proxy of the only source address does not allow the connection',
  hosts: { mx: {} },
  messages: {
    ada: {
      attempts: [deferred('451 4.4.4', 'network-error', 5 * MINUTE), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
  play: async (run) => {
    const strict = await startSocksServer({ code: NOT_ALLOWED });
    const open = await startSocksServer();
    const via = ({ port }: { port: number }) =>
      addressSettings(run.domain, [
        { name: 'far', address: '127.0.0.13', proxy: `socks5://127.0.0.1:${port}` },
      ]);
    await run.configure(via(strict));
    await run.send('ada');
    await run.settle();
    await run.configure(via(open));
    await run.finish();
  },
} satisfies Scenario;
