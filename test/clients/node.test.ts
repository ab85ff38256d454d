import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { Postrider, PostriderError, verifyWebhook, WebhookError } from '../../clients/node/src/index.ts';
import { DAY } from '../../src/core/clock.ts';
import type { ApiClient, CreatedDomain } from '../support/api-client.ts';
import { codeBlocks } from '../support/documentation.ts';
import { freePort } from '../support/free-port.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { insertDomain } from '../support/rows.ts';

/*
 * The client for Node over a daemon, through a proxy that fails as networks do; and the package as an application gets it.
 *
 *   client ──▶ proxy ──▶ daemon
 */
const CLIENT = fileURLToPath(new URL('../../clients/node', import.meta.url));
const COMPILER = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));
const FOOTER = '{{company_address_html}}{{unsubscribe_email_html}}';
const mailTo = (to: string) => ({
  from: 'Shop <orders@example.com>',
  to,
  subject: 'Your order',
  html: `<p>Thank you!</p>${FOOTER}`,
});

/** What becomes of a request: `lost`: it is processed, and the response is not delivered. */
type Fault = { status: number; headers?: Record<string, string>; body?: string } | 'lost' | 'silent';

let daemon: InProcess;
let account: ApiClient;
/** A test key: nothing leaves. */
let key: string;
let proxy: Server;
let url: string;
/** Of the next requests, in order. */
let faults: Fault[];
let requests: { method: string; idempotencyKey: string | undefined; authorization: string | undefined }[];

beforeAll(async () => {
  daemon = await startInProcess();
  account = await daemon.account('Shop');
  const { accountId } = account;
  const scopes = ['setup', 'marketing', 'transactional'];
  const created = await account.post<{ secret: string }>(`/web-setup/accounts/${accountId}/keys`, {
    name: 'client',
    scopes,
    livemode: false,
  });
  key = created.data.secret;
  const domain = { domain: 'shop.example', useCaseId: 'tx-local' };
  const { data } = await account.put<CreatedDomain>('/web-setup/domains', domain);
  insertDomain(
    daemon.tables,
    {
      account_id: accountId,
      group_id: data.groupId,
      domain_id: 'domain_1',
      name: 'example.com',
      use_case: 'tx',
      next_check_at: Date.now() + DAY,
    },
    Date.now(),
  );
  proxy = createServer((request, response) => {
    forward(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
});

afterAll(async () => {
  proxy.closeAllConnections();
  proxy.close();
  await daemon.stop();
});

async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', headers } = request;
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const idempotencyKey = headers['idempotency-key'];
  if (Array.isArray(idempotencyKey)) throw new Error('several keys');
  requests.push({ method, idempotencyKey, authorization: headers.authorization });
  const fault = faults.shift();
  if (fault === 'silent') return;
  if (typeof fault === 'object') {
    response.writeHead(fault.status, { 'Content-Type': 'application/json', ...fault.headers });
    response.end(fault.body ?? '');
    return;
  }
  const answer = await fetch(daemon.url + request.url, {
    method,
    headers: Object.entries(headers).filter(
      (field): field is [string, string] =>
        typeof field[1] === 'string' && !['host', 'connection', 'content-length'].includes(field[0]),
    ),
    body: chunks.length === 0 ? null : Buffer.concat(chunks),
  });
  const body = Buffer.from(await answer.arrayBuffer());
  if (fault === 'lost') request.socket.destroy();
  else
    response.writeHead(answer.status, { 'Content-Type': answer.headers.get('Content-Type') ?? '' }).end(body);
}

function client(
  options: Partial<ConstructorParameters<typeof Postrider>[0]> = {},
  ...next: Fault[]
): Postrider {
  faults = next;
  requests = [];
  return new Postrider({ url, key, retryDelayMs: 1, ...options });
}

const unavailable = (headers: Record<string, string> = {}): Fault => ({
  status: 503,
  headers,
  body: JSON.stringify({ success: false, error: { code: 'UNAVAILABLE', message: 'The queue is full' } }),
});
const failure = async (promise: Promise<unknown>): Promise<PostriderError> => {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error instanceof PostriderError) return error;
  throw new Error(`not the error of a client: ${String(error)}`);
};
async function collect<T>(all: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const each of all) found.push(each);
  return found;
}
const messagesTo = (recipient: string) => collect(client().messages({ recipient }));

describe('a send', () => {
  it('is authenticated by the key alone, and has a key of its own each time', async () => {
    const postrider = client();
    const { messageId } = await postrider.send(mailTo('one@example.org'));
    await postrider.send(mailTo('one@example.org'));
    expect(requests.map(({ authorization }) => authorization)).toEqual(Array(2).fill(`Bearer ${key}`));
    expect(new Set(requests.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(2);
    expect(await postrider.message(messageId)).toMatchObject({ messageId, recipient: 'one@example.org' });
    expect(await messagesTo('one@example.org')).toHaveLength(2);
  });

  it('is sent once with the key of the caller', async () => {
    const send = () => client().send(mailTo('own@example.org'), { idempotencyKey: 'order-7' });
    expect(await send()).toEqual(await send());
    expect(await messagesTo('own@example.org')).toHaveLength(1);
  });

  it.each<[string, Fault]>([
    ['503', unavailable()],
    ['a lost response', 'lost'],
    ['an error of a proxy', { status: 502, body: '<html>' }],
    ['a response that is too late', 'silent'],
  ])('is repeated after %s, with one message as the result', async (name, fault) => {
    const to = `${name.replaceAll(' ', '-')}@example.org`;
    await client({ timeoutMs: fault === 'silent' ? 500 : 30_000 }, fault, fault).send(mailTo(to));
    expect(requests).toHaveLength(3);
    expect(new Set(requests.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
    expect(await messagesTo(to)).toHaveLength(1);
  });

  it('names the key with which it can be repeated later', async () => {
    const error = await failure(client({ maxRetries: 0 }, 'lost').send(mailTo('later@example.org')));
    expect(error).toMatchObject({ status: 0, code: 'NETWORK', idempotencyKey: requests[0]?.idempotencyKey });
    await client().send(mailTo('later@example.org'), { idempotencyKey: error.idempotencyKey ?? '' });
    expect(await messagesTo('later@example.org')).toHaveLength(1);
  });

  it('has the error of the API', async () => {
    const error = await failure(client().send({ ...mailTo('nobody'), subject: 'x' }));
    expect(error).toMatchObject({
      status: 400,
      code: 'VALIDATION_ERROR',
      field: expect.stringMatching(/^to/),
    });
    expect(error.requestId).not.toBe('');
    expect(error.message).not.toBe('');
    expect(requests).toHaveLength(1);
  });
});

describe('a batch', () => {
  it('has the result of each message, also after a lost response', async () => {
    const mails = [mailTo('batch@example.org'), mailTo('nobody'), mailTo('batch@example.org')];
    const { accepted, refused, results } = await client({}, 'lost').sendBatch(mails);
    expect({ accepted, refused }).toEqual({ accepted: 2, refused: 1 });
    expect(
      results.map((result) => (result.success ? result.data.totalRecipients : result.error.code)),
    ).toEqual([1, 'VALIDATION_ERROR', 1]);
    expect(requests).toHaveLength(2);
    expect(await messagesTo('batch@example.org')).toHaveLength(2);
  });

  it('is repeated while an earlier attempt accepts its messages', async () => {
    const results = [{ success: false, reasonCode: 'IDEMPOTENCY_IN_PROGRESS' }];
    const inProgress = { status: 200, body: JSON.stringify({ success: true, data: { results } }) };
    const { accepted } = await client({}, inProgress).sendBatch([mailTo('slow@example.org')]);
    expect(accepted).toBe(1);
    expect(await messagesTo('slow@example.org')).toHaveLength(1);
  });
});

describe('a request', () => {
  it('waits as long as the response demands', async () => {
    const now = { retryDelayMs: DAY, maxRetryDelayMs: DAY };
    await client(now, unavailable({ 'Retry-After': '0' })).request('get', '/web-setup/contacts');
    expect(requests).toHaveLength(2);
    const later = unavailable({ 'Retry-After': '3600' });
    const error = await failure(client({}, later).request('get', '/web-setup/contacts'));
    expect(error).toMatchObject({ status: 503, code: 'UNAVAILABLE', retryAfterSeconds: 3600 });
    expect(requests).toHaveLength(1);
  });

  it('is repeated a limited number of times', async () => {
    const limited = { status: 429, body: '{"error":{"code":"RATE_LIMITED","message":"Too many"}}' };
    const all: Fault[] = [limited, limited, limited, limited];
    const error = await failure(client({ maxRetries: 2 }, ...all).request('get', '/web-setup/contacts'));
    expect(error.code).toBe('RATE_LIMITED');
    expect(requests).toHaveLength(3);
  });

  it('that is not a send is not repeated when it may have been processed', async () => {
    const create = (name: string) =>
      client({}, 'lost').request('post', '/web-setup/contacts/subscription-groups', { body: { name } });
    expect((await failure(create('News'))).code).toBe('NETWORK');
    expect(requests).toHaveLength(1);
    const refused = client({}, unavailable());
    await refused.request('post', '/web-setup/contacts/subscription-groups', { body: { name: 'Offers' } });
    expect(requests).toHaveLength(2);
  });

  it('ends with its signal, also between repetitions', async () => {
    const controller = new AbortController();
    const waiting = client({ retryDelayMs: DAY, maxRetryDelayMs: DAY }, unavailable()).request(
      'get',
      '/web-setup/contacts',
      { signal: controller.signal },
    );
    await expect.poll(() => requests.length).toBe(1);
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
  });

  it('has values in the path that cannot change the operation', async () => {
    const read = (id: string) => client({ maxRetries: 0 }).message(id);
    expect((await failure(read('a/../b?c'))).code).toBe('MESSAGE_NOT_FOUND');
    await expect(read('..')).rejects.toThrow(TypeError);
  });

  it('returns text and bytes as they are', async () => {
    const postrider = client();
    const imported = await postrider.request('post', '/web-setup/suppressions/import', {
      contentType: 'text/csv',
      body: 'gone@example.org\n',
    });
    expect(imported).toMatchObject({ rejected: 0 });
    const csv = await postrider.request('get', '/web-setup/reputation', { query: { format: 'csv' } });
    expect(csv).toMatch(/^[\w,]+\r?\n/);
  });

  it('to another server names the likely cause', async () => {
    const error = await failure(
      client({}, { status: 404, body: '<html>' }).request('get', '/web-setup/keys'),
    );
    expect(error).toMatchObject({ status: 404, code: 'INVALID_RESPONSE' });
    expect(() => client({ url: 'ftp://example.com' })).toThrow(TypeError);
  });
});

describe('pages', () => {
  it('are requested until the last one', async () => {
    for (const n of [1, 2, 3]) await client().send({ ...mailTo('pages@example.org'), subject: `Order ${n}` });
    const postrider = client();
    const sizes = [];
    const query = { recipient: 'pages@example.org', limit: 2 };
    for await (const { messages } of postrider.pages('/web-setup/messages', { query }))
      sizes.push(messages.length);
    expect(sizes).toEqual([2, 1]);
    const subjects = [];
    for await (const { subject } of postrider.messages(query)) subjects.push(subject);
    expect(subjects).toEqual(['Order 3', 'Order 2', 'Order 1']);
  });

  it('of the event feed continue where the last run ended', async () => {
    const before = await collect(client().pages('/web-setup/events', { query: { limit: 1 } }));
    expect(before.length).toBeGreaterThan(1);
    const [first] = before;
    const query = { lastKey: first?.nextKey ?? '' };
    const [next] = await collect(client().pages('/web-setup/events', { query }));
    expect(next?.events[0]).toEqual(before[1]?.events[0]);
  });
});

describe('a webhook', () => {
  const secret = `whsec_${Buffer.from('a secret of the test').toString('base64')}`;
  const body = JSON.stringify({ id: 'evt_1', type: 'email_delivered' });
  const now = Date.UTC(2026, 0, 15);
  const signed = (time = now, by = secret) => ({
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(time / 1000),
    'webhook-signature': new Webhook(by).sign('evt_1', new Date(time), body),
  });

  it('is accepted with a signature of the secret, also next to another', () => {
    expect(verifyWebhook(secret, signed(), body, { now })).toMatchObject({
      id: 'evt_1',
      type: 'email_delivered',
    });
    const both = `v1,AAAA ${signed()['webhook-signature']}`;
    const headers = new Headers({ ...signed(), 'webhook-signature': both });
    expect(verifyWebhook(secret, headers, Buffer.from(body), { now }).id).toBe('evt_1');
  });

  it.each<[string, Record<string, string | string[]>, string]>([
    ['another secret', signed(now, 'whsec_AAAA'), body],
    ['another body', signed(), `${body} `],
    ['another id', { ...signed(), 'webhook-id': 'evt_2' }, body],
    ['an old time', signed(now - 301_000), body],
    ['a future time', signed(now + 301_000), body],
    ['a time that is no number', { ...signed(), 'webhook-timestamp': 'NaN' }, body],
    ['no signature', { ...signed(), 'webhook-signature': '' }, body],
    [
      'another version',
      { ...signed(), 'webhook-signature': signed()['webhook-signature'].replace('v1', 'v2') },
      body,
    ],
    ['two ids', { ...signed(), 'webhook-id': ['evt_1', 'evt_2'] }, body],
  ])('with %s is refused', (_, headers, text) => {
    expect(() => verifyWebhook(secret, headers, text, { now })).toThrow(WebhookError);
  });

  it('has a tolerance that the caller chooses, and needs a secret', () => {
    const options = { now, toleranceSeconds: 600 };
    expect(verifyWebhook(secret, signed(now - 301_000), body, options).id).toBe('evt_1');
    expect(() => verifyWebhook('whsec_', signed(), body, { now })).toThrow(WebhookError);
  });
});

describe('the package', () => {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-client-'));
  const installed = join(dir, 'node_modules/postrider-client');
  const run = promisify(execFile);
  beforeAll(() => {
    execFileSync('npm', ['run', '--silent', 'build'], { cwd: CLIENT });
    execFileSync('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', dir], { cwd: CLIENT });
    mkdirSync(installed, { recursive: true });
    const [file = ''] = readdirSync(dir).filter((name) => name.endsWith('.tgz'));
    execFileSync('tar', ['-xzf', join(dir, file), '--strip-components=1', '-C', installed]);
    for (const block of codeBlocks(readFileSync(join(CLIENT, 'README.md'), 'utf8')))
      if (block.kind === 'file') writeFileSync(join(dir, block.path), block.text);
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  const example = async (name: string) => {
    const env = { ...process.env, MAIL_URL: daemon.url, MAIL_KEY: key };
    const { stdout } = await run(process.execPath, [name], { cwd: dir, env });
    return stdout.trimEnd().split('\n');
  };

  it('contains the program, its types, and no dependencies', () => {
    const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: CLIENT });
    const [{ files }] = JSON.parse(packed.toString()) as [{ files: { path: string }[] }];
    const modules = readdirSync(join(CLIENT, 'src')).map((name) => name.replace(/\.ts$/, ''));
    const built = modules.flatMap((name) => [`dist/${name}.d.ts`, `dist/${name}.js`]);
    const paths = files.map(({ path }) => path);
    expect(paths.sort()).toEqual(['LICENSE', 'README.md', ...built, 'package.json'].sort());
    const manifest: Record<string, unknown> = JSON.parse(readFileSync(join(CLIENT, 'package.json'), 'utf8'));
    const { version } = JSON.parse(readFileSync(join(CLIENT, '../../package.json'), 'utf8')) as {
      version: string;
    };
    expect(manifest).toMatchObject({ name: 'postrider-client', version, license: 'MIT', type: 'module' });
    for (const field of ['dependencies', 'peerDependencies', 'optionalDependencies'])
      expect(manifest).not.toHaveProperty(field);
  });

  it('has types with which the examples compile, and wrong requests do not', async () => {
    writeFileSync(join(dir, 'wrong.mts'), WRONG);
    const compilerOptions = {
      noEmit: true,
      strict: true,
      checkJs: true,
      target: 'es2023',
      module: 'nodenext',
      types: ['node'],
      typeRoots: [join(CLIENT, '../../node_modules/@types')],
    };
    const files = readdirSync(dir).filter((name) => /\.m[jt]s$/.test(name));
    expect(files).toHaveLength(7);
    writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
    const { stdout } = await run(process.execPath, [COMPILER, '-p', dir]).catch(
      (error: { stdout: string }) => error,
    );
    expect(stdout).toBe('');
  });

  it('runs the examples', async () => {
    expect(await example('send.mjs')).toEqual([expect.stringMatching(/^\S+$/)]);
    expect(await example('batch.mjs')).toEqual([expect.stringMatching(/^\w+$/), 'VALIDATION_ERROR']);
    expect(await example('errors.mjs')).toEqual([expect.stringMatching(/^400 VALIDATION_ERROR to/)]);
    expect((await example('lists.mjs')).length).toBeGreaterThan(2);
    await account.post('/web-setup/contacts', { email: 'eve@example.org' });
    expect(Number(await example('operations.mjs'))).toBeGreaterThan(1);
  });

  it('verifies the calls of the daemon', async () => {
    const port = await freePort();
    const address = `http://127.0.0.1:${port}/`;
    const { data } = await account.post<{ webhookId: string; secret: string }>('/web-setup/webhooks', {
      url: address,
      events: '*',
    });
    const env = { ...process.env, PORT: String(port), WEBHOOK_SECRET: data.secret };
    const receiver = spawn(process.execPath, ['receiver.mjs'], {
      cwd: dir,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => {
      receiver.kill();
    });
    let output = '';
    receiver.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    await expect.poll(() => output).toContain('ready');
    await account.post(`/web-setup/webhooks/${data.webhookId}/test`);
    await expect.poll(() => output).toMatch(/ready\nemail_\w+ \S+\n/);
    expect((await fetch(address, { method: 'POST', body: '{}' })).status).toBe(401);
  });
});

/** The compiler reports an expected error that is none. */
const WRONG = `
import { Postrider } from 'postrider-client';

const postrider = new Postrider({ url: 'http://127.0.0.1:8080', key: 'k' });
// @ts-expect-error There is no such operation.
void postrider.request('delete', '/web-setup/messages');
// @ts-expect-error The id is missing.
void postrider.request('get', '/web-setup/messages/{id}');
// @ts-expect-error A send needs a sender.
void postrider.send({ to: 'ada@example.org' });
// @ts-expect-error The stream is one of three.
void postrider.request('get', '/web-setup/suppressions', { query: { stream: 'all mail' } });
// @ts-expect-error Only sends have a key.
void postrider.request('post', '/web-setup/templates', { body: { name: 'A' }, idempotencyKey: 'x' });
// @ts-expect-error A list without pages.
void postrider.pages('/web-setup/account');
const page: Promise<{ count: number }> = postrider.request('get', '/web-setup/contacts');
void page;
`;
