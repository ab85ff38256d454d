import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { afterAll, describe, expect, it } from 'vitest';
import { exampleToml } from '../../src/config/example.ts';
import { ConfigFault, loadConfig } from '../../src/config/load.ts';
import { parseListen } from '../../src/config/setting-types.ts';
import { parseServer } from '../../src/dns/transport.ts';

const dir = mkdtempSync(join(tmpdir(), 'postrider-config-'));
afterAll(() => rmSync(dir, { recursive: true }));

let files = 0;

function fileWith(text: string): string {
  const file = join(dir, `${files++}.toml`);
  writeFileSync(file, text);
  return file;
}

function faultsOf(load: () => unknown): string[] {
  try {
    load();
  } catch (error) {
    if (error instanceof ConfigFault) return error.faults;
    throw error;
  }
  return [];
}

describe('configuration', () => {
  it('works without a file', () => {
    const config = loadConfig({ env: {}, cwd: dir });
    expect(config.hostname).toBe(hostname().toLowerCase());
    expect(config.api.listen).toBe('127.0.0.1:8080');
    expect(config.public.url).toBe('http://127.0.0.1:8081');
    expect(config.data).toEqual({ dir: join(dir, 'data'), masterKeyFile: join(dir, 'data/master.key') });
    expect(config.delivery.workers).toBeGreaterThanOrEqual(1);
    expect(config.delivery.retry.first).toBe(300_000);
  });

  it('reads a file, overridden by the environment', () => {
    const file = fileWith(
      'hostname = "mail.example.com"\n[delivery]\nport = 2525\n[delivery.retry]\nfirst = "30s"\n',
    );
    const env = { POSTRIDER_DELIVERY__PORT: '26', POSTRIDER_API__LISTEN: '127.0.0.1:9090' };
    const config = loadConfig({ file, env });
    expect(config).toMatchObject({ hostname: 'mail.example.com', api: { listen: '127.0.0.1:9090' } });
    expect(config.delivery).toMatchObject({ port: 26, retry: { first: 30_000 } });
    expect(config.file).toBe(file);
  });

  it.each([
    ['https://bücher.example/', 'https://xn--bcher-kva.example'],
    ['https://Track.Example.net:443', 'https://track.example.net'],
    ['http://track.example.net:8081/mail/', 'http://track.example.net:8081/mail'],
  ])('has public.url %s in ASCII, without a slash at the end', (url, expected) => {
    const file = fileWith(`[public]\nurl = "${url}"`);
    expect(loadConfig({ file, env: {} }).public.url).toBe(expected);
  });

  it.each(['https://example.net/?a=b', 'https://example.net/#a', 'https://user:secret@example.net', 'a b'])(
    'rejects public.url %s',
    (url) => {
      const file = fileWith(`[public]\nurl = "${url}"`);
      expect(faultsOf(() => loadConfig({ file, env: {} }))).toEqual([
        expect.stringMatching(/^public\.url: must/),
      ]);
    },
  );

  it('finds the file named in the environment', () => {
    const file = fileWith('hostname = "a.example"');
    expect(loadConfig({ env: { POSTRIDER_CONFIG: file } }).hostname).toBe('a.example');
  });

  it('ignores an empty file name in the environment', () => {
    const files = [fileWith('hostname = "system.example"')];
    expect(loadConfig({ env: { POSTRIDER_CONFIG: '' }, files }).hostname).toBe('system.example');
  });

  it('searches the working directory, then the system directory', () => {
    const cwd = mkdtempSync(join(dir, 'cwd-'));
    const system = fileWith('hostname = "system.example"');
    const files = ['config/postrider.toml', system];
    expect(loadConfig({ env: {}, cwd, files }).hostname).toBe('system.example');
    mkdirSync(join(cwd, 'config'));
    writeFileSync(join(cwd, 'config/postrider.toml'), 'hostname = "local.example"');
    expect(loadConfig({ env: {}, cwd, files }).hostname).toBe('local.example');
    expect(loadConfig({ env: {}, cwd, files, file: null }).file).toBe(null);
  });

  it('resolves relative paths from the directory of the file', () => {
    const file = fileWith(
      '[data]\ndir = "state"\n[mx.tls]\ncertificateFile = "mx.pem"\nkeyFile = "/etc/mx.key"\n[[delivery.routes]]\nmatch = "*"\nhost = "relay.example"\nuser = "u"\npasswordFile = "relay.password"\n',
    );
    expect(loadConfig({ file, env: {}, cwd: '/' })).toMatchObject({
      data: { dir: join(dir, 'state'), masterKeyFile: join(dir, 'state/master.key') },
      mx: { tls: { certificateFile: join(dir, 'mx.pem'), keyFile: '/etc/mx.key' } },
      delivery: { routes: [{ passwordFile: join(dir, 'relay.password') }] },
    });
  });

  it.each<[string, Record<string, string>, unknown]>([
    [
      'a list',
      { POSTRIDER_DNS__RESOLVERS: '["127.0.0.1:5353", "::1"]' },
      { dns: { resolvers: ['127.0.0.1:5353', '::1'] } },
    ],
    [
      'a boolean',
      { POSTRIDER_DELIVERY__ALLOWPRIVATENETWORKS: 'true' },
      { delivery: { allowPrivateNetworks: true } },
    ],
    ['an unquoted string', { POSTRIDER_LOG__LEVEL: 'warn' }, { log: { level: 'warn' } }],
    [
      'a table',
      { POSTRIDER_SECONDARY: '{ type = "relay", host = "relay.example" }' },
      { secondary: { host: 'relay.example', port: 587 } },
    ],
    ['a duration', { POSTRIDER_DELIVERY__RETRY__MAX: '2h' }, { delivery: { retry: { max: 7_200_000 } } }],
  ])('accepts %s from the environment', (_, env, expected) => {
    expect(loadConfig({ env, cwd: dir })).toMatchObject(expected as object);
  });

  it('reports a section that is not a table, also when a variable sets one of its settings', () => {
    const env = { POSTRIDER_DELIVERY__PORT: '26' };
    expect(faultsOf(() => loadConfig({ file: fileWith('delivery = 5'), env }))).toEqual([
      expect.stringMatching(/^delivery: expected object/),
    ]);
  });

  it.each([
    '192.0.2.53',
    '192.0.2.53:5353',
    '2001:db8::53',
    '[2001:db8::53]',
    '[2001:db8::53]:5353',
    'fe80::1%eth0',
    '999.1.1.1',
    '192.0.2.53:0',
    '192.0.2.53:70000',
    '[2001:db8::53]:70000',
    '2001:db8:::53',
    'resolver.test',
    '',
  ])('accepts the DNS server %j exactly if the resolver does', (address) => {
    const parses = () => parseServer(address);
    const load = (path: string) =>
      faultsOf(() => loadConfig({ env: { [path]: JSON.stringify([address]) }, cwd: dir }));
    const faultOf = (key: string) => [`${key}[0]: must be "ip", "ip:port" or "[ip6]:port"`];
    const faults = [load('POSTRIDER_DNS__RESOLVERS'), load('POSTRIDER_DNS__SERVER__SECONDARIES')];
    if (faults.flat().length === 0) expect(parses).not.toThrow();
    else {
      expect(parses).toThrow('not a DNS server address');
      expect(faults).toEqual([faultOf('dns.resolvers'), faultOf('dns.server.secondaries')]);
    }
  });

  it('reports all faults together, each with its path', () => {
    const file = fileWith(
      'hostnam = "x"\n[api]\nlisten = "8080"\n[delivery]\nport = 70000\nroutes = [{ match = "*", host = "x", prot = 1 }]\n[limits]\nbodyDays = "many"\n',
    );
    const faults = faultsOf(() => loadConfig({ file, env: { POSTRIDER_API__LISTN: 'x' } }));
    expect(faults).toEqual([
      'POSTRIDER_API__LISTN: there is no such setting. Unset the variable or correct its name; "postrider config example" prints all keys',
      'api.listen: must be "address:port" such as "127.0.0.1:8080" or "[::1]:8080"',
      expect.stringMatching(/^delivery\.port: .*65535/),
      expect.stringMatching(/^delivery\.routes\[0\]\.prot: unknown key/),
      'limits.bodyDays: must be a whole number',
      expect.stringMatching(/^hostnam: unknown key/),
    ]);
  });

  it.each([
    [
      'regions',
      '[[regions]]\ncode = "a"\nname = "A"\n[[regions]]\ncode = "a"\nname = "B"',
      'regions[1].code',
    ],
    [
      'source addresses',
      '[delivery]\negress = [{ name = "one" }, { name = "two" }, { name = "one" }]',
      'delivery.egress[2].name',
    ],
  ])('rejects two %s with the same name', (_, text, path) => {
    expect(faultsOf(() => loadConfig({ file: fileWith(text), env: {} }))).toEqual([
      expect.stringMatching(new RegExp(`^${path.replace(/[[\]]/g, '\\$&')}: ".*" is used twice$`)),
    ]);
  });

  describe('authentication at a next hop', () => {
    const load = (hop: string) =>
      loadConfig({
        file: fileWith(`[delivery]\nroutes = [{ match = "*", host = "relay.example", ${hop} }]`),
        env: {},
      }).delivery.routes[0];
    const login = 'user = "u", passwordFile = "/p"';

    it.each([
      ['', 'opportunistic'],
      ['tls = "none"', 'none'],
      [login, 'verified'],
      [`${login}, tls = "verified"`, 'verified'],
      [`${login}, allowUnverifiedAuth = true`, 'verified'],
      [`${login}, allowUnverifiedAuth = true, tls = "required"`, 'required'],
      [`${login}, allowUnverifiedAuth = true, tls = "opportunistic"`, 'opportunistic'],
    ])('a route with { %s } has tls = %s', (hop, tls) => {
      expect(load(hop || 'port = 25')).toMatchObject({ tls });
    });

    it.each(['none', 'opportunistic', 'required'])(
      'refuses tls = "%s" without allowUnverifiedAuth',
      (tls) => {
        const fault = `tls: "${tls}" would send the password to a server whose name is not verified: use tls = "verified", or set allowUnverifiedAuth = true`;
        expect(faultsOf(() => load(`${login}, tls = "${tls}"`))).toEqual([`delivery.routes[0].${fault}`]);
        const env = {
          POSTRIDER_SECONDARY: `{ type = "relay", host = "r.example", ${login}, tls = "${tls}" }`,
        };
        expect(faultsOf(() => loadConfig({ env, cwd: dir }))).toEqual([`secondary.${fault}`]);
      },
    );

    it('never sends a password unencrypted to another machine', () => {
      const bare = `${login}, allowUnverifiedAuth = true, tls = "none"`;
      expect(faultsOf(() => load(bare))).toEqual([
        'delivery.routes[0].tls: "none" would send the password unencrypted to relay.example: use "verified" or "required"',
      ]);
      const routes = `[{ match = "*", host = "127.0.0.1", ${bare} }]`;
      const env = { POSTRIDER_DELIVERY__ROUTES: routes };
      expect(loadConfig({ env, cwd: dir }).delivery.routes[0]).toMatchObject({ tls: 'none' });
    });

    it.each(['[relay.example]', '[192.0.2.1]', '[::1]', '192.0.2.300', 'relay example', 'relay.example:25'])(
      'rejects the host %s',
      (host) => {
        const env = { POSTRIDER_DELIVERY__ROUTES: `[{ match = "*", host = "${host}" }]` };
        expect(faultsOf(() => loadConfig({ env, cwd: dir }))).toEqual([
          'delivery.routes[0].host: must be a host name such as "relay.example.com", or an IP address without brackets',
        ]);
      },
    );

    it.each(['relay.example', 'relay.example.', '192.0.2.1', '2001:db8::1'])(
      'accepts the host %s',
      (host) => {
        const env = { POSTRIDER_DELIVERY__ROUTES: `[{ match = "*", host = "${host}" }]` };
        expect(loadConfig({ env, cwd: dir }).delivery.routes[0]).toMatchObject({ host });
      },
    );

    it.each([
      ['user = "u"', 'passwordFile: is missing: user needs it'],
      ['passwordFile = "/p"', 'user: is missing: passwordFile needs it'],
    ])('rejects { %s } alone', (hop, fault) => {
      expect(faultsOf(() => load(hop))).toEqual([`delivery.routes[0].${fault}`]);
    });
  });

  it('requires agreement to the terms for built-in certificates', () => {
    const listening = { POSTRIDER_PUBLIC__TLS__LISTEN: '0.0.0.0:443' };
    expect(faultsOf(() => loadConfig({ env: listening, cwd: dir }))).toEqual([
      expect.stringMatching(/^public\.tls: needs agreeToTerms = true/),
    ]);
    const agreed = { ...listening, POSTRIDER_PUBLIC__TLS__AGREETOTERMS: 'true' };
    expect(loadConfig({ env: agreed, cwd: dir }).public.tls).toEqual({
      listen: '0.0.0.0:443',
      agreeToTerms: true,
      directory: 'https://acme-v02.api.letsencrypt.org/directory',
    });
  });

  it.each([
    ['a file that does not exist', join(dir, 'none.toml'), /cannot be read/],
    ['a file that is not TOML', fileWith('a = = b'), /^line 1: not valid TOML: /],
  ])('rejects %s', (_, file, message) => {
    expect(faultsOf(() => loadConfig({ file, env: {} })).join()).toMatch(message);
  });

  it('uses the master key from systemd credentials', () => {
    const credentials = mkdtempSync(join(dir, 'credentials-'));
    writeFileSync(join(credentials, 'master.key'), Buffer.alloc(32));
    const config = loadConfig({ env: { CREDENTIALS_DIRECTORY: credentials }, cwd: dir });
    expect(config.data.masterKeyFile).toBe(join(credentials, 'master.key'));
  });

  it('has an up-to-date example file', () => {
    const file = new URL('../../config/postrider.example.toml', import.meta.url);
    expect(readFileSync(file, 'utf8')).toBe(exampleToml());
  });

  it('has an example in which every line is valid when uncommented', () => {
    const text = exampleToml().replace(/^#(?=[a-zA-Z]+ = (?!""))|^#(?= {2}\{|\])/gm, '');
    const { data: _, ...settings } = parse(text);
    expect(Object.keys(settings).length).toBeGreaterThan(8);
    expect(faultsOf(() => loadConfig({ file: fileWith(text), env: {} }))).toEqual([]);
  });
});

describe('listen addresses', () => {
  it.each([
    ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
    ['[::1]:25', { host: '::1', port: 25 }],
    ['0.0.0.0:0', { host: '0.0.0.0', port: 0 }],
    ['8080', null],
    ['127.0.0.1', null],
    ['127.0.0.1:65536', null],
    ['::1:25', null],
  ])('parses %s', (text, expected) => {
    expect(parseListen(text)).toEqual(expected);
  });
});
