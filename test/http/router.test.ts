import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { routesOf } from '../../src/http/route.ts';
import { type Api, exchange, jsonOf, startApi } from './harness.ts';
import { sampleRoutes } from './sample-routes.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi({ routes: sampleRoutes });
});
afterAll(() => api.stop());

/** The response to a request target that fetch would normalize. */
async function raw(target: string, method = 'GET', more = ''): Promise<string> {
  return exchange(
    api.port,
    `${method} ${target} HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${api.secrets.setup}\r\nX-Id: ${api.account.accountId}\r\nConnection: close\r\n${more}\r\n`,
  );
}

describe('a path', () => {
  it.each([
    ['/web-setup/things/one', 200],
    ['/web-setup/things/one/', 404],
    ['/web-setup/things/', 404],
    ['/Web-Setup/things/one', 404],
    ['//web-setup/things/one', 404],
    ['/web-setup/things/../things/one', 404],
    ['/web-setup//things/one', 404],
    ['/web-setup/things/one/more', 404],
    ['/', 404],
    ['*', 400],
    ['http://any.example/web-setup/things/one?limit=3', 200],
    ['http://any.example:99999999/', 400],
    ['not-a-path', 400],
    [`/${'x'.repeat(10_000)}`, 404],
    ['/web-setup/things/one?limit=1&x=1', 200],
  ])('%s: %i', async (target, status) => {
    const answer = await raw(target);
    expect(answer.split(' ')[1]).toBe(String(status));
    expect(answer).toContain('application/json');
  });

  it('is 404 in the envelope if unknown, without a key', async () => {
    const response = await fetch(`${api.base}/web-setup/nothing`);
    expect(response.status).toBe(404);
    expect(await jsonOf(response)).toMatchObject({
      success: false,
      reasonCode: 'NOT_FOUND',
      error: { message: 'The path /web-setup/nothing does not exist' },
    });
  });

  it('is repeated in the response up to 200 characters', async () => {
    const response = await fetch(`${api.base}/${'x'.repeat(10_000)}`);
    const body = JSON.stringify(await jsonOf(response));
    expect(body).toContain(`The path /${'x'.repeat(199)} does not exist`);
  });

  it('without a parameter takes precedence', async () => {
    const response = await fetch(`${api.base}/web-setup/things/special`, { headers: api.as('setup') });
    expect(await jsonOf(response)).toMatchObject({ data: { special: true } });
  });
});

describe('an unknown method', () => {
  it.each([
    ['/web-setup/things', 'GET', 'POST, OPTIONS'],
    ['/web-setup/things', 'PURGE', 'POST, OPTIONS'],
    ['/web-setup/things/one', 'PUT', 'GET, DELETE, HEAD, OPTIONS'],
    ['/web-setup/things/one', 'TRACE', 'GET, DELETE, HEAD, OPTIONS'],
    ['/web-setup/things/one', 'PROPFIND', 'GET, DELETE, HEAD, OPTIONS'],
    ['/healthz', 'POST', 'GET, HEAD, OPTIONS'],
  ])('%s: %s is 405, Allow: %s', async (target, method, allow) => {
    const answer = await raw(target, method);
    expect(answer).toMatch(/^HTTP\/1\.1 405 /);
    expect(answer).toContain(`\r\nAllow: ${allow}\r\n`);
    expect(answer).toContain('"reasonCode":"METHOD_NOT_ALLOWED"');
  });

  it('OPTIONS lists the methods and has no CORS fields', async () => {
    const answer = await raw('/web-setup/things', 'OPTIONS', 'Origin: https://evil.example\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 204 /);
    expect(answer).toContain('\r\nAllow: POST, OPTIONS\r\n');
    expect(answer.toLowerCase()).not.toContain('access-control');
  });
});

describe('HEAD', () => {
  it('is GET without the body', async () => {
    const [get, head] = await Promise.all(
      ['GET', 'HEAD'].map((method) =>
        fetch(`${api.base}/web-setup/things/one`, { method, headers: api.as('setup') }),
      ),
    );
    expect(head?.status).toBe(200);
    expect(await head?.text()).toBe('');
    expect(head?.headers.get('content-length')).toBe(String((await get?.text())?.length));
    expect(head?.headers.get('content-type')).toBe(get?.headers.get('content-type'));
  });

  it('requires the same key as GET', async () => {
    expect((await fetch(`${api.base}/web-setup/things/one`, { method: 'HEAD' })).status).toBe(401);
  });
});

describe('inconsistent descriptions', () => {
  const route = routesOf({ tag: 'X', scope: 'setup' });
  const description = { operationId: 'getX', summary: 'X', handle: () => ({}) };
  const getX = route('GET /web-setup/x/{xId}', description);

  it.each([
    ['two operations for one method and path', [getX, getX], 'two operations'],
    ['one path under two names', [getX, route('GET /web-setup/x/{id}', description)], 'the same path'],
  ])('%s', async (_, routes, message) => {
    await expect(startApi({ routes })).rejects.toThrow(message);
  });

  it('a schema of a parameter that the path does not have', () => {
    const params = { other: z.string() };
    expect(() => route('GET /web-setup/x/{xId}', { ...description, params })).toThrow(
      '/web-setup/x/{xId} does not have the parameters other',
    );
  });
});
