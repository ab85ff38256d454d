import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHttpsProbe } from '../../../src/domains/platform/https-probe.ts';
import { createAuthority } from '../../support/certificates.ts';

const authority = createAuthority();

/** Starts a server on loopback with a certificate for `names`; returns the probe for its port. */
async function served(names: string[], options: { status?: number; expired?: boolean } = {}) {
  const certificate = authority.issue(names, options.expired ? new Date(Date.now() - 1000) : undefined);
  const server = createServer(certificate, (_, response) =>
    response.writeHead(options.status ?? 200).end('x'),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo; // a TCP server's
  return createHttpsProbe(`https://localhost:${port}`, authority.cert);
}

describe('createHttpsProbe', () => {
  it.each([
    ['accepts a certificate for the name', ['link.example.org'], {}, true],
    ['accepts any status below 500', ['link.example.org'], { status: 404 }, true],
    ['rejects a certificate for another name', ['www.example.org'], {}, false],
    ['rejects an expired certificate', ['link.example.org'], { expired: true }, false],
    ['rejects a status of 500 or more', ['link.example.org'], { status: 502 }, false],
  ])('%s', async (_, names, options, expected) => {
    const answersHttps = await served(names, options);
    expect(await answersHttps('link.example.org', '127.0.0.1')).toBe(expected);
  });

  it('rejects a host that refuses the connection', async () => {
    const probe = createHttpsProbe('https://localhost:1');
    expect(await probe('link.example.org', '127.0.0.1')).toBe(false);
  });

  it('rejects a certificate of an unknown authority', async () => {
    const { port } = await new Promise<AddressInfo>((resolve) => {
      const server = createServer(authority.issue(['link.example.org']), (_, response) => response.end());
      server.listen(0, '127.0.0.1', () => resolve(server.address() as AddressInfo)); // a TCP server's
      onTestFinished(() => void server.close());
    });
    const probe = createHttpsProbe(`https://localhost:${port}`);
    expect(await probe('link.example.org', '127.0.0.1')).toBe(false);
  });
});
