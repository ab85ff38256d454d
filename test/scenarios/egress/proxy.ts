import { expect } from 'vitest';
import { startSocksServer } from '../../support/socks-server.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';
import { addressSettings } from '../support/source-addresses.ts';

export default {
  title:
    'sends through the SOCKS5 proxy of a source address, which gets the address of the host, not its name',
  hosts: { mx: {} },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  play: async (run) => {
    const proxy = await startSocksServer();
    const far = { name: 'far', address: '127.0.0.13', proxy: `socks5://${proxy.host}:${proxy.port}` };
    await run.configure(addressSettings(run.domain, [far]));
    await run.send('ada');
    await run.finish();
    expect(proxy.requests).toEqual([
      { login: null, type: 1, destination: `${run.address('mx')}:${run.env.port}` },
    ]);
  },
} satisfies Scenario;
