import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../support/api-client.ts';
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

type Client = (url: string, type: string, key: string) => [program: string, args: string[]];
const program =
  (name: string, ...args: string[]): Client =>
  (url, type, key) => [name, [...args, url, type, key, api.accountId, file]];
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
const curlRequest = (url: string, type: string, key: string) => [
  '-H',
  `Content-Type: ${type}`,
  '-H',
  `X-Api-Key: ${key}`,
  '-H',
  `X-Id: ${api.accountId}`,
  url,
];

const CLIENTS: Record<string, Client> = {
  urllib: program(PYTHON, '-c', URLLIB),
  ...(hasRequests ? { requests: program('python3', '-c', REQUESTS) } : {}),
  fetch: program(process.execPath, '--input-type=module', '-e', FETCH, '--'),
  php: program('php', '-r', PHP, '--'),
  go: program(goProgram),
  curl: (url, type, key) => ['curl', [...curlOptions(), ...curlRequest(url, type, key)]],
  'curl without Expect': (url, type, key) => [
    'curl',
    [...curlOptions(), '-H', 'Expect:', ...curlRequest(url, type, key)],
  ],
};

beforeAll(async () => {
  if (required.missing) return;
  daemon = await startInProcess({ 'limits.setupPerSecond': 1000 });
  api = await daemon.account('A');
  writeFileSync(file, JSON.stringify({ html: 'x'.repeat(BYTES) }));
  writeFileSync(join(dir, 'client.go'), GO);
  await run('go', ['build', '-o', goProgram, join(dir, 'client.go')], {
    env: { ...process.env, GOCACHE: join(dir, 'cache'), GO111MODULE: 'off', HOME: dir },
  });
});
afterAll(async () => {
  if (!required.missing) await daemon.stop();
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

describe.skipIf(required.missing)(`a client that is still sending${required.reason}`, () => {
  it.each(Object.keys(CLIENTS).flatMap((client) => REFUSED.map((refused) => ({ client, ...refused }))))(
    '$client reads $status of $path',
    async ({ client, path, status, code, type = JSON_TYPE, key = () => api.keys.transactional }) => {
      const [name, args] = CLIENTS[client]?.(daemon.url + path, type, key()) ?? ['false', []];
      const { stdout } = await run(name, args);
      expect(stdout.trim()).toBe(client.startsWith('curl') ? String(status) : `${status} ${code}`);
    },
  );
});
