import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { licenseTexts, runtimeDependencies, unbundledDependencies } from '../../.packaging/dependencies.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const dependencies = runtimeDependencies(ROOT);
const names = new Set(dependencies.map(({ name }) => name));

describe('the dependencies in the packages', () => {
  it('are those of the program and theirs', () => {
    const own: { dependencies: Record<string, string> } = JSON.parse(
      readFileSync(`${ROOT}/package.json`, 'utf8'),
    );
    for (const name of Object.keys(own.dependencies)) expect(names).toContain(name);
    // Dependencies of koa, of mailauth and of better-sqlite3.
    for (const name of ['cookies', 'libmime', 'bindings']) expect(names).toContain(name);
  });

  it('include nothing for development or for downloads during an installation', () => {
    for (const name of ['vitest', 'typescript', 'esbuild', 'prebuild-install', 'tar-fs'])
      expect(names).not.toContain(name);
  });

  it('are copied only when the program does not contain them', () => {
    const copied = unbundledDependencies(ROOT).map(({ name }) => name);
    expect(copied.toSorted()).toEqual(['better-sqlite3', 'bindings', 'file-uri-to-path']);
  });

  it('are listed once, each with its version and license', () => {
    expect(new Set(dependencies.map(({ path }) => path)).size).toBe(dependencies.length);
    expect(dependencies.filter(({ version, license }) => version === '' || license === '')).toEqual([]);
  });

  it('are named in the copyright file with their texts', () => {
    const text = licenseTexts(ROOT, dependencies, 'Node.js is licensed for use as follows:');
    for (const { name, version } of dependencies) expect(text).toContain(`\n${name} ${version} (`);
    expect(text).toContain('Copyright (c) 2017 Joshua Wise');
    expect(text).toContain('Node.js is licensed for use as follows:');
  });
});
