import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { effectiveSettings } from '../../src/config/inspect.ts';
import { ConfigFault, configFrom, loadConfig, readSources } from '../../src/config/load.ts';
import { readProgramShaping, SHAPING_FILE, type ShapingProfile } from '../../src/config/shaping.ts';

const dir = mkdtempSync(join(tmpdir(), 'postrider-shaping-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let files = 0;
function fileWith(text: string): string {
  const file = join(dir, `${files++}.toml`);
  writeFileSync(file, text);
  return file;
}

const shapingOf = (text: string): ShapingProfile[] =>
  loadConfig({ file: fileWith(text), env: {} }).delivery.shaping;
const named = (profiles: readonly ShapingProfile[], name: string) =>
  profiles.find((profile) => profile.name === name);

function faultsOf(text: string): readonly string[] {
  try {
    shapingOf(text);
    return [];
  } catch (error) {
    if (error instanceof ConfigFault) return error.faults;
    throw error;
  }
}

describe('the profiles of the program', () => {
  const profiles = loadConfig({ file: null, env: {} }).delivery.shaping;

  it('cover the large receivers, and end with the default', () => {
    expect(profiles.map(({ name }) => name)).toEqual([
      'google',
      'microsoft-consumer',
      'microsoft-business',
      'yahoo',
      'apple',
      'united-internet',
      't-online',
      'orange',
      'free',
      'libero',
      'mail-ru',
      'yandex',
      'qq',
      'netease',
      'proofpoint',
      'mimecast',
      'barracuda',
      'cisco',
      'default',
    ]);
    expect(new Set(profiles.map(({ origin }) => origin))).toEqual(new Set(['program']));
  });

  it('have no pattern twice, and each names its source', () => {
    const patterns = profiles.flatMap(({ match }) => match);
    expect(new Set(patterns).size).toBe(patterns.length);
    const blocks = readFileSync(SHAPING_FILE, 'utf8').split('[[profile]]').slice(1, -1);
    // The comment before a profile is at the end of the block before it.
    expect(blocks.filter((block) => !/#.*(?:https?:\/\/|User Guide)/.test(block))).toEqual([]);
  });

  it('are in the same place for the compiled program', () => {
    expect(existsSync(SHAPING_FILE)).toBe(true);
    expect(
      new URL('../../config/shaping.toml', new URL('../../dist/config/shaping.js', import.meta.url)).pathname,
    ).toBe(SHAPING_FILE);
  });

  it('are refused with the file and the key of the fault', () => {
    const file = fileWith('[[profile]]\nname = "a"\nconnections = 0\n');
    expect(() => readProgramShaping(file)).toThrow(
      /shaping profiles of the program in .*profile\.0\.connections/,
    );
    expect(() => readProgramShaping(join(dir, 'missing.toml'))).toThrow(/missing\.toml cannot be used/);
  });
});

describe('delivery.shaping', () => {
  it('with its own match precedes the profiles of the program, and takes the rest from the default', () => {
    const profiles = shapingOf(`
      [[delivery.shaping]]
      match = ["MX.Example.net", "*.example.org"]
      perSecond = 0.5
      [[delivery.shaping]]
      name = "default"
      connections = 3
    `);
    expect(profiles[0]).toEqual({
      name: 'mx.example.net',
      match: ['mx.example.net', '*.example.org'],
      connections: 3,
      messagesPerConnection: 100,
      perSecond: 0.5,
      idleSeconds: 60,
      tls: 'opportunistic',
      chunking: true,
      shared: true,
      addressPause: 0,
      delisting: '',
      origin: 'configuration',
    });
    expect(profiles.at(-1)).toMatchObject({ name: 'default', connections: 3, origin: 'changed' });
    expect(named(profiles, 'google')).toMatchObject({ connections: 5, origin: 'program' });
  });

  it('with the name of a profile of the program changes the keys that it has', () => {
    const profiles = shapingOf('[[delivery.shaping]]\nname = "google"\nconnections = 20\n');
    expect(named(profiles, 'google')).toMatchObject({
      connections: 20,
      messagesPerConnection: 50,
      match: ['*.google.com', '*.googlemail.com'],
      tls: 'required',
      origin: 'changed',
    });
    expect(profiles.filter(({ name }) => name === 'google')).toHaveLength(1);
  });

  it.each([
    ['connections = 0', 'delivery.shaping[0].connections'],
    ['perSecond = -1', 'delivery.shaping[0].perSecond: must be 0 (no limit), or 0.001 to 10000'],
    ['perSecond = 0.0001', 'delivery.shaping[0].perSecond'],
    ['match = "no spaces"', 'delivery.shaping[0].match'],
    ['tls = "maybe"', 'delivery.shaping[0].tls'],
    ['chunking = "no"', 'delivery.shaping[0].chunking'],
    ['typo = 1', 'delivery.shaping[0].typo: unknown key'],
  ])('is refused when %s', (line, fault) => {
    const entry = line.startsWith('match') ? line : `match = "mx.example.net"\n${line}`;
    expect(faultsOf(`[[delivery.shaping]]\n${entry}\n`).join()).toContain(fault);
  });

  it('is refused when it names no known profile, or the profile of another entry', () => {
    expect(faultsOf('[[delivery.shaping]]\nname = "gogle"\nconnections = 1\n')).toEqual([
      expect.stringMatching(
        /^delivery\.shaping\[0\]\.match: is missing: "gogle" is not a profile of the program \(.*google/,
      ),
    ]);
    expect(faultsOf('[[delivery.shaping]]\nconnections = 1\n').join()).toContain('needs match');
    expect(faultsOf('[[delivery.shaping]]\nname = "default"\nmatch = "a.test"\n').join()).toContain(
      'must not be set',
    );
    const twice = '[[delivery.shaping]]\nmatch = "a.test"\n';
    expect(faultsOf(twice + twice)).toEqual(['delivery.shaping[1].match: "a.test" is used twice']);
  });

  it('is shown by profile, each with its file', () => {
    const file = fileWith('\n[[delivery.shaping]]\nname = "yahoo"\nconnections = 2\n');
    const sources = readSources({ file, env: {} });
    const shown = effectiveSettings(sources, configFrom(sources));
    const setting = (name: string) => shown.find((each) => each.name === `delivery.shaping.${name}`);
    expect(setting('google')).toMatchObject({
      value: { connections: 5, addressPause: '30m' },
      origin: { from: 'program', file: SHAPING_FILE },
      appliedBy: 'reload',
    });
    expect(setting('yahoo')).toMatchObject({
      value: { connections: 2, messagesPerConnection: 20 },
      origin: { from: 'file', file, line: 2 },
    });
  });
});
