// Long: compiles the packages and installs them on a Debian system that it boots.
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiClient, type Credentials, createApiClient } from '../support/api-client.ts';
import { startChild } from '../support/child.ts';
import { HOSTNAME, PUBLIC_ADDRESS } from '../support/daemon.ts';
import { DEBIAN_PACKAGES, type DebianSystem, installDebian, listFiles } from '../support/debian-system.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { readLedger } from '../support/ledger.ts';
import { builtPackages, withVersion } from '../support/packages.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * The Debian package, and the tarball, on a Debian system that systemd started, as README.md and docs/install.md describe:
 * installation, operation as a service, upgrade, purge.
 *
 *   test: API client ──HTTP──▶ postrider.service in the container ──SMTP──▶ sink
 *         name server ◀──DNS──┘
 */
const required = requirePrograms('dpkg-deb', 'lintian', 'mmdebstrap', 'systemd-nspawn', 'compiler', 'root');
/** An address of the shared loopback interface that no other test uses, also not in another run. */
const ADDRESS = `127.77.${(process.pid >> 8) & 255}.${process.pid & 255}`;
const UNIT = 'postrider.service';
const MAX_EXPOSURE = 1.8;

// Each installation unpacks 150 MB, which takes long on a busy machine.
describe.skipIf(required.missing)(`the packages${required.reason}`, () => {
  let dir: string;
  let system: DebianSystem;
  let sink: Sink;
  let dns: DnsServer;
  let api: ApiClient;
  /** The account that init created. */
  let account: Credentials;
  let filesBefore: string[];
  let accountsBefore: string;
  /** The package on this machine. */
  let deb: string;
  /** The packages in the container's /root: the one that was built, and an older version of it. */
  let current: string;
  let previous: string;
  let tarball: string;

  const show = async (property: string) =>
    (await system.run('systemctl', 'show', '--value', '--property', property, UNIT)).trim();
  const journal = () => system.run('journalctl', '--unit', UNIT, '--output', 'cat', '--quiet');
  const mainPid = async () => Number(await show('MainPID'));
  const restarts = async () => Number(await show('NRestarts'));
  const signalMain = (signal: string) =>
    system.run('systemctl', 'kill', '--kill-who=main', `--signal=SIG${signal}`, UNIT);
  const install = (file: string) => system.run('dpkg', '--install', file);
  const ready = () =>
    eventually('the daemon to be ready', () =>
      fetch(`http://${ADDRESS}:8080/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
  const cli = (...args: string[]) => system.run('postrider', ...args);
  const accounts = async () =>
    (await readFile(join(system.root, 'etc/passwd'), 'utf8')) +
    (await readFile(join(system.root, 'etc/group'), 'utf8'));

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'postrider-package-'));
    const packages = builtPackages();
    [system] = await Promise.all([installDebian(DEBIAN_PACKAGES), packages]);
    const built = await packages;
    deb = built.deb;
    const inside = async (file: string) => {
      await copyFile(file, join(system.root, 'root', basename(file)));
      return `/root/${basename(file)}`;
    };
    previous = await inside(await withVersion(deb, OLDER_VERSION, dir));
    current = await inside(deb);
    tarball = await inside(built.tarball);
    sink = await startSink({ script: { dot: { reply: '250 2.0.0 OK', delayMs: 5 } } });
    dns = await startDnsServer();
    publishMailHost(dns, 'empfang.example', sink.host);
    await system.boot();
    filesBefore = await listFiles(system.root);
    accountsBefore = await accounts();
  });

  afterAll(async () => {
    await system?.remove();
    await sink?.close();
    await dns?.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('does not start before it is configured', async () => {
    expect(await install(previous)).toContain('not configured yet');
    expect(await show('ActiveState')).toBe('inactive');
    expect(await show('UnitFileState')).toBe('enabled');
    await system.run('systemctl', 'start', UNIT);
    expect(await show('ConditionResult')).toBe('no');
    expect(await show('ActiveState')).toBe('inactive');
    expect(await system.run('stat', '--format', '%U:%G %a', '/etc/postrider', '/var/lib/postrider')).toBe(
      'root:postrider 750\npostrider:postrider 700\n',
    );
  });

  it('passes lintian', async () => {
    // Exits with 2 for errors and warnings that .packaging/debian/lintian-overrides does not explain.
    const lintian = startChild('lintian', ['--allow-root', '--fail-on', 'error,warning', deb]);
    const { code } = await lintian.exited;
    expect(code, lintian.output).toBe(0);
  });

  it('contains a SQLite module that survives the garbage collector', async () => {
    const program = new URL('../support/collect-statements.cjs', import.meta.url).pathname;
    await copyFile(program, join(system.root, 'root/collect.cjs'));
    const library = '/usr/lib/postrider';
    const module = `${library}/node_modules/better-sqlite3`;
    const node = [`${library}/bin/node`, '--max-semi-space-size=1'] as const;
    expect(await system.run(...node, '/root/collect.cjs', module)).toContain('survived');
    await system.run('rm', '/root/collect.cjs');
  });

  it('contains a unit that systemd accepts and rates as safe', async () => {
    const verified = await system.tryRun('systemd-analyze', 'verify', '--man=no', UNIT);
    expect(verified.output).toBe('');
    const security = await system.run(
      'systemd-analyze',
      'security',
      '--offline=true',
      '--no-pager',
      `/usr/lib/systemd/system/${UNIT}`,
    );
    const [, exposure] = /exposure level for \S+: ([\d.]+)/.exec(security) ?? [];
    console.log(`systemd-analyze: verify reports nothing, security: ${exposure}`);
    expect(Number(exposure)).toBeLessThanOrEqual(MAX_EXPOSURE);
  });

  it('is set up by init, which root runs', async () => {
    const host = ['--hostname', HOSTNAME, '--tls', 'none'];
    const listeners = ['--listen', `${ADDRESS}:8080`, '--public', `${ADDRESS}:81`, '--mx', `${ADDRESS}:24`];
    const first = ['--account', 'Kunde', ...COMPANY];
    const resolvers = `POSTRIDER_DNS__RESOLVERS=["${dns.address}"]`;
    const init = ['postrider', 'init', '--json', ...host, ...listeners, ...first];
    const created = await system.run('env', resolvers, ...init);
    ({ account } = JSON.parse(created));
    const owners = await system.run(
      'find',
      '/etc/postrider',
      '/var/lib/postrider',
      '-printf',
      '%p %u:%g %m\n',
    );
    expect(owners).toContain('/etc/postrider/postrider.toml root:postrider 640\n');
    expect(owners).toContain('/var/lib/postrider/master.key postrider:postrider 600\n');
    expect(owners).not.toMatch(/^\/var\/lib\S* (?!postrider:postrider )/m);
    expect(await cli('config', 'check')).toContain('/etc/postrider/postrider.toml');
  });

  it('starts as its own user with one capability, and reports that it is ready', async () => {
    await configure();
    await system.run('systemctl', 'start', UNIT);
    expect(await show('ActiveState')).toBe('active');
    await ready();
    const status = await system.run('cat', `/proc/${await mainPid()}/status`);
    const uid = (await system.run('id', '--user', 'postrider')).trim();
    expect(status).toMatch(new RegExp(`^Uid:\\t${uid}\\t${uid}\\t${uid}\\t${uid}$`, 'm'));
    // CAP_NET_BIND_SERVICE is number 10.
    expect(status).toMatch(/^CapEff:\t0{13}400$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(await show('StatusText')).toMatch(/^\d+ queued, \d+\/min delivered/);
  });

  it('sends a message', async () => {
    api = createApiClient(`http://${ADDRESS}:8080`, account);
    await verifiedDomain({ api, cli }, dns, 'kunde.example');
    const { data } = await send('first');
    const [mail] = await sink.waitFor(1);
    expect(mail?.to).toEqual(['first@empfang.example']);
    await eventually(
      'the result to be recorded',
      async () => (await api.message(data.messageId)).status === 'delivered',
    );
    // Commands of root leave no files that the daemon could not open.
    expect(await system.run('find', '/var/lib/postrider', '!', '-user', 'postrider')).toBe('');
  });

  it('is upgraded with its data and its configuration, and restarted', async () => {
    const [before, version] = [await mainPid(), await cli('--version')];
    await install(current);
    expect(await mainPid()).not.toBe(before);
    expect(await cli('--version')).not.toBe(version);
    await ready();
    expect((await readLedger(api)).delivered).toBe(1);
  });

  it('reloads the configuration', async () => {
    const file = join(system.root, 'etc/postrider/postrider.toml');
    const before = await mainPid();
    await writeFile(file, `${await readFile(file, 'utf8')}[log]\nlevel = "debug"\n`);
    await system.run('systemctl', 'reload', UNIT);
    await eventually('the configuration to be read', async () =>
      (await journal()).includes('configuration reloaded'),
    );
    await eventually('the end of the reload', async () => (await show('ActiveState')) === 'active');
    expect(await mainPid()).toBe(before);
  });

  it('creates scheduled backups, also with the lowest priority from the command line', async () => {
    const dropIn = `/etc/systemd/system/${UNIT}.d/schedule.conf`;
    await system.run('mkdir', '-p', dirname(dropIn));
    await writeFile(
      join(system.root, dropIn),
      '[Service]\nEnvironment="POSTRIDER_BACKUP__SCHEDULE=* * * * *"\n',
    );
    await system.run('systemctl', 'daemon-reload');
    await system.run('systemctl', 'restart', UNIT);
    await ready();
    await eventually(
      'a scheduled backup',
      async () => {
        const log = await journal();
        expect(log).not.toContain('"loop":"backup"');
        return log.includes('"msg":"backup created"');
      },
      { ms: 180_000 },
    );
    const readiness = await fetch(`http://${ADDRESS}:8080/readyz`);
    expect(await readiness.json()).toMatchObject({
      data: { checks: expect.arrayContaining([expect.objectContaining({ check: 'backup', ok: true })]) },
    });
    expect(
      await system.run('nice', '-n', '19', 'postrider', 'backup', 'create', '/var/lib/postrider/manual'),
    ).toContain('/var/lib/postrider/manual/postrider-');
    await system.run('rm', '-r', '/var/lib/postrider/manual', dropIn);
    await system.run('systemctl', 'daemon-reload');
    await system.run('systemctl', 'restart', UNIT);
    await ready();
  });

  it('refuses to reload an invalid configuration, and continues', async () => {
    const file = join(system.root, 'etc/postrider/postrider.toml');
    const valid = await readFile(file, 'utf8');
    const before = await mainPid();
    await writeFile(file, `${valid}[metrics]\nport = 1\n`);
    const { code } = await system.tryRun('systemctl', 'reload', UNIT);
    expect(code).not.toBe(0);
    expect(await journal()).toContain('metrics: unknown key');
    await writeFile(file, valid);
    expect(await show('ActiveState')).toBe('active');
    expect(await mainPid()).toBe(before);
    await ready();
  });

  it('is started again after kill -9, and loses nothing', async () => {
    const sends = Array.from({ length: 200 }, (_, n) =>
      send(`user${n}`).then(
        ({ status }) => status,
        // The connection ended without a response.
        () => 0,
      ),
    );
    await sink.waitFor(50);
    await signalMain('KILL');
    const accepted = (await Promise.all(sends)).filter((status) => status === 200).length;
    await eventually('the restart', async () => (await restarts()) === 1);
    await ready();
    await eventually('all messages to be delivered', async () => {
      const { delivered, queued } = await readLedger(api);
      return queued === 0 && delivered > accepted;
    });
    const { accepted: stored, delivered } = await readLedger(api);
    // Requests without an answer may have been accepted; every answered one was, and so was the first message.
    expect(stored).toBeGreaterThanOrEqual(accepted + 1);
    expect(delivered).toBe(stored);
    const recipients = new Set(sink.messages.flatMap(({ to }) => to));
    expect(recipients.size).toBe(stored);
  });

  it('is restarted by the watchdog when it is stalled', async () => {
    await system.run('mkdir', '-p', `/etc/systemd/system/${UNIT}.d`);
    await writeFile(
      join(system.root, `etc/systemd/system/${UNIT}.d/watchdog.conf`),
      '[Service]\nWatchdogSec=4\n',
    );
    await system.run('systemctl', 'daemon-reload');
    await system.run('systemctl', 'restart', UNIT);
    await ready();
    const [before, stalled] = [await restarts(), await mainPid()];
    await signalMain('STOP');
    await eventually('the restart', async () => (await restarts()) === before + 1);
    await ready();
    expect(await mainPid()).not.toBe(stalled);
    expect(await journal()).toContain('Watchdog timeout');
    // Pings keep it running: the last one came two periods after the start.
    const started = Number(await show('ExecMainStartTimestampMonotonic'));
    await eventually(
      'a ping after two periods',
      async () => Number(await show('WatchdogTimestampMonotonic')) - started > 8_000_000,
    );
    expect(await restarts()).toBe(before + 1);
  });

  it('stops within its timeout, and stays stopped when it is installed again', async () => {
    await system.run('systemctl', 'stop', UNIT);
    expect(await show('Result')).toBe('success');
    expect(await show('ExecMainStatus')).toBe('0');
    expect(await journal()).toContain('"unrecorded":0,"msg":"stopped"');
    await install(current);
    expect(await show('ActiveState')).toBe('inactive');
    await system.run('systemctl', 'start', UNIT);
    await ready();
  });

  it('keeps data and configuration when it is removed, and leaves nothing when it is purged', async () => {
    await system.run('dpkg', '--remove', 'postrider');
    expect(await show('ActiveState')).toBe('inactive');
    const kept = await listFiles(system.root);
    expect(kept).toEqual(
      expect.arrayContaining(['/etc/postrider/postrider.toml', '/var/lib/postrider/postrider.db']),
    );
    await system.run('dpkg', '--purge', 'postrider');
    expect(await listFiles(system.root)).toEqual(filesBefore);
    expect(await accounts()).toBe(accountsBefore);
  });

  it('is installed and removed by the script of the tarball, too', async () => {
    await system.run('tar', '-xzf', tarball, '-C', '/root');
    const script = `${tarball.replace(/\.tar\.gz$/, '')}/install.sh`;
    expect(await system.run(script)).toContain('not configured yet');
    await configure();
    await system.run('systemctl', 'start', UNIT);
    await ready();
    expect(await show('ExecStart')).toContain('path=/usr/local/bin/postrider');
    expect(await system.run('/usr/local/bin/postrider', 'account', 'list', '--json')).toBe('[]\n');
    const instance = ['/usr/local/bin/postrider', '--instance', 'shop'] as const;
    await system.run(...instance, 'init', '--yes', '--no-doctor', '--hostname', 'shop.kunde.example');
    expect(await system.run(...instance, 'account', 'list')).toContain('Default');
    const unit = await system.run('systemctl', 'show', '--property', 'ExecStart', 'postrider@shop');
    expect(unit).toContain('path=/usr/local/bin/postrider');
    await system.run(script, '--remove', '--purge');
    const ofPostrider = (file: string) => file.includes('postrider') && !file.startsWith('/root/');
    expect((await listFiles(system.root)).filter(ofPostrider)).toEqual([]);
    expect(await accounts()).toBe(accountsBefore);
  });

  const COMPANY = ['--company', 'Kunde GmbH', '--address', 'Hauptstrasse 1, 10115 Berlin, DE'];

  function configure(): Promise<void> {
    return writeFile(
      join(system.root, 'etc/postrider/postrider.toml'),
      // Ports below 1024 need the capability.
      `hostname = "${HOSTNAME}"
[data]
dir = "/var/lib/postrider"
[api]
listen = "${ADDRESS}:8080"
[public]
listen = "${ADDRESS}:81"
[mx]
listen = "${ADDRESS}:24"
[console]
listen = "off"
[dns]
resolvers = ["${dns.address}"]
[delivery]
port = ${sink.port}
allowPrivateNetworks = true
egress = [{ name = "main", publicAddress = "${PUBLIC_ADDRESS}" }]
[delivery.retry]
first = "1s"
`,
    );
  }

  function send(user: string) {
    return api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to: `${user}@empfang.example` });
  }
});

const OLDER_VERSION = '0.0.1';
