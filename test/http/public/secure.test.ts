import { connect as connectPlain } from 'node:net';
import { connect, createSecureContext } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { createAuthority } from '../../support/certificates.ts';
import { freePort } from '../../support/free-port.ts';
import { requestHttps } from '../../support/https-client.ts';
import { FORM, ONE_CLICK, startPublic } from './rig.ts';

/** The public pages over HTTPS, with the certificate of the host name that the client requests. */
const authority = createAuthority();
const contextOf = (host: string) => createSecureContext(authority.issue([host]));

async function start() {
  const port = await freePort();
  const contexts = new Map(['a.example', 'b.example'].map((host) => [host, contextOf(host)]));
  const rig = await startPublic(
    {
      POSTRIDER_PUBLIC__TLS__LISTEN: `127.0.0.1:${port}`,
      POSTRIDER_PUBLIC__TLS__AGREETOTERMS: 'true',
    },
    {
      contextFor: async (host) => {
        if (host === 'broken.example') throw new Error('the database is gone');
        return contexts.get(host) ?? null;
      },
      challengeAnswer: (token) => (token === 'issued' ? 'issued.thumbprint' : null),
    },
  );
  const visit = (host: string, path = '/robots.txt', more: object = {}) =>
    requestHttps(`https://${host}:${port}${path}`, { ca: authority.cert, ...more });
  return { ...rig, port, contexts, visit };
}

describe('over HTTPS', () => {
  it.each(['a.example', 'b.example'])('%s has its own certificate', async (host) => {
    const { visit } = await start();
    const { status, certificate } = await visit(host);
    expect([status, certificate.subjectaltname]).toEqual([200, `DNS:${host}`]);
  });

  it('uses a new certificate for the next connection', async () => {
    const { visit, contexts } = await start();
    const before = (await visit('a.example')).certificate.serialNumber;
    contexts.set('a.example', contextOf('a.example'));
    expect((await visit('a.example')).certificate.serialNumber).not.toBe(before);
  });

  it.each([
    ['a name without a certificate', 'other.example'],
    ['a name whose certificate cannot be read', 'broken.example'],
  ])('refuses %s only', async (_, host) => {
    const { visit } = await start();
    await expect(visit(host)).rejects.toThrow();
    expect((await visit('a.example')).status).toBe(200);
  });

  it.each([
    ['names no host', 'tls'],
    ['sends plain HTTP', 'http'],
  ])('disconnects a client that %s', async (_, protocol) => {
    const { port, visit } = await start();
    if (protocol === 'http') await expect(fetch(`http://127.0.0.1:${port}/robots.txt`)).rejects.toThrow();
    else {
      const socket = connect({ host: '127.0.0.1', port, ca: authority.cert });
      const error = await new Promise((resolve) => socket.on('error', resolve));
      expect(error).toBeInstanceOf(Error);
    }
    expect((await visit('a.example')).status).toBe(200);
  });

  it('closes while a handshake is incomplete', async () => {
    const { port, settle, visit } = await start();
    const silent = connectPlain(port, '127.0.0.1');
    const disconnected = new Promise((resolve) => silent.on('close', resolve));
    await new Promise((resolve) => silent.on('connect', resolve));
    // The previous connection has been accepted as well.
    await visit('a.example');
    await settle();
    await disconnected;
  });

  it('accepts a one-click unsubscription', async () => {
    const { visit, sent, deliver, tokens, unsubscribing, tables, call } = await start();
    const { message, mail } = sent({ use_case: 'mk' });
    await deliver(message);
    const path = `/u/${tokens.of('acct_one').unsubscribeUrl(mail)}`;
    const body = 'List-Unsubscribe=One-Click';
    const answer = await visit('a.example', path, { method: 'POST', body });
    expect(answer).toMatchObject({ status: 200 });
    expect(unsubscribing.state(tables, mail).stopped).toEqual(['mk']);
    // Older mail may contain http links: they work, too, without a redirect.
    expect((await call(path, { ...ONE_CLICK, headers: FORM })).status).toBe(200);
  });
});

describe('a challenge of the certificate authority', () => {
  const PATH = '/.well-known/acme-challenge';

  it.each([
    ['has a response while its order is open', `${PATH}/issued`, 200],
    ['has an unknown token', `${PATH}/guessed`, 404],
    ['has no token', PATH, 404],
    ['has a longer path', `${PATH}/issued/more`, 404],
    ['has another path', '/issued', 404],
  ])('%s', async (_, path, status) => {
    const { call } = await start();
    const answer = await call(path);
    expect(answer.status).toBe(status);
    if (status === 200) expect(answer.body).toBe('issued.thumbprint');
  });

  it('is not handled when certificates are not managed here', async () => {
    const { call } = await startPublic();
    expect((await call(`${PATH}/issued`)).status).toBe(404);
  });
});
