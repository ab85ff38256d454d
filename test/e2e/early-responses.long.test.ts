// Long: uploads 12 MB with the HTTP clients of other languages.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type ClientRequest, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/ids.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createStartupServer } from '../../src/http/startup.ts';
import type { ApiClient } from '../support/api-client.ts';
import { freePort } from '../support/free-port.ts';
import { type InProcess, startInProcess } from '../support/in-process-daemon.ts';
import { PYTHON, requirePrograms } from '../support/required-programs.ts';

/** Clients that send 12 MB read the response to a request that is refused before its body has arrived. */
const required = requirePrograms('python3', 'curl', 'go', 'php');
const BYTES = 12 * 1024 * 1024;

/** Each prints the status and the code of the error; arguments: URL, type, key, account, file of the body. */
const URLLIB = `
import json, sys, urllib.error, urllib.request
url, type, key, account, file = sys.argv[1:]
headers = {'Content-Type': type, 'X-Api-Key': key, 'X-Id': account}
request = urllib.request.Request(url, data=open(file, 'rb').read(), headers=headers)
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code, json.load(error)['error']['code'])
`;
const REQUESTS = `
import sys, requests
url, type, key, account, file = sys.argv[1:]
headers = {'Content-Type': type, 'X-Api-Key': key, 'X-Id': account}
with requests.Session() as session:
    for _ in range(2):
        response = session.post(url, data=open(file, 'rb').read(), headers=headers)
print(response.status_code, response.json()['error']['code'])
`;
const FETCH = `
const [url, type, key, account, file] = process.argv.slice(1);
const body = (await import('node:fs')).readFileSync(file);
const headers = { 'content-type': type, 'x-api-key': key, 'x-id': account };
const response = await fetch(url, { method: 'POST', headers, body });
console.log(response.status, (await response.json()).error.code);
`;
const PHP = `
[$_, $url, $type, $key, $account, $file] = $argv;
$context = stream_context_create(['http' => ['method' => 'POST', 'ignore_errors' => true,
  'header' => "Content-Type: $type\\r\\nX-Api-Key: $key\\r\\nX-Id: $account", 'content' => file_get_contents($file)]]);
$body = json_decode(file_get_contents($url, false, $context), true);
echo explode(' ', $http_response_header[0])[1], ' ', $body['error']['code'];
`;
const GO = `package main

import ("bytes"; "encoding/json"; "fmt"; "net/http"; "os")

func main() {
	body, _ := os.ReadFile(os.Args[5])
	request, _ := http.NewRequest("POST", os.Args[1], bytes.NewReader(body))
	request.Header.Set("Content-Type", os.Args[2])
	request.Header.Set("X-Api-Key", os.Args[3])
	request.Header.Set("X-Id", os.Args[4])
	response, err := http.DefaultClient.Do(request)
	if err != nil { panic(err) }
	var result struct { Error struct { Code string } }
	if err := json.NewDecoder(response.Body).Decode(&result); err != nil { panic(err) }
	fmt.Println(response.StatusCode, result.Error.Code)
}
`;

const run = promisify(execFile);
const dir = mkdtempSync(join(tmpdir(), 'postrider-early-'));
const file = join(dir, 'body.json');
const goProgram = join(dir, 'client');
let daemon: InProcess;
let api: ApiClient;
/** Accepts the body, has a nearly full disk, and serves eight requests of an account at a time. */
let full: InProcess;
let starting: ReturnType<typeof createStartupServer>;
let startingUrl: string;

/** What a client sends. */
interface Sent {
  url: string;
  type: string;
  key: string;
  account: string;
}
type Client = (sent: Sent) => [program: string, args: string[]];
const program =
  (name: string, ...args: string[]): Client =>
  ({ url, type, key, account }) => [name, [...args, url, type, key, account, file]];
/** Often installed for another Python than that of the system. */
const hasRequests = await run('python3', ['-c', 'import requests']).then(
  () => true,
  () => false,
);
const curlOptions = () => [
  '-sS',
  '-o',
  join(dir, 'answer'),
  '-w',
  '%{http_code} ',
  '--data-binary',
  `@${file}`,
];
const curlRequest = ({ url, type, key, account }: Sent) => [
  '-H',
  `Content-Type: ${type}`,
  '-H',
  `X-Api-Key: ${key}`,
  '-H',
  `X-Id: ${account}`,
  url,
];

const CLIENTS: Record<string, Client> = {
  urllib: program(PYTHON, '-c', URLLIB),
  ...(hasRequests ? { requests: program('python3', '-c', REQUESTS) } : {}),
  fetch: program(process.execPath, '--input-type=module', '-e', FETCH, '--'),
  php: program('php', '-r', PHP, '--'),
  go: program(goProgram),
  curl: (sent) => ['curl', [...curlOptions(), ...curlRequest(sent)]],
  'curl without Expect': (sent) => ['curl', [...curlOptions(), '-H', 'Expect:', ...curlRequest(sent)]],
};

beforeAll(async () => {
  if (required.missing) return;
  daemon = await startInProcess({ 'limits.setupPerSecond': 1000 });
  api = await daemon.account('A');
  full = await startInProcess({
    'limits.freeDiskBytes': 1e15,
    'limits.sendBytes': 2 * BYTES,
    'limits.account.concurrentRequests': 8,
  });
  const port = await freePort();
  starting = createStartupServer({
    listen: `127.0.0.1:${port}`,
    ids: createIds(systemClock, systemRandom),
    state: () => 'the database is being migrated',
  });
  await starting.listen();
  startingUrl = `http://127.0.0.1:${port}`;
  writeFileSync(file, JSON.stringify({ html: 'x'.repeat(BYTES) }));
  writeFileSync(join(dir, 'client.go'), GO);
  await run('go', ['build', '-o', goProgram, join(dir, 'client.go')], {
    env: { ...process.env, GOCACHE: join(dir, 'cache'), GO111MODULE: 'off', HOME: dir },
  });
});
afterAll(async () => {
  if (!required.missing) await Promise.all([daemon.stop(), full.stop(), starting.close()]);
  rmSync(dir, { recursive: true, force: true });
});

const JSON_TYPE = 'application/json';
interface Refused {
  path: string;
  status: number;
  code: string;
  type?: string;
  key?(): string;
}
const REFUSED: Refused[] = [
  { path: '/transactional/send', status: 413, code: 'PAYLOAD_TOO_LARGE' },
  { path: '/web-setup/contacts', status: 413, code: 'PAYLOAD_TOO_LARGE', key: () => api.keys.setup },
  { path: '/transactional/send', status: 401, code: 'UNAUTHENTICATED', key: () => 'pr_unknown' },
  { path: '/transactional/send', status: 403, code: 'INSUFFICIENT_SCOPE', key: () => api.keys.setup },
  { path: '/transactional/send', status: 415, code: 'UNSUPPORTED_MEDIA_TYPE', type: 'text/plain' },
  { path: '/nowhere', status: 404, code: 'NOT_FOUND' },
];

/**
 * Holds requests of the account, whose bodies do not end, until `end`. Another request of the account can take the place of one
 * of them, which is refused then: one that follows takes its place.
 */
function holdRequests(account: ApiClient, count: number): { end(): void } {
  const held = new Set<ClientRequest>();
  let isHolding = true;
  const hold = (): void => {
    if (!isHolding) return;
    const sent = request(`${full.url}/transactional/send`, {
      method: 'POST',
      headers: {
        'Content-Type': JSON_TYPE,
        'Content-Length': 2 * BYTES - 1,
        'X-Api-Key': account.keys.transactional,
        'X-Id': account.accountId,
      },
    });
    held.add(sent);
    // They end with the test, or are refused. The connection of a refused one would stay open while bytes arrive.
    sent.on('error', () => {});
    sent.on('response', () => sent.destroy());
    sent.on('close', () => {
      held.delete(sent);
      setTimeout(hold, 50);
    });
    sent.write('{"html":"');
  };
  for (let number = 0; number < count; number++) hold();
  // The pace of a body is checked: at least 8 KiB must arrive in a second.
  const dribble = setInterval(() => {
    for (const each of held) each.write(' '.repeat(16 * 1024));
  }, 1000);
  return {
    end: () => {
      isHolding = false;
      clearInterval(dribble);
      for (const each of held) each.destroy();
    },
  };
}

/** The response and its error code that the client printed. */
async function printed(client: string, sent: Sent): Promise<string> {
  const [name, args] = CLIENTS[client]?.(sent) ?? ['false', []];
  return (await run(name, args)).stdout.trim();
}
const shown = (client: string, status: number, code: string) =>
  client.startsWith('curl') ? String(status) : `${status} ${code}`;

describe.skipIf(required.missing)(`a client that is still sending${required.reason}`, () => {
  it.each(Object.keys(CLIENTS).flatMap((client) => REFUSED.map((refused) => ({ client, ...refused }))))(
    '$client reads $status of $path',
    async ({ client, path, status, code, type = JSON_TYPE, key = () => api.keys.transactional }) => {
      const sent = { url: daemon.url + path, type, key: key(), account: api.accountId };
      expect(await printed(client, sent)).toBe(shown(client, status, code));
    },
  );

  it.each(Object.keys(CLIENTS))('%s reads that the account has too many requests', async (client) => {
    const account = await full.account('Busy');
    const held = holdRequests(account, 8);
    try {
      const { accountId, keys } = account;
      // Another small request shows that all are counted.
      await expect
        .poll(async () => (await account.get('/web-setup/domains')).error?.code)
        .toBe('RATE_LIMITED');
      const sent = {
        url: `${full.url}/transactional/send`,
        type: JSON_TYPE,
        key: keys.transactional,
        account: accountId,
      };
      expect(await printed(client, sent)).toBe(shown(client, 429, 'RATE_LIMITED'));
    } finally {
      held.end();
    }
  });

  it.each(Object.keys(CLIENTS))('%s reads that the disk is nearly full', async (client) => {
    const { accountId, keys } = await full.account('Full');
    const url = `${full.url}/web-setup/contacts/import`;
    const sent = { url, type: 'text/csv', key: keys.setup, account: accountId };
    expect(await printed(client, sent)).toBe(shown(client, 503, 'UNAVAILABLE'));
  });

  it.each(Object.keys(CLIENTS))('%s reads that the database is being migrated', async (client) => {
    const { accountId, keys } = api;
    const sent = {
      url: `${startingUrl}/transactional/send`,
      type: JSON_TYPE,
      key: keys.transactional,
      account: accountId,
    };
    expect(await printed(client, sent)).toBe(shown(client, 503, 'UNAVAILABLE'));
  });
});
