import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, exchange, jsonOf, startApi } from '../harness.ts';
import { sampleRoutes } from '../sample-routes.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi({ routes: sampleRoutes, limits: { setupBytes: 1000, sendBytes: 4000 } });
});
afterAll(() => api.stop());

const TO = '{"to":"ann"}';

async function post(body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) {
  const response = await fetch(`${api.base}/web-setup/things`, {
    method: 'POST',
    headers: { ...api.as('setup'), 'Content-Type': 'application/json', ...headers },
    body,
  });
  return { status: response.status, body: await jsonOf(response) };
}

describe('what counts as JSON', () => {
  it.each<[string, string | Uint8Array<ArrayBuffer>, string | null]>([
    ['an object', TO, null],
    ['an object after a byte order mark', `\uFEFF${TO}`, null],
    ['blanks around it', ` \r\n${TO}\t`, null],
    ['nothing', '', 'INVALID_JSON'],
    ['blanks alone', '  ', 'INVALID_JSON'],
    ['half an object', '{"to":', 'INVALID_JSON'],
    ['two objects', `${TO}${TO}`, 'INVALID_JSON'],
    ['a comma too many', '{"to":"ann",}', 'INVALID_JSON'],
    ['NaN', '{"to":NaN}', 'INVALID_JSON'],
    [
      'bytes that are not UTF-8',
      Uint8Array.from([...Buffer.from('{"to":"'), 0xff, ...Buffer.from('"}')]),
      'INVALID_JSON',
    ],
    [
      'UTF-8 cut in the middle',
      Uint8Array.from([...Buffer.from('{"to":"'), 0xc3, ...Buffer.from('"}')]),
      'INVALID_JSON',
    ],
    ['UTF-16', Uint8Array.from(Buffer.from(TO, 'utf16le')), 'INVALID_JSON'],
    ['a string', '"ann"', 'VALIDATION_ERROR'],
    ['an array', `[${TO}]`, 'VALIDATION_ERROR'],
    ['null', 'null', 'VALIDATION_ERROR'],
  ])('%s', async (_, sent, code) => {
    const { status, body } = await post(sent);
    expect(status).toBe(code === null ? 201 : 400);
    expect(body['reasonCode'] ?? null).toBe(code);
  });

  it('reports the position of the error, without a quote of the body', async () => {
    const { body } = await post('{"to": "secret"; }');
    expect(body['message']).toBe('The body is not valid JSON at character 15');
  });

  it.each([
    ['64 levels', 62, 201],
    ['65 levels', 63, 400],
    ['450 levels', 450, 400],
  ])('%s deep', async (_, arrays, status) => {
    const nested = `${'['.repeat(arrays)}${']'.repeat(arrays)}`;
    expect((await post(`{"to":"a","anything":[${nested}]}`)).status).toBe(status);
  });

  it('cannot modify a prototype', async () => {
    const sent =
      '{"to":"a","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"headers":{"__proto__":"x"}}';
    const { status, body } = await post(sent);
    expect(status).toBe(201);
    expect(body).toMatchObject({ data: { got: { to: 'a' } } });
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

describe('the content type', () => {
  it.each([
    ['application/json', 201],
    ['application/json; charset=utf-8', 201],
    ['Application/JSON;charset="UTF-8"', 201],
    ['application/json; charset=iso-8859-1', 415],
    ['application/json; charset=utf-16le', 415],
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/jsonp', 415],
    ['', 415],
  ])('%j is answered %i', async (type, status) => {
    expect((await post(TO, { 'Content-Type': type })).status).toBe(status);
  });

  it('is not checked without a body', async () => {
    const response = await fetch(`${api.base}/web-setup/things`, {
      method: 'POST',
      headers: api.as('setup'),
    });
    expect((await jsonOf(response))['reasonCode']).toBe('INVALID_JSON');
  });

  it('is refused with a content coding', async () => {
    expect((await post(TO, { 'Content-Encoding': 'gzip' })).status).toBe(415);
  });
});

describe('the size', () => {
  const padded = (bytes: number) => `{"to":"${'x'.repeat(bytes - 9)}"}`;

  it.each([
    [1000, 201],
    [1001, 413],
  ])('answers %i bytes on setup with %i', async (bytes, status) => {
    expect((await post(padded(bytes))).status).toBe(status);
  });

  it.each([
    [4000, 200],
    [4001, 413],
  ])('answers %i bytes on sending with %i', async (bytes, status) => {
    const response = await fetch(`${api.base}/transactional/send`, {
      method: 'POST',
      headers: { ...api.as('transactional'), 'Content-Type': 'application/json' },
      body: padded(bytes),
    });
    expect(response.status).toBe(status);
  });

  /** Sends the head, then chunks until a response arrives; returns the status and the bytes sent. */
  function pour(headers: Record<string, string>): Promise<{ status: number | undefined; sent: number }> {
    return new Promise((resolve, reject) => {
      let sent = 0;
      const req = request(`${api.base}/web-setup/things`, {
        method: 'POST',
        headers: { ...api.as('setup'), 'Content-Type': 'application/json', ...headers },
      });
      const timer = setInterval(() => {
        sent += 500;
        req.write('x'.repeat(500));
      }, 5);
      req.on('response', (res) => {
        clearInterval(timer);
        resolve({ status: res.statusCode, sent });
        req.destroy();
      });
      req.on('error', reject);
      req.flushHeaders();
    });
  }

  it('is refused by Content-Length, before the body arrives', async () => {
    expect(await pour({ 'Content-Length': '100000000' })).toMatchObject({ status: 413 });
  });

  it('is refused in a chunked body at the limit', async () => {
    const { status, sent } = await pour({ 'Transfer-Encoding': 'chunked' });
    expect(status).toBe(413);
    expect(sent).toBeLessThan(100_000);
  });

  it('does not close the connection when it is refused', async () => {
    const { 'X-Api-Key': key, 'X-Id': id } = api.as('setup');
    const head = `Host: x\r\nX-Api-Key: ${key}\r\nX-Id: ${id}\r\nContent-Type: application/json\r\n`;
    const answer = await exchange(
      api.port,
      `POST /web-setup/things HTTP/1.1\r\n${head}Content-Length: 2000\r\n\r\n${'x'.repeat(2000)}` +
        `POST /web-setup/things HTTP/1.1\r\n${head}Connection: close\r\nContent-Length: ${TO.length}\r\n\r\n${TO}`,
    );
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 201']);
  });

  it('closes the connection if the body does not end', async () => {
    const { 'X-Api-Key': key, 'X-Id': id } = api.as('setup');
    const head = `POST /web-setup/things HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\nX-Id: ${id}\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\n\r\n`;
    const answer = await exchange(
      api.port,
      Buffer.concat([Buffer.from(head), Buffer.alloc(20_000_000, 120)]),
    );
    // The connection was closed while the client was sending; the response may be lost.
    expect(answer).toMatch(/^(HTTP\/1\.1 413 |$)/);
  });
});

describe('Expect: 100-continue', () => {
  async function expecting(key: string, length: number): Promise<string> {
    return exchange(
      api.port,
      `POST /web-setup/things HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\nX-Id: ${api.account.accountId}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n${TO}`,
    );
  }

  it('gets 100 when the body is read', async () => {
    expect((await expecting(api.secrets.setup, TO.length)).match(/HTTP\/1\.1 \d+/g)).toEqual([
      'HTTP/1.1 100',
      'HTTP/1.1 201',
    ]);
  });

  it.each([
    ['the key is wrong', 'pr_wrong', TO.length, 'HTTP/1.1 401'],
    ['the body is too large', null, 5000, 'HTTP/1.1 413'],
  ])('gets a final response immediately when %s', async (_, key, length, status) => {
    const answer = await expecting(key ?? api.secrets.setup, length);
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual([status]);
  });
});

it('a body on a GET is ignored', async () => {
  const { 'X-Api-Key': key, 'X-Id': id } = api.as('setup');
  const answer = await exchange(
    api.port,
    `GET /web-setup/things/one HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\nX-Id: ${id}\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
});

it('logs no error when a client disconnects during a body', async () => {
  api.logged.length = 0;
  await new Promise<void>((resolve) => {
    const req = request(`${api.base}/web-setup/things`, {
      method: 'POST',
      headers: { ...api.as('setup'), 'Content-Type': 'application/json', 'Content-Length': '500' },
    });
    req.on('error', () => resolve());
    req.write('{"to":', () => req.destroy());
    req.on('close', () => resolve());
  });
  expect((await post(TO)).status).toBe(201);
  expect(api.logged).toEqual([]);
});
