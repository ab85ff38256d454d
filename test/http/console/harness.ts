import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import * as z from 'zod';
import { createAccounts } from '../../../src/accounts/accounts.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { withoutPause } from '../../../src/core/concurrency/slices.ts';
import { createIds } from '../../../src/core/ids.ts';
import { createLog, type Log } from '../../../src/core/log.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { isRefusal, type Refusal } from '../../../src/core/refusal.ts';
import { createSeal } from '../../../src/core/seal.ts';
import { createResolver } from '../../../src/dns/resolver.ts';
import { createConsole } from '../../../src/http/console/console.ts';
import { buildingDocument, openApiRoute } from '../../../src/http/openapi/openapi.ts';
import { type Caller, type Route, routesOf } from '../../../src/http/route.ts';
import { createMediaFiles } from '../../../src/media/files.ts';
import { createPeople, type Invited } from '../../../src/people/people.ts';
import { createWriter } from '../../../src/store/database/writer.ts';
import type { MemberRole } from '../../../src/store/people/people.ts';
import { createLocalReader, type Reader } from '../../../src/store/readers/reads.ts';
import { createTables } from '../../../src/store/tables.ts';
import { openNewDatabase } from '../../support/store.ts';

/** The console on a free port, with a database, two accounts and routes of the API that do nothing. */
export interface TestConsoleOptions {
  env?: Record<string, string>;
  /** Routes of the API. Default: SAMPLE_ROUTES. */
  routes?: (reader: Reader) => Route[];
  /** Id of the account "Shop"; default: generated. */
  id?: string;
  /** Default: none. */
  log?: Log;
  /** Reads wait for it. */
  beforeReads?: Promise<void>;
}

const route = routesOf({ tag: 'Test', scope: 'setup', permissions: ['read', 'prepare'] });
const description = {
  summary: 'Test',
  handle: ({ caller }: { caller: Caller }) => ({ accountId: caller.accountId, by: caller.keyId }),
};

/** Operations that stand for the API: their responses show the account. */
export const SAMPLE_ROUTES: Route[] = [
  route('GET /web-setup/messages', { ...description, operationId: 'listMessages' }),
  route('POST /web-setup/templates', {
    ...description,
    operationId: 'createTemplate',
    summary: 'Create a template',
    body: z.object({ reason: z.string().optional() }).optional(),
    auditDetail: (body) => body?.reason,
  }),
  route('POST /web-setup/campaigns/{campaignId}/send', {
    ...description,
    operationId: 'sendCampaign',
    permission: 'send',
  }),
  route('DELETE /web-setup/contacts/{contactIdentifier}', {
    ...description,
    operationId: 'eraseContact',
    permission: 'erase',
    isConfirmed: true,
  }),
  routesOf({ tag: 'Test', scope: 'operator' })('GET /web-setup/queue', {
    ...description,
    operationId: 'getQueue',
  }),
  routesOf({ tag: 'Test', scope: 'setup' })('GET /web-setup/unlisted', {
    ...description,
    operationId: 'anOperationWithoutPermission',
  }),
];

/** A message that attempts what a sender can. */
export const HOSTILE_MESSAGE = `<!doctype html><title>Offer</title><p style="color: red">Buy now</p>
<img src="http://localhost:ATTACKER/open"><link rel="stylesheet" href="http://localhost:ATTACKER/a.css">
<style>p { background: url("http://localhost:ATTACKER/background") }</style>
<meta http-equiv="refresh" content="0; url=http://localhost:ATTACKER/refresh">
<script>parent.document.title = 'script'</script><img src="data:," onerror="parent.document.title = 'handler'">
<form action="/console/api/web-setup/templates" method="post"><button>Send</button></form>
<iframe src="http://localhost:ATTACKER/frame"></iframe><base href="http://localhost:ATTACKER/">
<a id="link" href="http://localhost:ATTACKER/link">Link</a>`;

export async function startConsole(options: TestConsoleOptions = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-console-'));
  const directory = join(dir, 'console');
  mkdirSync(join(directory, 'assets'), { recursive: true });
  writeFileSync(join(directory, 'index.html'), '<!doctype html><title>Postrider</title>');
  writeFileSync(join(directory, 'assets/index-1a2b3c.js'), 'export const loaded = true;');
  writeFileSync(
    join(directory, 'assets/index-1a2b3c.js.br'),
    brotliCompressSync('export const loaded = true;'),
  );
  const clock = { time: Date.parse('2026-01-31T12:00:00Z'), now: () => clock.time };
  const db = openNewDatabase(dir);
  const tables = createTables(db);
  const writer = createWriter(db, tables);
  const ids = createIds(clock, systemRandom);
  const seal = createSeal(Buffer.alloc(32, 7), systemRandom);
  const deps = { tables, writer, clock, ids, seal };
  const local = createLocalReader(tables);
  const { beforeReads = Promise.resolve() } = options;
  const reader: Reader = {
    table: (...args) => beforeReads.then(() => local.table(...args)),
    query: (...args) => beforeReads.then(() => local.query(...args)),
  };
  const accounts = createAccounts(deps);
  const people = createPeople(deps);
  const account = await accountNamed('Shop', options.id);
  clock.time++;
  const other = await accountNamed('Other');
  const log = options.log ?? createLog({ level: 'silent', hashAddresses: false });
  const config = loadConfig({
    cwd: dir,
    file: null,
    env: { POSTRIDER_CONSOLE__LISTEN: '127.0.0.1:0', ...options.env },
  });
  // No test looks up a name: the providers have addresses.
  const resolver = createResolver({
    resolvers: ['127.0.0.1:1'],
    timeoutMs: 1000,
    monotonic: clock,
    random: systemRandom,
  });
  const context = { ...deps, monotonic: clock, reader, random: systemRandom, config, log };
  const console = createConsole(context, {
    resolver,
    passwordLogCost: 4,
    webhooks: { health: async () => [] },
    mediaFiles: createMediaFiles({ tables, reader }),
    routes: options.routes?.(reader) ?? SAMPLE_ROUTES,
    document: openApiRoute(async () =>
      withoutPause(buildingDocument({ routes: SAMPLE_ROUTES, openRoutes: [], version: '1.2.3' })),
    ),
    concurrencyOf: () => null,
    installationAttention: async () => ({ problems: [], counts: { queue: 0, inbox: 0 } }),
    directory,
    apiUrl: 'http://127.0.0.1:8080',
  });
  const stop = async () => {
    await console.close(0);
    resolver.close();
    await writer.close();
    db.close();
    rmSync(dir, { recursive: true, force: true });
  };
  await console.listen().catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  const base = `http://127.0.0.1:${console.address()?.port}`;

  async function accountNamed(name: string, accountId?: string): Promise<string> {
    const created = await accounts.create({ name, ...(accountId === undefined ? {} : { accountId }) });
    if (isRefusal(created)) throw new Error(created.message);
    return created.account.accountId;
  }

  /** Ids of different people sort by their time. */
  const nextMoment = () => {
    clock.time++;
  };

  /** Signs in with a link; returns the browser. */
  async function signInWith(
    invited: Pick<Invited, 'person'> & { link: Invited['link'] | null },
  ): Promise<TestBrowser> {
    const browser = createTestBrowser(base);
    const response = await browser.post('/console/session/link', { token: invited.link?.token });
    if (response.status !== 200) throw new Error(`the sign-in failed: ${JSON.stringify(response.body)}`);
    return browser;
  }

  return {
    ...deps,
    base,
    console,
    people,
    accounts,
    account,
    other,
    browser: () => createTestBrowser(base),
    signInWith,
    operator: async (email = 'ops@example.com') => {
      nextMoment();
      return signInWith(accepted(await people.createOperator({ email })));
    },
    member: async (role: MemberRole, email = `${role}@example.com`) => {
      nextMoment();
      return signInWith(accepted(await people.invite(account, { email, role }, 'operator')));
    },
    stop,
  };
}

/** The value of a function that can refuse; throws its refusal. */
export function accepted<T>(value: T): Exclude<T, Refusal> {
  if (isRefusal(value)) throw new Error(value.message);
  // Sound: `isRefusal` excludes refusals.
  return value as Exclude<T, Refusal>;
}

export interface TestResponse {
  status: number;
  body: Record<string, unknown>;
  data: Record<string, unknown>;
  headers: Headers;
}

/** A browser: stores the cookie and sends what the application sends. */
export interface TestBrowser {
  cookie: string;
  pageToken: string;
  /** The headers of a request of the page. */
  credentials(): Record<string, string>;
  send(
    method: string,
    path: string,
    options?: { body?: unknown; headers?: Record<string, string> },
  ): Promise<TestResponse>;
  get(path: string, account?: string): Promise<TestResponse>;
  put(path: string, body: unknown, account?: string): Promise<TestResponse>;
  patch(path: string, body: unknown, account?: string): Promise<TestResponse>;
  post(path: string, body?: unknown, account?: string): Promise<TestResponse>;
  delete(path: string, account?: string): Promise<TestResponse>;
}

export function createTestBrowser(base: string): TestBrowser {
  const withAccount = (account: string | undefined) => (account === undefined ? {} : { 'X-Id': account });
  const browser: TestBrowser = {
    cookie: '',
    pageToken: '',
    credentials: () => ({
      ...(browser.cookie === '' ? {} : { Cookie: browser.cookie }),
      ...(browser.pageToken === '' ? {} : { 'X-Postrider-Page-Token': browser.pageToken }),
    }),
    send: async (method, path, { body, headers = {} } = {}) => {
      // Not every container knows the name localhost.
      const response = await fetch(base.replace('//localhost:', '//127.0.0.1:') + path, {
        method,
        redirect: 'manual',
        headers: {
          Accept: 'application/json',
          'X-Postrider-Console': '1',
          ...browser.credentials(),
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const cookie = response.headers.get('set-cookie');
      if (cookie !== null) browser.cookie = cookie.split(';', 1)[0] ?? '';
      const text = await response.text();
      const parsed = (response.headers.get('content-type') ?? '').includes('json')
        ? (JSON.parse(text) as Record<string, unknown>)
        : {};
      const data = (parsed['data'] ?? {}) as Record<string, unknown>;
      if (typeof data['pageToken'] === 'string') browser.pageToken = data['pageToken'];
      return { status: response.status, headers: response.headers, body: parsed, data };
    },
    get: (path, account) => browser.send('GET', path, { headers: withAccount(account) }),
    put: (path, body, account) => browser.send('PUT', path, { body, headers: withAccount(account) }),
    patch: (path, body, account) => browser.send('PATCH', path, { body, headers: withAccount(account) }),
    post: (path, body = {}, account) => browser.send('POST', path, { body, headers: withAccount(account) }),
    delete: (path, account) => browser.send('DELETE', path, { headers: withAccount(account) }),
  };
  return browser;
}

export type TestConsole = Awaited<ReturnType<typeof startConsole>>;
