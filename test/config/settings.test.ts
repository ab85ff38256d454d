import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { effectiveSettings } from '../../src/config/inspect.ts';
import { ConfigFault, configFrom, loadConfig, readSources, rereadSources } from '../../src/config/load.ts';
import { assignLive, changesBetween } from '../../src/config/reload.ts';
import { allSettings, valueAt } from '../../src/config/settings.ts';
import { configWarnings, listenerConflicts } from '../../src/config/warnings.ts';
import { repliesPage, settingsPage } from './reference-pages.ts';

const dir = mkdtempSync(join(tmpdir(), 'postrider-settings-'));
afterAll(() => rmSync(dir, { recursive: true }));
let files = 0;

function fileWith(text: string): string {
  const file = join(dir, `${files++}.toml`);
  writeFileSync(file, text);
  return file;
}

const sourcesOf = (text: string, env: Record<string, string> = {}) =>
  readSources({ file: fileWith(text), env });

const SETTINGS = allSettings().map((setting) => [setting.name, setting] as const);

describe('each setting', () => {
  it.each(SETTINGS)('%s has a description and states whether a reload applies it', (_, setting) => {
    expect(setting.description).toMatch(/^[\w"'`].*\.$/s);
    expect(setting.appliedBy).toMatch(/^(?:reload|restart)$/);
  });

  it.each(SETTINGS)('%s is changed by a reload exactly if it is live', (name, { path, appliedBy }) => {
    const running = loadConfig({ file: null, env: {}, cwd: dir });
    const next = structuredClone(running);
    const section = path.length === 1 ? next : valueAt(next, path.slice(0, -1));
    if (typeof section !== 'object' || section === null) throw new Error(`${name} has no section`);
    // A value of another type: a reload compares and copies values without validating them.
    Reflect.set(section, path.at(-1) ?? '', 'changed');
    const isLive = appliedBy === 'reload';
    expect(changesBetween(running, next)).toEqual({
      applied: isLive ? [name] : [],
      needsRestart: isLive ? [] : [name],
    });
    const sections = { ...running };
    assignLive(running, next);
    expect(valueAt(running, path) === 'changed').toBe(isLive);
    // The parts of the daemon refer to the sections.
    for (const [key, value] of Object.entries(sections))
      if (key !== name) expect(valueAt(running, [key])).toBe(value);
  });
});

it.each([
  ['settings', settingsPage],
  ['replies', repliesPage],
])('docs/reference/%s.md is current (write it with: npm run docs:config)', (name, page) => {
  const document = readFileSync(new URL(`../../docs/reference/${name}.md`, import.meta.url), 'utf8');
  expect(document).toBe(page());
});

describe('the effective settings', () => {
  it('state the value and the origin of each setting', () => {
    const sources = sourcesOf(
      'hostname = "a.example"\n\n[delivery.retry]\nfirst = "90s"\n[data]\n  dir = "state"\n',
      { POSTRIDER_API__LISTEN: '127.0.0.1:9', POSTRIDER_LOG: '{ level = "warn" }' },
    );
    const shown = effectiveSettings(sources, configFrom(sources));
    const named = (name: string) => shown.find((setting) => setting.name === name);
    const { file } = sources;
    expect(named('hostname')).toMatchObject({ value: 'a.example', origin: { from: 'file', file, line: 1 } });
    expect(named('delivery.retry.first')).toMatchObject({ value: '90s', origin: { line: 4 } });
    expect(named('data.dir')).toMatchObject({ value: join(dir, 'state'), origin: { line: 6 } });
    expect(named('api.listen')).toMatchObject({
      value: '127.0.0.1:9',
      origin: { from: 'environment', variable: 'POSTRIDER_API__LISTEN' },
    });
    expect(named('log.level')).toMatchObject({ value: 'warn', origin: { variable: 'POSTRIDER_LOG' } });
    expect(named('log.hashAddresses')).toMatchObject({ value: true, origin: { from: 'default' } });
    expect(named('delivery.retry.max')).toMatchObject({ value: '4h', origin: { from: 'default' } });
    const isProfile = (name: string) => name.startsWith('delivery.shaping.');
    expect(shown.filter(({ name }) => !isProfile(name))).toHaveLength(SETTINGS.length - 1);
  });

  it('show every duration with its unit', () => {
    const text = '[domains]\ndkimRotation = "100d"\n';
    const sources = sourcesOf(text);
    const shown = effectiveSettings(sources, configFrom(sources));
    const durations = SETTINGS.filter(([, { schema }]) => schema.safeParse('100d').data === 8_640_000_000);
    expect(durations.length).toBeGreaterThan(5);
    for (const [name] of durations)
      expect(shown.find((setting) => setting.name === name)?.value).toMatch(/^\d+[smhd]$/);
  });

  it('mask secrets', () => {
    const sources = sourcesOf('[api]\nmetricsKey = "0123456789abcdef"\n');
    expect(JSON.stringify(effectiveSettings(sources, configFrom(sources)))).not.toContain('0123456789abcdef');
  });
});

describe('unknown keys', () => {
  it.each([
    ['hostnam = "x"', 'hostnam', '"hostname"'],
    ['[delivery]\nprot = 1', 'delivery.prot', '"port"'],
    ['[limits]\nbodydays = 1', 'limits.bodydays', '"bodyDays"'],
    ['[api]\nresolvers = []', 'api.resolvers', '"dns.resolvers"'],
  ])('%j names the setting that was probably meant', (text, key, meant) => {
    expect(() => configFrom(sourcesOf(text))).toThrow(`${key}: unknown key (did you mean ${meant}?)`);
  });

  it('without a similar name have no suggestion', () => {
    expect(() => configFrom(sourcesOf('zzzzzz = 1'))).toThrow(
      'zzzzzz: unknown key; "postrider config example" prints',
    );
  });
});

describe('the metrics key', () => {
  it('is read from its file', () => {
    writeFileSync(join(dir, 'metrics.key'), '0123456789abcdef\n');
    expect(configFrom(sourcesOf('[api]\nmetricsKeyFile = "metrics.key"')).api.metricsKey).toBe(
      '0123456789abcdef',
    );
  });

  it.each([
    ['a missing file', 'metricsKeyFile = "none.key"', /api\.metricsKeyFile: the file cannot be read/],
    ['both settings', 'metricsKeyFile = "k"\nmetricsKey = "0123456789abcdef"', /only one of metricsKey/],
  ])('is refused with %s', (_, lines, message) => {
    const load = () => configFrom(sourcesOf(`[api]\n${lines}`));
    expect(load).toThrow(ConfigFault);
    expect(load).toThrow(message);
  });
});

describe('warnings', () => {
  const warningsOf = (text: string, env: Record<string, string> = {}) => {
    const sources = sourcesOf(text, env);
    return configWarnings(sources, configFrom(sources)).map(({ key, message }) => `${key}: ${message}`);
  };

  it('are none for the defaults', () => {
    expect(warningsOf('# defaults')).toEqual([]);
  });

  it('name a name server on every address', () => {
    const text = '[dns.server]\nlisten = ["0.0.0.0:5353", "192.0.2.1:5353"]\naddresses = ["192.0.2.1"]\n';
    expect(warningsOf(text)).toEqual([
      expect.stringContaining('dns.server.listen: 0.0.0.0:5353 is every address'),
    ]);
  });

  it.each([
    [
      '[mx.tls]\ncertificateFile = "no.pem"\nkeyFile = "no.key"',
      /^mx\.tls\.certificateFile: .*no\.pem does not exist/,
    ],
    [
      '[console]\nlisten = "127.0.0.1:8081"',
      /^console\.listen: 127\.0\.0\.1:8081 is also used by public\.listen/,
    ],
    ['[api]\nlisten = "0.0.0.0:8080"', /^api\.listen: .* without TLS/],
    ['[api]\nmetricsKey = "0123456789abcdef"', /^api\.metricsKey: is a secret in the configuration file/],
    ['[submission]\nlisten = "0.0.0.0:587"', /^submission\.tls: there is no certificate/],
    ['[delivery]\nallowPrivateNetworks = true', /^delivery\.allowPrivateNetworks: is true/],
    ['[delivery.retry]\nfirst = "5h"', /^delivery\.retry\.first: is longer than/],
    ['[delivery.retry]\nexpireMarketing = "1m"', /^delivery\.retry\.expireMarketing: is not longer/],
    ['[limits]\nbodyDays = 100', /^limits\.bodyDays: is longer than/],
    [
      'regions = [{ code = "local", name = "x", pools = { tx = "fast" } }]\n[delivery]\negress = [{ name = "a" }]',
      /^regions\[0\]\.pools\.tx: no entry of delivery\.egress is in the pool "fast"/,
    ],
  ])('%j', (text, warning) => {
    expect(warningsOf(text)[0]).toMatch(warning);
  });

  it('name a secret in the environment', () => {
    const [warning] = warningsOf('# none', { POSTRIDER_API__METRICSKEY: '0123456789abcdef' });
    expect(warning).toContain('environment variable POSTRIDER_API__METRICSKEY');
  });

  it('name a secret file that every user can read', () => {
    writeFileSync(join(dir, 'open.key'), '0123456789abcdef', { mode: 0o644 });
    expect(warningsOf('[api]\nmetricsKeyFile = "open.key"')[0]).toMatch(
      /every user of this machine can read/,
    );
  });
});

describe('listeners with the same address', () => {
  it.each([
    ['[api]\nlisten = "127.0.0.1:8081"', /^127\.0\.0\.1:8081 is also used by api\.listen/],
    ['[public]\nlisten = "0.0.0.0:2525"', /is also used by public\.listen/],
  ])('%j', (text, message) => {
    const [conflict] = listenerConflicts(configFrom(sourcesOf(text)));
    expect(conflict?.message).toMatch(message);
  });

  it('are no fault where the console is one of them: it is then off', () => {
    expect(listenerConflicts(configFrom(sourcesOf('[console]\nlisten = "127.0.0.1:8081"')))).toEqual([]);
  });
});

describe('the file of a running daemon', () => {
  const TEXT = 'hostname = "mx.example.net"\n[log]\nlevel = "warn"\n';

  it('is read again', async () => {
    const file = fileWith(TEXT);
    const current = readSources({ file, env: {} });
    writeFileSync(file, TEXT.replace('warn', 'info'));
    expect((await rereadSources({ env: {} }, current)).tree).toMatchObject({ log: { level: 'info' } });
  });

  it('may become shorter, as when its last section is removed', async () => {
    const file = fileWith(TEXT);
    const current = readSources({ file, env: {} });
    writeFileSync(file, 'hostname = "mx.example.net"\n');
    expect((await rereadSources({ env: {} }, current)).tree).toEqual({ hostname: 'mx.example.net' });
  });

  it.each([
    ['is empty', '', /is empty/],
    ['ends within a line', 'hostname = "mx.example.net"\n[log]', /its last line has no line break/],
    ['ends within a value', 'hostname = "mx.exam', /its last line has no line break/],
    ['has lost its settings', '# Settings\n', /has no settings any more/],
  ])('is refused when it %s', async (_, text, message) => {
    const file = fileWith(TEXT);
    const current = readSources({ file, env: {} });
    writeFileSync(file, text);
    const reading = rereadSources({ env: {} }, current);
    await expect(reading).rejects.toThrow(ConfigFault);
    await expect(reading).rejects.toThrow(message);
  });

  it('is refused when it is missing, instead of using the defaults', async () => {
    const file = fileWith(TEXT);
    const current = readSources({ file, env: {} });
    rmSync(file);
    await expect(rereadSources({ env: {} }, current)).rejects.toThrow(/cannot be read: ENOENT/);
  });

  it('is read when it no longer changes', async () => {
    const file = fileWith(TEXT);
    const current = readSources({ file, env: {} });
    // Written in two steps: the first one ends with a complete line.
    writeFileSync(file, 'hostname = "mx.example.net"\n');
    const reading = rereadSources({ env: {} }, current);
    appendFileSync(file, '[log]\nlevel = "debug"\n');
    expect((await reading).tree).toMatchObject({ log: { level: 'debug' } });
  });
});
