import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { HOUR } from '../../src/core/clock.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { HELD } from '../../src/store/messages/queue.ts';
import { createTables } from '../../src/store/tables.ts';
import { type Child, startChild } from '../support/child.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { enqueue } from '../support/store.ts';

/*
 * The built program as an operator uses it first: the configuration file is outside the working directory, which
 * contains neither configuration nor data.
 */
const PROGRAM = new URL('../../dist/main.js', import.meta.url).pathname;
const HOST = 'mail.example.net';
const ADDRESS = '192.0.2.25';

let dns: DnsServer;
let root: string;
let elsewhere: string;
let config: string;

beforeAll(async () => {
  dns = await startDnsServer();
  root = mkdtempSync(join(tmpdir(), 'postrider-operator-'));
  elsewhere = join(root, 'elsewhere');
  mkdirSync(elsewhere);
  mkdirSync(join(root, 'etc'));
  config = join(root, 'etc', 'postrider.toml');
  writeConfig('');
});

afterAll(async () => {
  await dns.close();
  rmSync(root, { recursive: true, force: true });
});

/** `more`: further lines; listeners that it does not configure use free ports. */
function writeConfig(more: string, hostname = HOST): void {
  const listeners = ['api', 'public', 'mx', 'console']
    .filter((section) => !more.includes(`[${section}`))
    .map((section) => `[${section}]\nlisten = "127.0.0.1:0"\n`);
  writeFileSync(
    config,
    `hostname = "${hostname}"\n[data]\ndir = "../state"\n[dns]\nresolvers = ["${dns.address}"]\n[[delivery.egress]]\nname = "main"\npublicAddress = "${ADDRESS}"\n${listeners.join('')}${more}`,
  );
}

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

function environment(more: Record<string, string> = {}): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], HOME: elsewhere, ...more };
}

function run(args: string[], env: Record<string, string> = { POSTRIDER_CONFIG: config }): Promise<Outcome> {
  return new Promise((resolve) => {
    const options = { cwd: elsewhere, env: environment(env), timeout: PATIENCE_MS };
    execFile(process.execPath, [PROGRAM, ...args], options, (error, stdout, stderr) =>
      resolve({
        code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1,
        stdout,
        stderr,
      }),
    );
  });
}

async function json(...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await run([...args, '--json']);
  if (code !== 0 && code !== 3) throw new Error(`${args.join(' ')}: ${stderr}`);
  return JSON.parse(stdout);
}

function serve(): Child {
  const child = startChild(process.execPath, [PROGRAM, '--config', config, 'serve'], {
    cwd: elsewhere,
    env: environment(),
  });
  onTestFinished(async () => void (await child.kill('SIGKILL')));
  return child;
}

const linesOf = (child: Child) =>
  child.output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line): Record<string, unknown> => JSON.parse(line));

const isUp = (child: Child) => () => child.output.includes('postrider started');

describe('locations of files', () => {
  it('are relative to the configuration file; without one nothing is created', async () => {
    const withoutConfig = await run(['account', 'list'], {});
    expect(withoutConfig).toMatchObject({ code: 1, stdout: '' });
    expect(withoutConfig.stderr).toMatch(/There is no database in .*no configuration file was found/);
    expect(await run(['account', 'create', '--name', 'Shop', '--id', 'shop'])).toMatchObject({ code: 0 });
    expect(existsSync(join(root, 'state/postrider.db'))).toBe(true);
    expect(existsSync(join(elsewhere, 'data'))).toBe(false);
    expect(await json('account', 'list')).toMatchObject([{ accountId: 'shop' }]);
  });
});

describe('startup', () => {
  it('logs every listener, and a warning for each setting that does not work', async () => {
    dns.set(HOST, 'A', [ADDRESS]);
    writeConfig(
      '[public]\nlisten = "127.0.0.1:0"\nurl = "http://track.example.net"\n[submission]\nlisten = "127.0.0.1:0"\n',
    );
    const child = serve();
    await eventually('the daemon to be up', isUp(child));
    const listening = linesOf(child).filter(({ msg }) => msg === 'listening');
    expect(listening.map(({ listener }) => listener)).toEqual([
      'public',
      'console',
      'api',
      'mx',
      'submission',
    ]);
    for (const { address } of listening) expect(address).toMatch(/^127\.0\.0\.1:[1-9]\d*$/);
    const warnings = () => linesOf(child).filter(({ level, key }) => level === 'warn' && key !== undefined);
    await eventually('the DNS checks', () => warnings().length === 3);
    expect(Object.fromEntries(warnings().map(({ key, msg }) => [key, msg]))).toEqual({
      'public.url': expect.stringContaining('is not https: one-click unsubscribe needs it'),
      'mx.listen': expect.stringContaining(`${HOST} resolves to ${ADDRESS}`),
      'delivery.egress': expect.stringContaining(`the source address ${ADDRESS} has no PTR record`),
    });
    expect(await child.kill('SIGTERM')).toMatchObject({ code: 0 });
  });

  it('warns about a host name that is not fully qualified and about a missing configuration file', async () => {
    writeConfig('', 'mail');
    const child = serve();
    await eventually('the warning about the host name', () =>
      child.output.includes('hostname: \\"mail\\" is not a fully qualified domain name'),
    );
    expect(await child.kill('SIGTERM')).toMatchObject({ code: 0 });
    const env = environment({
      POSTRIDER_DATA__DIR: join(root, 'state'),
      POSTRIDER_API__LISTEN: '127.0.0.1:0',
      POSTRIDER_PUBLIC__LISTEN: '127.0.0.1:0',
      POSTRIDER_MX__LISTEN: 'off',
      POSTRIDER_DNS__RESOLVERS: `["${dns.address}"]`,
    });
    const withDefaults = startChild(process.execPath, [PROGRAM, 'serve'], { cwd: elsewhere, env });
    onTestFinished(async () => void (await withDefaults.kill('SIGKILL')));
    await eventually('the daemon to be up', isUp(withDefaults));
    expect(withDefaults.output).toContain('no configuration file found: using built-in defaults');
    expect(await withDefaults.kill('SIGTERM')).toMatchObject({ code: 0 });
  });

  it('reports a port in use, a missing certificate and an unknown variable on one line with the remedy', async () => {
    const port = await freePort();
    const occupant = await new Promise<Server>((resolve) => {
      const server = createServer().listen(port, '127.0.0.1', () => resolve(server));
    });
    onTestFinished(() => void occupant.close());
    const fails = async (message: RegExp, env: Record<string, string> = {}) => {
      const outcome = await run(['serve'], { POSTRIDER_CONFIG: config, ...env });
      expect(outcome.code).toBe(1);
      const lines = outcome.stderr.trim().split('\n');
      expect(lines).toEqual([expect.stringMatching(message)]);
      expect(outcome.stderr).not.toContain('internal error');
    };
    for (const section of ['api', 'public', 'mx', 'submission']) {
      writeConfig(`[${section}]\nlisten = "127.0.0.1:${port}"\n`);
      await fails(
        new RegExp(
          `^postrider: ${section}\\.listen: port ${port} of 127\\.0\\.0\\.1 is in use .* set ${section}`,
        ),
      );
    }
    writeConfig(`[console]\nlisten = "127.0.0.1:${port}"\n`);
    const child = serve();
    await eventually('the daemon to be up without the console', isUp(child));
    expect(linesOf(child)).toContainEqual(
      expect.objectContaining({ level: 'error', msg: 'the console is not available' }),
    );
    expect(child.output).toContain(`console.listen: port ${port} of 127.0.0.1 is in use`);
    expect(await child.kill('SIGTERM')).toMatchObject({ code: 0 });
    writeConfig(
      '[mx]\nlisten = "127.0.0.1:0"\n[mx.tls]\ncertificateFile = "none.pem"\nkeyFile = "none.key"\n',
    );
    await fails(/^postrider: mx\.tls\.certificateFile: \/.*etc\/none\.pem does not exist\. Create the file/);
    writeConfig('');
    await fails(/^postrider: POSTRIDER_API__LISTN: there is no such setting\. Unset the variable/, {
      POSTRIDER_API__LISTN: '127.0.0.1:1',
    });
  });
});

describe('DNS records of the platform and of domains', () => {
  it('are printed as zone file and as JSON; verify distinguishes missing from unknown and exits with 3', async () => {
    const zone = await run(['zone', '--format', 'bind']);
    expect(zone.code).toBe(0);
    expect(zone.stdout).toContain(ADDRESS);
    expect(await json('zone', '--format', 'json')).toBeDefined();
    const added = await run([
      'domain',
      'add',
      'shop.example',
      '--account',
      'shop',
      '--use-case',
      'tx-local',
      '--format',
      'json',
    ]);
    expect(added.code).toBe(0);
    expect(() => JSON.parse(added.stdout)).not.toThrow();
    const missing = await run(['domain', 'verify', 'shop.example']);
    expect(missing.code).toBe(3);
    expect(missing.stdout).toMatch(/missing/i);
    for (const type of ['TXT', 'MX', 'CNAME'] as const) dns.set('shop.example', type, 'SERVFAIL');
    expect((await run(['domain', 'verify', 'shop.example'])).stdout).toMatch(/unknown/i);
  });
});

describe('contacts import', () => {
  it('rejects unknown columns before the first row unless they are mapped or ignored', async () => {
    const file = join(elsewhere, 'people.csv');
    writeFileSync(file, 'Reachable at,First Name,shoe\nada@example.org,Ada,39\n,Bob,40\n');
    const into = ['contacts', 'import', file, '--account', 'shop'];
    const rejected = await run(into);
    expect(rejected).toMatchObject({ code: 1, stdout: '' });
    expect(rejected.stderr).toContain('the header names neither email nor phone');
    const mapped = [...into, '--map', 'Reachable at=email'];
    expect((await run(mapped)).stderr).toContain('unknown columns: "shoe"');
    const dry = await run([...mapped, '--ignore-unknown', '--dry-run', '--json']);
    expect(dry.code).toBe(3);
    expect(JSON.parse(dry.stdout)).toMatchObject({ dryRun: true, rows: 2, created: 1, rejected: 1 });
    expect(await json('contacts', 'list', '--account', 'shop')).toEqual([]);
    expect(await json(...mapped, '--ignore-unknown')).toMatchObject({
      rows: 2,
      created: 1,
      rejected: 1,
      rejectedRowsTruncated: false,
      ignoredColumns: ['shoe'],
    });
    expect(existsSync(`${file}.rejected.csv`)).toBe(true);
  });
});

describe('the queue and log commands', () => {
  it('report unknown accounts and ids as errors, and an empty queue as success', async () => {
    for (const args of [
      ['queue', 'list', '--account', 'none'],
      ['queue', 'retry', 'msg_none'],
      ['queue', 'cancel', '--campaign', 'none', '--yes'],
    ])
      expect(await run(args)).toMatchObject({ code: 1, stdout: '' });
    expect(await run(['queue', 'retry', '--account', 'shop', '--yes'])).toMatchObject({ code: 0 });
    const usage = await run(['queue', 'cancel', '--json']);
    expect(usage.code).toBe(2);
    expect(JSON.parse(usage.stderr)).toMatchObject({ success: false, error: { code: 'USAGE' } });
  });

  it('show held messages as paused, and report that a retry does not release them', async () => {
    const db = openDatabase(join(root, 'state'));
    const tables = createTables(db);
    const [held, deferred] = [0, 1].map(() => {
      const row = enqueue(tables, Date.now(), { account_id: 'shop', recipient: 'ada@example.org' });
      tables.messages.setState(row.seq, 'deferred', Date.now(), null, null);
      return row;
    });
    if (held === undefined || deferred === undefined) throw new Error('nothing was queued');
    tables.queue.defer(held.seq, HELD);
    tables.queue.defer(deferred.seq, Date.now() + HOUR);
    db.close();
    expect(await json('queue', 'list')).toMatchObject([
      { destination: 'example.org', paused: 1, deferred: 1 },
    ]);
    const retried = await run(['queue', 'retry', held.message_id]);
    expect(retried).toMatchObject({ code: 1, stdout: '' });
    expect(retried.stderr).toContain('The message is held because its campaign is paused');
    const unconfirmed = await run(['queue', 'retry', '--destination', 'example.org']);
    expect(unconfirmed).toMatchObject({ code: 1, stdout: '' });
    expect(unconfirmed.stderr).toContain('Retry 1 deferred message to example.org? Confirm with --yes.');
    expect(await run(['queue', 'retry', '--destination', 'example.org', '--yes'])).toEqual({
      code: 3,
      stdout: '1 message due now\n',
      stderr:
        'postrider: 1 message still held: resume the campaign, enable the account or verify the domain to send it\n',
    });
    expect(await json('queue', 'cancel', '--account', 'shop', '--yes')).toMatchObject({ changed: 2 });
    expect(await json('queue', 'list')).toEqual([]);
  });

  it('log hash prints the hash of an address that the log contains', async () => {
    const first = await run(['log', 'hash', 'Ada@Example.NET']);
    expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(/^hmac:[0-9a-f]{16}\n$/) });
    expect((await run(['log', 'hash', 'ada@example.net'])).stdout).toBe(first.stdout);
    expect(await run(['log', 'hash', 'nobody'])).toMatchObject({ code: 2 });
  });
});
