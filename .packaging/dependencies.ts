import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** The packages that the program needs at run time, from package-lock.json. */
export interface Dependency {
  name: string;
  version: string;
  license: string;
  /** `node_modules/a/node_modules/b`, relative to the project. */
  path: string;
}

interface LockEntry {
  version?: string;
  license?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

/** Needed only to install a package: downloads a compiled module, which the packages contain. */
const INSTALL_ONLY = new Set(['prebuild-install']);

/** The libraries that are not a part of the bundled program (bundle.json), with their dependencies. */
export function unbundledDependencies(root: string): Dependency[] {
  const { notBundled }: { notBundled: string[] } = JSON.parse(
    readFileSync(join(root, '.packaging/bundle.json'), 'utf8'),
  );
  return dependenciesOf(root, notBundled);
}

/** Every library of the program. Throws when one is not installed. */
export function runtimeDependencies(root: string): Dependency[] {
  return dependenciesOf(root, null);
}

/** `names`: of direct dependencies; null: all. */
function dependenciesOf(root: string, names: readonly string[] | null): Dependency[] {
  const lock: { packages: Record<string, LockEntry> } = JSON.parse(
    readFileSync(join(root, 'package-lock.json'), 'utf8'),
  );
  const found = new Map<string, Dependency>();
  const visit = (from: string, entry: LockEntry) => {
    for (const name of Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })) {
      if (INSTALL_ONLY.has(name)) continue;
      const path = resolveIn(lock.packages, from, name);
      const next = path === null ? undefined : lock.packages[path];
      if (path === null || next === undefined || !existsSync(join(root, path))) {
        // Another platform's package.
        if (entry.optionalDependencies?.[name] !== undefined) continue;
        throw new Error(`${name}, which ${from || 'the program'} needs, is not installed: run npm ci`);
      }
      if (found.has(path)) continue;
      found.set(path, { name, path, version: next.version ?? '', license: next.license ?? 'see text' });
      visit(path, next);
    }
  };
  const { dependencies = {}, ...program } = lock.packages[''] ?? {};
  const wanted = Object.entries(dependencies).filter(([name]) => names === null || names.includes(name));
  visit('', { ...(names === null ? program : {}), dependencies: Object.fromEntries(wanted) });
  return [...found.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** The package that `name` means in the package at `from`: in its own node_modules, else in those above. */
function resolveIn(packages: Record<string, LockEntry>, from: string, name: string): string | null {
  // `node_modules/a/node_modules/b` is the package at two parts.
  const parts = from === '' ? [] : from.split(/\/(?=node_modules\/)/);
  const places = [...parts, ''].map((_, n) =>
    [...parts.slice(0, parts.length - n), `node_modules/${name}`].join('/'),
  );
  return places.find((path) => packages[path] !== undefined) ?? null;
}

/** Files that the program does not read: types, source maps, documents. */
const NOT_NEEDED = /(^\.npmignore|\.(d\.[cm]?ts|[cm]?ts|map|flow|md|markdown))$/;
/** Text that must accompany a copy. */
const LICENSE_FILE = /^(licen[cs]e|copying|notice|copyright)/i;

/** Copies the packages without their nested ones, which are dependencies of their own. */
export function copyDependencies(root: string, dependencies: readonly Dependency[], to: string): void {
  for (const { path } of dependencies) {
    const from = join(root, path);
    cpSync(from, join(to, path), {
      recursive: true,
      dereference: true,
      filter: (file) => {
        const name = basename(file);
        if (file !== from && name === 'node_modules') return false;
        if (LICENSE_FILE.test(name)) return true;
        return !NOT_NEEDED.test(name) && !isNativeSource(from, file);
      },
    });
  }
}

/** Sources and the compiled module of the Node on this machine. */
function isNativeSource(from: string, file: string): boolean {
  return (
    from.endsWith('/better-sqlite3') &&
    ['build', 'deps', 'src', 'binding.gyp'].some((part) => file === join(from, part))
  );
}

/** The license texts of all parts, one after another. */
export function licenseTexts(root: string, dependencies: readonly Dependency[], nodeLicense: string): string {
  const own = readFileSync(join(root, 'LICENSE'), 'utf8');
  const parts = [
    { title: 'Postrider (MIT)', text: own },
    {
      title: 'SQLite, in better-sqlite3 (public domain)',
      text: 'The author disclaims copyright to this source code: https://sqlite.org/copyright.html\n',
    },
    ...dependencies.map(({ name, version, license, path }) => ({
      title: `${name} ${version} (${license})`,
      text:
        licenseOf(join(root, path)) ?? `Published under the license ${license}, without a license file.\n`,
    })),
    { title: 'Node.js and its parts', text: nodeLicense },
  ];
  return parts
    .map(({ title, text }) => `${'='.repeat(78)}\n${title}\n${'='.repeat(78)}\n\n${text.trim()}\n`)
    .join('\n');
}

function licenseOf(dir: string): string | null {
  const files = readdirSync(dir, { withFileTypes: true })
    .filter((file) => file.isFile() && LICENSE_FILE.test(file.name))
    .map(({ name }) => name)
    .toSorted();
  return files.length === 0
    ? null
    : files.map((file) => readFileSync(join(dir, file), 'utf8').trim()).join('\n\n');
}
