import { execFile, execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { ZoneRecord } from '../../src/dns/zone-record.ts';
import { type Credentials, createApiClient } from '../support/api-client.ts';
import { startChild } from '../support/child.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { CTRL_C, CTRL_D, runOnTerminal } from '../support/terminal.ts';

/*
 * `postrider init` in an empty directory, up to a delivered message. The operator runs four commands: init, serve,
 * domain verify, and the request that sends.
 */
const terminal = requirePrograms('python3', 'terminal');
const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
const HOST = 'mail.postrider.example';
const ADDRESS = '192.0.2.25';
const POSTAL = 'Hauptstrasse 1, 10115 Berlin, DE';

let dns: DnsServer;
let sink: Sink;
let dir: string;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  [dns, sink] = await Promise.all([startDnsServer(), startSink()]);
  publishMailHost(dns, 'empfang.example', sink.host);
});

afterAll(async () => {
  await sink.close();
  await dns.close();
});

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'postrider-init-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  env = {
    PATH: process.env['PATH'],
    // Other tests use its default port.
    POSTRIDER_CONSOLE__LISTEN: 'off',
    POSTRIDER_DNS__RESOLVERS: JSON.stringify([dns.address]),
    POSTRIDER_DELIVERY__PORT: String(sink.port),
    POSTRIDER_DELIVERY__ALLOWPRIVATENETWORKS: 'true',
  };
});

interface Result {
  status: number;
  out: string;
  err: string;
}

function run(...args: string[]): Promise<Result> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [PROGRAM, ...args], { cwd: dir, env }, (error, out, err) =>
      resolve({ status: typeof error?.code === 'number' ? error.code : 0, out, err }),
    );
    child.stdin?.end();
  });
}

async function listeners(): Promise<Record<'api' | 'pages' | 'mx', string>> {
  const [api, pages, mx] = [await freePort(), await freePort(), await freePort()];
  return { api: `127.0.0.1:${api}`, pages: `127.0.0.1:${pages}`, mx: `127.0.0.1:${mx}` };
}

/** Starts the daemon on what `init` created, verifies the domain and delivers a message. */
async function deliver(api: string, credentials: Credentials, domain: string, user: string): Promise<void> {
  const daemon = startChild(process.execPath, [PROGRAM, 'serve'], { cwd: dir, env });
  try {
    await eventually('the daemon to be up', () => {
      if (!daemon.running) throw new Error(daemon.output);
      return daemon.output.includes('postrider started');
    });
    const zone: ZoneRecord[] = JSON.parse((await run('zone', '--json')).out);
    for (const { name } of zone) dns.remove(name);
    dns.publish(zone);
    dns.publish(JSON.parse((await run('domain', 'show', domain, '--json')).out).dnsRecords);
    const verified = await run('domain', 'verify', domain);
    expect(verified.status, verified.out + verified.err).toBe(0);
    const client = createApiClient(`http://${api}`, credentials);
    const to = `${user}@empfang.example`;
    const sent = await client.send({ ...SHORT_MAIL, from: `shop@${domain}`, to });
    const { messageId } = sent.data;
    await eventually('the message to be delivered', async () => {
      const { status } = await client.message(messageId);
      return status === 'delivered';
    });
  } finally {
    expect(await daemon.kill('SIGTERM')).toEqual({ code: 0, signal: null });
  }
}

describe('init', () => {
  it('sets up an empty directory from options, up to a delivered message', async () => {
    const { api, pages, mx } = await listeners();
    const names = ['--hostname', HOST, '--public-address', ADDRESS, '--domain', 'optionen.example'];
    const addresses = ['--listen', api, '--public', pages, '--mx', mx];
    const account = ['--account', 'Shop', '--company', 'Shop Ltd', '--address', POSTAL];
    const { status, out, err } = await run('init', '--yes', '--json', ...names, ...addresses, ...account);
    expect(status, err).toBe(0);
    const created = JSON.parse(out);
    expect(created.configFile).toBe(join(dir, 'config/postrider.toml'));
    expect(created.domain).toMatchObject({ name: 'optionen.example' });
    expect(created.zone).toContainEqual(expect.objectContaining({ type: 'A', name: HOST, value: ADDRESS }));
    expect(created.next).toHaveLength(3);
    expect(readFileSync(created.configFile, 'utf8')).not.toContain('[webhooks]');
    expect(statSync(created.configFile).mode & 0o777).toBe(0o640);
    expect(statSync(join(dir, 'data')).mode & 0o777).toBe(0o700);
    expect((await run('config', 'check')).status).toBe(0);
    await deliver(api, created.account, 'optionen.example', 'ada');
  });

  it.skipIf(terminal.missing)(`asks on a terminal, up to a delivered message${terminal.reason}`, async () => {
    const { api, pages, mx } = await listeners();
    const { status, shown } = await runOnTerminal(
      [process.execPath, PROGRAM, 'init', '--no-doctor', '--public', pages, '--public-address', ADDRESS],
      // Host name (the first two answers are invalid), data, API, MX, submission, TLS, account, company, address, domain, other senders,
      // webhooks to private addresses.
      [
        'not a name',
        'mail',
        HOST,
        '',
        api,
        mx,
        '',
        'none',
        'Shop',
        'Shop Ltd',
        POSTAL,
        'terminal.example',
        'yes',
        'yes',
      ],
      { cwd: dir, env },
    );
    expect(status, shown).toBe(0);
    expect(shown).toContain('must be a host name such as');
    expect(readFileSync(join(dir, 'config/postrider.toml'), 'utf8')).toContain('dmarcPolicy = "any"');
    expect(shown).toContain('every account can then reach the hosts of that network');
    expect(readFileSync(join(dir, 'config/postrider.toml'), 'utf8')).toContain('allowPrivateNetworks = true');
    expect(shown).toContain('mail: must be a fully qualified name');
    expect(shown).toMatch(
      /Next:\s+1\. node \S+\/main\.js serve\s+2\. node \S+\/main\.js domain verify terminal\.example\s+\(.*\)\s+3\. curl /,
    );
    expect(shown).toMatch(/^mail\.postrider\.example\.\t3600\tIN\tMX\t10 mail\.postrider\.example\./m);
    const credentials: Credentials = JSON.parse(/^\{[\s\S]*?^\}/m.exec(shown)?.[0] ?? '{}');
    await deliver(api, credentials, 'terminal.example', 'bob');
  });

  it.skipIf(terminal.missing).each([
    ['Ctrl-C', CTRL_C],
    ['Ctrl-D', CTRL_D],
  ])(`leaves nothing after %s at a question${terminal.reason}`, async (_, key) => {
    const command = [process.execPath, PROGRAM, 'init'];
    const { status, shown } = await runOnTerminal(command, [HOST, '', key], { cwd: dir, env });
    expect(shown).toContain('Interrupted: nothing was created');
    expect(status).toBe(1);
    expect(readdirSync(dir)).toEqual([]);
  });

  it('names the options that are missing without a terminal', async () => {
    const { status, err } = await run('init', '--hostname', HOST);
    expect(status).toBe(2);
    expect(err).toMatch(/is not a terminal: specify --data, .*--account, or --yes/);
    expect(readdirSync(dir)).toEqual([]);
  });

  it('states how to start over, and can then', async () => {
    const { api, pages, mx } = await listeners();
    const args = ['--yes', '--no-doctor', '--hostname', HOST, '--listen', api, '--public', pages, '--mx', mx];
    const first = await run('init', ...args);
    expect(first.out).toMatch(/\n {2}5\. curl -sS .*\/transactional\/send/);
    const { status, err } = await run('init', ...args);
    expect(status).toBe(1);
    const command = /To start over, .* run "(rm -r [^"]+)", and run init again/.exec(err)?.[1] ?? '';
    expect(command.split(' ')).toEqual(['rm', '-r', join(dir, 'config/postrider.toml'), join(dir, 'data')]);
    execFileSync('sh', ['-c', command]);
    expect((await run('init', ...args)).status).toBe(0);
  });

  it.each([
    ['configuration', 'config', 'postrider.toml', /postrider\.toml exists: nothing was changed/],
    ['data directory', 'data', 'postrider.db', /data is not empty: nothing was changed/],
  ])('never overwrites an existing %s', async (_, folder, name, message) => {
    mkdirSync(join(dir, folder));
    writeFileSync(join(dir, folder, name), 'precious');
    const { status, err } = await run('init', '--yes', '--hostname', HOST);
    expect(status).toBe(1);
    expect(err).toMatch(message);
    expect(readFileSync(join(dir, folder, name), 'utf8')).toBe('precious');
    expect(readdirSync(dir)).toEqual([folder]);
  });

  it.each([
    ['a host name', ['--hostname', 'not a name'], 2, /--hostname not a name: must be a host name/],
    ['a listener', ['--listen', '8080'], 2, /--listen 8080: must be "address:port"/],
    ['an address', ['--public-address', 'here'], 2, /--public-address here: must be an IP address/],
    ['a kind of TLS', ['--tls', 'ssl'], 2, /--tls ssl: must be acme, files or none/],
    ['the agreement', ['--tls', 'acme'], 2, /There is no default for --agree-to-terms/],
    ['a certificate', ['--tls', 'files', '--tls-cert', 'no.pem', '--tls-key', 'no.key'], 2, /no such file/],
    ['an answer', ['--private-webhooks', 'maybe'], 2, /--private-webhooks maybe: must be yes or no/],
    ['a postal address', ['--address', 'somewhere'], 2, /--address somewhere: needs at least/],
    ['a public suffix', ['--domain', 'co.uk'], 1, /init failed: .*removed again/],
    ['a use case', ['--domain', 'kunde.example', '--use-case', 'tx-mars'], 1, /init failed: .*removed again/],
    ['a directory', ['--output', '/proc/postrider/postrider.toml'], 1, /init failed: .*Nothing was created/],
  ])('refuses %s that is invalid, and leaves nothing', async (_, options, status, message) => {
    const base = options.includes('--hostname') ? [] : ['--hostname', HOST];
    const result = await run('init', '--yes', '--no-doctor', ...base, ...options);
    expect(result.err).toMatch(message);
    expect(result.status).toBe(status);
    expect(existsSync(join(dir, 'config'))).toBe(false);
    expect(readdirSync(dir)).toEqual([]);
  });
});
