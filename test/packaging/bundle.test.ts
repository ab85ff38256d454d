import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const bundle: { programs: string[]; notBundled: string[] } = JSON.parse(
  readFileSync(join(ROOT, '.packaging/bundle.json'), 'utf8'),
);

function filesIn(folder: string, extension: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(extension))
    .map((file) => join(ROOT, folder, file));
}

describe('the built program', () => {
  it('has a file for each program that a module starts', () => {
    const started = filesIn('src', '.ts').flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/builtProgram\('([^']+)'\)/g)].map(([, path]) => `${path}.ts`),
    );
    expect(started.length).toBeGreaterThan(5);
    expect(bundle.programs).toEqual(expect.arrayContaining(started));
  });

  // A dynamic import of a CommonJS library has other exports: import a module of `src/` that imports it statically.
  it('imports libraries statically', () => {
    const dynamic = filesIn('src', '.ts').filter((file) =>
      /(?<!typeof )\bimport\('[^.']/.test(readFileSync(file, 'utf8')),
    );
    expect(dynamic).toEqual([]);
  });

  // `import { z }` brings the error messages of 50 languages into every thread and command: 420 KB.
  it('imports Zod so that the build leaves out what is not used', () => {
    const whole = filesIn('src', '.ts').filter((file) =>
      /^import \{[^}]*\} from 'zod';/m.test(readFileSync(file, 'utf8')),
    );
    expect(whole).toEqual([]);
  });

  it('contains its libraries, except those with a compiled module', () => {
    const imported = filesIn('dist', '.js').flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/\bimport(?:[^"'`();]*?\bfrom)?"([^."][^"]*)";/g)].map(
        ([, name]) => name ?? '',
      ),
    );
    expect(new Set(imported.filter((name) => !isBuiltin(name)))).toEqual(new Set(bundle.notBundled));
  });
});
