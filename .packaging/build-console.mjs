// Builds the application of the console: src/console/ with Preact, as files with hashed names, each with compressed copies.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { consoleIcons } from './console-icons.mjs';

/** Limit of the compressed bytes that are loaded before the application renders: the page, its styles and modules. */
const MAX_FIRST_LOAD = 80 * 1024;
/** Limit of the compressed bytes that the editor of blocks loads in addition to its page. */
const MAX_BLOCK_EDITOR = 160 * 1024;
const BLOCK_EDITOR = 'parts/block-editor/block-editor.tsx';
/** Name of the file with the hash of the sources; without an extension, so that it is never served. */
const SOURCES = 'sources';
const TEXT = /\.(html|js|css|svg|json)$/;

/**
 * Returns the files by their path below `output`. They are those in `output` if the sources have not changed: loading
 * Vite takes longer than the rest of a build.
 */
export async function buildConsole(root, output) {
  const source = join(root, 'src/console');
  const hash = hashOf([...filesIn(source), import.meta.filename, join(import.meta.dirname, 'console-icons.mjs'), join(root, 'docs/reference/programs.md'), join(root, 'package-lock.json')]);
  const marker = join(output, SOURCES);
  if (existsSync(marker) && readFileSync(marker, 'utf8') === hash)
    return new Map(filesIn(output).map((path) => [path, readFileSync(path)]));

  const { build } = await import('vite');
  const { output: chunks } = await build({
    ...consoleOptions(source),
    build: {
      write: false,
      target: 'es2023',
      // The policy of the pages allows no inline content.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
  });
  const files = new Map([[marker, Buffer.from(hash)]]);
  for (const chunk of chunks) {
    const content = Buffer.from(chunk.type === 'chunk' ? chunk.code : chunk.source);
    const path = join(output, chunk.fileName);
    files.set(path, content);
    if (!TEXT.test(path)) continue;
    files.set(`${path}.gz`, gzipSync(content, { level: 9 }));
    files.set(
      `${path}.br`,
      brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } }),
    );
  }
  const limit = (part, names, most) => {
    const size = names.reduce((sum, name) => sum + files.get(join(output, `${name}.gz`)).length, 0);
    console.log(`console: the ${part} is ${(size / 1024).toFixed(1)} KiB (gzip)`);
    if (size > most) throw new Error(`The ${part} of the console is ${size} bytes, more than ${most}`);
  };
  limit('first load', firstLoad(chunks), MAX_FIRST_LOAD);
  limit('editor of blocks', loadOf(BLOCK_EDITOR, chunks), MAX_BLOCK_EDITOR);
  const early = textsTooEarly(source, chunks);
  if (early.length > 0)
    throw new Error(`The first load of the console uses texts that are loaded with the pages; move them to texts/en.json: ${early.join(', ')}`);
  return files;
}

/** The options of Vite for the console; `npm run dev` uses them, too. */
export function consoleOptions(source) {
  return {
    root: source,
    base: '/console/',
    configFile: false,
    logLevel: 'warn',
    plugins: [consoleIcons(source), layerOrder(source)],
    // Not by NODE_ENV, which tests set: they use the same files as the package.
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
  };
}

/**
 * Begins each style sheet with the order of the layers. Which sheets become a file depends on which modules share them, and a
 * file that is loaded before the one with the order would otherwise decide it.
 */
function layerOrder(source) {
  const order = readFileSync(join(source, 'style/layers.css'), 'utf8');
  return {
    name: 'layer-order',
    enforce: 'pre',
    transform: (code, id) => (id.endsWith('.css') ? `${order}${code}` : null),
  };
}

/** Names of the files that every page loads. */
function firstLoad(chunks) {
  const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
  const names = new Set(chunks.filter(({ fileName }) => /\.(html|css)$/.test(fileName)).map((c) => c.fileName));
  const add = (name) => {
    if (names.has(name)) return;
    names.add(name);
    for (const imported of byName.get(name).imports) add(imported);
  };
  for (const chunk of chunks) if (chunk.isEntry) add(chunk.fileName);
  return [...names];
}

/** Names of the files that a module which is loaded later adds to the first load, with its styles. */
function loadOf(module, chunks) {
  const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
  const [entry] = chunks.filter(({ facadeModuleId }) => facadeModuleId?.endsWith(module));
  if (entry === undefined) throw new Error(`The console has no chunk of ${module}`);
  const early = new Set(firstLoad(chunks).filter((name) => name.endsWith('.js')));
  const names = new Set();
  const add = (name) => {
    if (names.has(name) || early.has(name)) return;
    names.add(name);
    const { imports, viteMetadata } = byName.get(name);
    for (const sheet of viteMetadata?.importedCss ?? []) names.add(sheet);
    for (const imported of imports) add(imported);
  };
  add(entry.fileName);
  return [...names];
}

/** Keys in `texts/pages/` that the code of the first load names: their text is not loaded yet when it appears. */
function textsTooEarly(source, chunks) {
  const loaded = new Set(firstLoad(chunks));
  const code = chunks.filter(({ type, fileName }) => type === 'chunk' && loaded.has(fileName)).map((chunk) => chunk.code).join('\n');
  const named = new Set([...code.matchAll(/[`"']([\w.-]+)[`"']/g)].map(([, text]) => text));
  const keys = Object.keys(JSON.parse(readFileSync(join(source, 'texts/pages/en.json'), 'utf8')));
  return keys.filter((key) => named.has(key) || (key.endsWith('.one') && named.has(key.slice(0, -'.one'.length))));
}

function hashOf(paths) {
  const hash = createHash('sha256');
  for (const path of paths) hash.update(`${path}\0`).update(readFileSync(path)).update('\0');
  return hash.digest('hex');
}

function filesIn(directory) {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
