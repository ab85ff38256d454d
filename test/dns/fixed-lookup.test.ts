import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { requestPage } from '../../src/doctor/checks/listeners.ts';
import { createHttpsProbe } from '../../src/domains/platform/https-probe.ts';

/** `connect` fails within the call, on every machine: TCP has no broadcast. An error without a listener fails the test run. */
const UNROUTABLE = '255.255.255.255';

function page(url: string, address: string) {
  return requestPage({
    url: new URL(url),
    address,
    timeoutMs: 60_000,
    signal: new AbortController().signal,
    authorities: undefined,
  });
}

describe('a connection that fails immediately', () => {
  it.each(['https://link.example.org/', 'http://link.example.org/'])(
    'is an answer of the probe of %s',
    async (url) => {
      expect(await page(url, UNROUTABLE)).toEqual({ kind: 'failed', code: 'ENETUNREACH' });
    },
  );

  it('is a link host that does not answer', async () => {
    expect(await createHttpsProbe('https://localhost')('link.example.org', UNROUTABLE)).toBe(false);
  });
});

it('connects to the address, whatever the name', async () => {
  const server = createServer((_, response) => response.writeHead(204).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo; // a TCP server's
  expect(await page(`http://nowhere.invalid:${port}/`, '127.0.0.1')).toMatchObject({ status: 204 });
});
