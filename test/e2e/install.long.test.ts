// Long: runs the commands of the installation on a Debian system that it boots.
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { variables } from '../support/daemon.ts';
import { DEBIAN_PACKAGES, type DebianSystem, installDebian } from '../support/debian-system.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import type { CodeBlock } from '../support/documentation.ts';
import { builtPackages, withVersion } from '../support/packages.ts';
import { blocksOf } from '../support/reader.ts';
import { publishMailHost } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { runOnTerminal } from '../support/terminal.ts';

/*
 * The commands of docs/install.md, one after the other, as root on a Debian system that was just installed:
 *
 *   apt, postrider init on a terminal, systemctl, curl ──▶ postrider.service ──SMTP──▶ sink
 *
 * The environment sets what a server on the internet does not need: a private DNS server, the port of the sink, and
 * listeners on an address of this machine's loopback interface, which the system shares.
 */
const required = requirePrograms('dpkg-deb', 'mmdebstrap', 'systemd-nspawn', 'compiler', 'root', 'python3');
const ADDRESS = `127.78.${(process.pid >> 8) & 255}.${process.pid & 255}`;
const DOCUMENT = 'docs/install.md';
const text = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
/** Of the host name in DNS: `init` finds it there. */
const PUBLIC_ADDRESS = '93.184.215.25';
const ANSWERS = [
  'mail.example.net',
  ...['data directory', 'API', 'MX', 'submission', 'TLS'].map(() => ''),
  'Example',
  'Example Ltd',
  '1 High Street, Sampletown, AB1 2CD, GB',
  'example.com',
  ...['other senders', 'private webhooks'].map(() => ''),
];
const NUMBERS = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];

describe.skipIf(required.missing)(`${DOCUMENT}${required.reason}`, () => {
  let dir: string;
  let system: DebianSystem;
  let dns: DnsServer;
  let sink: Sink;
  let settings: string[];
  /** What `init` printed. */
  let shown = '';

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'postrider-install-'));
    const packages = builtPackages();
    [system] = await Promise.all([installDebian(DEBIAN_PACKAGES), packages]);
    const { deb, tarball } = await packages;
    const [, next = ''] = /### Upgrade\s[^#]*postrider_([\d.]+)_/.exec(text(DOCUMENT)) ?? [];
    for (const file of [deb, await withVersion(deb, next, dir), tarball])
      copyFileSync(file, join(system.root, 'root', basename(file)));
    dns = await startDnsServer();
    sink = await startSink();
    publishMailHost(dns, 'example.org', sink.host);
    dns.set('mail.example.net', 'A', [PUBLIC_ADDRESS]);
    const env = variables({
      'api.listen': `${ADDRESS}:8080`,
      'public.listen': `${ADDRESS}:80`,
      'mx.listen': `${ADDRESS}:25`,
      'console.listen': `${ADDRESS}:8082`,
      'dns.resolvers': [dns.address],
      'delivery.port': sink.port,
      'delivery.allowPrivateNetworks': true,
    });
    settings = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    // The package does not know drop-ins in /run, and does not remove them.
    const dropIn = `[Service]\n${settings.map((setting) => `Environment='${setting}'\n`).join('')}`;
    writeFileSync(join(system.root, 'root/test.conf'), dropIn);
    // apt asks before it removes a package.
    writeFileSync(join(system.root, 'etc/apt/apt.conf.d/yes'), 'APT::Get::Assume-Yes "true";\n');
    await system.boot();
    await system.run('install', '-D', '/root/test.conf', '/run/systemd/system/postrider.service.d/test.conf');
  });

  afterAll(async () => {
    await system?.remove();
    await sink?.close();
    await dns?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  /** Commands of blocks that have run, without those of the tests. */
  const commands = () => readFileSync(join(system.root, 'root/commands'), 'utf8').length;

  /** Runs commands as the reader. Resolves with their stdout; throws unless they exit with `exit`. */
  function bash(script: string, exit = 0): Promise<string> {
    const [program = '', ...args] = system.command(
      'env',
      ...settings,
      'bash',
      '--norc',
      '-euo',
      'pipefail',
      '-c',
      script,
    );
    return new Promise((resolve, reject) => {
      const child = execFile(program, args, (error, stdout, stderr) => {
        const status = error === null ? 0 : error.code;
        if (status === exit) resolve(stdout);
        else reject(new Error(`exit status ${status} instead of ${exit}: ${script}\n${stdout}\n${stderr}`));
      });
      child.stdin?.end();
    });
  }

  /** The reader publishes what the commands print. */
  async function publish(): Promise<void> {
    for (const command of ['zone --json', 'domain show example.com --json']) {
      const printed = JSON.parse(await bash(`postrider ${command}`));
      const records: { name: string; type: string; value: string }[] = printed.dnsRecords ?? printed;
      for (const { name } of records) dns.remove(name);
      dns.publish(records);
    }
  }

  /** The reader puts in the account and the key that `init` has printed. */
  function filledIn(script: string): string {
    const [json = '{}'] = /^\{[\s\S]*?^\}/m.exec(shown) ?? [];
    const { accountId, keys } = JSON.parse(json);
    return script
      .replaceAll('acct_…', accountId)
      .replaceAll('X-Api-Key: …', `X-Api-Key: ${keys?.transactional}`)
      .replaceAll('127.0.0.1:8080', `${ADDRESS}:8080`);
  }

  async function initialize(): Promise<void> {
    const command = system.command('env', ...settings, 'postrider', 'init');
    const result = await runOnTerminal(command, ANSWERS, { cwd: '/', env: { PATH: process.env['PATH'] } });
    shown = result.shown.replaceAll('\r', '');
    expect(result.status, shown).toBe(0);
    writeFileSync(join(system.root, 'root/commands'), '.', { flag: 'a' });
  }

  async function perform(block: CodeBlock): Promise<void> {
    switch (block.kind) {
      case 'file':
        mkdirSync(dirname(join(system.root, block.path)), { recursive: true });
        return writeFileSync(join(system.root, block.path), block.text);
      case 'configuration':
        writeFileSync(join(system.root, 'var/tmp/part.toml'), block.text);
        return void (await system.run('postrider', '--config', '/var/tmp/part.toml', 'config', 'check'));
      case 'command': {
        if (block.text.trim() === 'postrider init') return initialize();
        const counted = `trap 'printf . >> /root/commands' DEBUG\n${filledIn(block.text)}`;
        if (!block.text.includes('domain verify')) return void (await bash(counted, block.exit));
        const [start = '', rest = ''] = counted.split(/^(?=postrider domain verify)/m);
        await bash(start);
        await publish();
        return void (await bash(counted.split('\n')[0] + '\n' + rest, block.exit));
      }
      default:
    }
  }

  /** The blocks below a heading of the second level, up to the first with `last` in it. */
  async function follow(section: string, from = 0): Promise<void> {
    const lines = text(DOCUMENT).split('\n');
    const start = lines.indexOf(`## ${section}`);
    const end = lines.findIndex((line, at) => at > start && line.startsWith('## '));
    expect(start).toBeGreaterThan(0);
    for (const block of blocksOf(DOCUMENT).filter(({ line }) => line > Math.max(start, from) && line <= end))
      await performAt(block);
  }

  async function performAt(block: CodeBlock): Promise<void> {
    try {
      await perform(block);
    } catch (error) {
      throw new Error(`${DOCUMENT}, line ${block.line}`, { cause: error });
    }
  }

  let firstMessage = 0;

  it('leads from the package to a delivered message in as many commands as the README states', async () => {
    const started = Date.now();
    for (const block of blocksOf(DOCUMENT)) {
      await performAt(block);
      firstMessage = block.line;
      if (block.text.includes('/transactional/send')) break;
    }
    const [mail] = await sink.waitFor(1);
    const seconds = Math.round((Date.now() - started) / 1000);
    console.log(`from the package to the delivered message: ${commands()} commands, ${seconds} s`);
    expect(mail?.to).toEqual(['you@example.org']);
    for (const file of ['README.md', DOCUMENT]) {
      const [, stated = ''] = /(\w+) commands\s+lead\s+from\s+the\s+package/.exec(text(file)) ?? [];
      expect(NUMBERS.indexOf(stated.toLowerCase()), file).toBe(commands());
    }
  });

  it('shows the commands that init prints, which work as printed', async () => {
    const next = [...shown.matchAll(/^ {2}\d\. (.+)$/gm)].map(([, command = '']) => command);
    expect(next.slice(0, 2)).toEqual(['systemctl start postrider', 'postrider domain verify example.com']);
    expect(text(DOCUMENT)).toContain(next.slice(0, 2).join('\n'));
    const send = (next[2] ?? '').replace(/127\.0\.0\.1:\d+/, `${ADDRESS}:8080`);
    const response: unknown = JSON.parse(await bash(send));
    expect(response).toMatchObject({ data: { delivery: { status: 'delivered' } } });
  });

  it('describes configuration, credentials, upgrade and removal of the package', async () => {
    await follow('Debian package', firstMessage);
    const left = await system.run('find', '/', '-xdev', '-path', '*postrider*', '-not', '-path', '/root/*');
    expect(left.split('\n').filter((path) => !/^\/(etc\/credstore|run|proc|sys)|^$/.test(path))).toEqual([]);
  });

  it('describes the tarball', async () => {
    await system.run('rm', '-rf', '/etc/credstore', '/etc/credstore.encrypted');
    await follow('Tarball');
  });
});
