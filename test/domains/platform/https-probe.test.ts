import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHttpsProbe } from '../../../src/domains/platform/https-probe.ts';
import { createAuthority } from '../../support/certificates.ts';
import { resolverOf, type Zone } from '../zone.ts';

const authority = createAuthority();

/** A server on loopback with a certificate for `names`, and the probe of its port. */
async function served(names: string[], wish: { zone?: Zone; status?: number; expired?: boolean } = {}) {
  const certificate = authority.issue(names, wish.expired ? new Date(Date.now() - 1000) : undefined);
  const server = createServer(certificate, (_, response) => response.writeHead(wish.status ?? 200).end('x'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo; // a TCP server's
  const zone = wish.zone ?? { 'A link.example.org': ['127.0.0.1'] };
  return createHttpsProbe(resolverOf(zone), `https://localhost:${port}`, authority.cert);
}

describe('a link host answers over HTTPS', () => {
  it.each([
    ['with a certificate for its name', ['link.example.org'], {}, true],
    ['whatever it says about the path', ['link.example.org'], { status: 404 }, true],
    ['with a certificate for another name', ['www.example.org'], {}, false],
    ['with an expired certificate', ['link.example.org'], { expired: true }, false],
    ['when the proxy finds nobody behind it', ['link.example.org'], { status: 502 }, false],
    ['without an address', ['link.example.org'], { zone: {} }, false],
  ])('%s', async (_, names, wish, expected) => {
    const answersHttps = await served(names, wish);
    expect(await answersHttps('link.example.org')).toBe(expected);
  });

  it('when nobody listens: no', async () => {
    const resolver = resolverOf({ 'A link.example.org': ['127.0.0.1'] });
    expect(await createHttpsProbe(resolver, 'https://localhost:1')('link.example.org')).toBe(false);
  });

  it('with a certificate that nobody vouches for: no', async () => {
    const { port } = await new Promise<AddressInfo>((resolve) => {
      const server = createServer(authority.issue(['link.example.org']), (_, response) => response.end());
      server.listen(0, '127.0.0.1', () => resolve(server.address() as AddressInfo)); // a TCP server's
      onTestFinished(() => void server.close());
    });
    const probe = createHttpsProbe(
      resolverOf({ 'A link.example.org': ['127.0.0.1'] }),
      `https://localhost:${port}`,
    );
    expect(await probe('link.example.org')).toBe(false);
  });
});
