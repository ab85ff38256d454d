import { expect, it } from 'vitest';
import { queryUdp } from '../../src/dns/transport.ts';
import { startDnsServer } from '../support/dns-server.ts';

const udpSockets = () => process.getActiveResourcesInfo().filter((name) => /^udp/i.test(name)).length;

it('closes the socket of a query that is cancelled before the socket is bound', async () => {
  const dns = await startDnsServer();
  const [address = '', port] = dns.address.split(':');
  const before = udpSockets();
  const cancel = new AbortController();
  const answer = queryUdp({ address, port: Number(port) }, Buffer.alloc(12), () => true, cancel.signal);
  cancel.abort(new Error('cancelled'));
  await expect(answer).rejects.toThrow('cancelled');
  await expect.poll(udpSockets).toBe(before);
  await dns.close();
});
