import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseSync } from 'oxc-parser';
import { expect, it } from 'vitest';

/* Style sheets are loaded with the modules that import them: a class whose sheet another page imports has no rules here. */
const SOURCE = join(import.meta.dirname, '../../../src/console');
/** Their sheets are loaded with every page. */
const GENERAL = ['main.tsx', 'parts.tsx', 'shell/shell.tsx'];
/** Attributes whose value is a class; `valueClass` passes one on. */
const CLASS_ATTRIBUTES = ['class', 'valueClass'];

const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).map((name) => join(SOURCE, name));
const sheetsOf = classesOfSheets(files.filter((file) => file.endsWith('.css')));

function classesOfSheets(sheets: readonly string[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const sheet of sheets) {
    const text = readFileSync(sheet, 'utf8').replaceAll(/\/\*.*?\*\/|@import[^;]*;/gs, '');
    // Selectors only: what is in front of a brace.
    for (const [selector] of text.matchAll(/[^{}]+(?=\{)/g))
      for (const [, name = ''] of selector.matchAll(/\.([a-z][\w-]*)/g))
        found.set(name, [...(found.get(name) ?? []), sheet]);
  }
  return found;
}

/** The words of the classes of a module's elements. `isAll`: those of all its texts, which may be classes. */
function classesOf(source: string, isAll = false): Set<string> {
  const found = new Set<string>();
  const visit = (node: unknown, isClass: boolean): void => {
    if (typeof node !== 'object' || node === null) return;
    const { type, name, value } = node as Record<string, unknown>;
    const attribute = (name as { name?: unknown } | null | undefined)?.name;
    const inside =
      isClass ||
      (type === 'JSXAttribute' && typeof attribute === 'string' && CLASS_ATTRIBUTES.includes(attribute));
    const text =
      type === 'TemplateElement' ? (value as { raw: string }).raw : type === 'Literal' ? value : '';
    if (isClass && typeof text === 'string')
      for (const part of text.split(/\s+/)) if (part !== '') found.add(part);
    for (const child of Object.values(node)) visit(child, inside);
  };
  visit(parseSync('page.tsx', source).program, isAll);
  return found;
}

function importedSheets(file: string, source: string): string[] {
  return [...source.matchAll(/^import '(\.[^']+\.css)';$/gm)].map(([, path = '']) =>
    join(dirname(file), path),
  );
}

it('every module imports the style sheets of the classes that it uses', () => {
  const missing: string[] = [];
  let uses = 0;
  const general = GENERAL.map((name) => join(SOURCE, name)).flatMap((file) =>
    importedSheets(file, readFileSync(file, 'utf8')),
  );
  for (const file of files.filter((name) => name.endsWith('.tsx'))) {
    const source = readFileSync(file, 'utf8');
    const loaded = [...general, ...importedSheets(file, source)];
    for (const name of classesOf(source)) {
      const sheets = sheetsOf.get(name) ?? [];
      uses += sheets.length;
      // The modules of a folder are loaded by its page, which imports the sheet of the folder.
      const isLoaded = (sheet: string) => loaded.includes(sheet) || dirname(sheet) === dirname(file);
      if (sheets.length > 0 && !sheets.some(isLoaded))
        missing.push(
          `${relative(SOURCE, file)}: .${name} of ${sheets.map((each) => relative(SOURCE, each)).join()}`,
        );
    }
  }
  expect(missing).toEqual([]);
  // Otherwise nothing was examined.
  expect(uses).toBeGreaterThan(100);
});

it('every class that has rules is named by a module', () => {
  const named = new Set(
    files
      .filter((name) => /(?<!\.d)\.tsx?$/.test(name))
      .flatMap((file) => [...classesOf(readFileSync(file, 'utf8'), true)]),
  );
  expect(sheetsOf.size).toBeGreaterThan(100);
  expect([...sheetsOf.keys()].filter((name) => !named.has(name))).toEqual([]);
});
