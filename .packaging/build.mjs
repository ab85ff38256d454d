// Builds the program: bundles src/ and its libraries into dist/. Hundreds of small files take longer to load than to run,
// and each thread loads them again: bundled, the daemon and every command start in half the CPU time.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { buildConsole } from './build-console.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SOURCE = join(ROOT, 'src');
const OUTPUT = join(ROOT, 'dist');

/**
 * `programs`: those of the process, its threads and its child processes; store/readers/thread.ts is also a library of
 * test programs. `notBundled`: libraries with a compiled module, which belongs to the Node that runs it.
 */
const { programs, notBundled } = JSON.parse(readFileSync(new URL('bundle.json', import.meta.url), 'utf8'));

/** Placeholder of the path from an output file to dist/. */
const PLACE = '@dist@';
/** In each output file. Libraries that are CommonJS modules call `require`; `$dist`: see `ownFiles`. */
const BANNER = `import { createRequire as $createRequire } from 'node:module'; const require = $createRequire(import.meta.url), $dist = new URL('${PLACE}', import.meta.url);`;

/** Resolves the paths of files relative to the module in src/ instead of the output file that contains it. */
const ownFiles = {
  name: 'files of the program',
  setup: ({ onLoad }) =>
    onLoad({ filter: /[/\\]src[/\\].*\.ts$/ }, ({ path }) => {
      const place = relative(SOURCE, path).replace(/\.ts$/, '.js');
      if (place.startsWith('..')) return undefined;
      const code = readFileSync(path, 'utf8');
      return { loader: 'ts', contents: code.replaceAll('import.meta.url', `new URL('${place}', $dist).href`) };
    }),
};

/** Node reads the source maps at the start (--enable-source-maps), so they describe only the code of the project. */
const NO_MAP = Buffer.from('{"version":3,"sources":[""],"mappings":"A"}').toString('base64');
const unmappedLibraries = {
  name: 'libraries without source maps',
  setup: ({ onLoad }) =>
    onLoad({ filter: /[/\\]node_modules[/\\].*\.[cm]?js$/ }, ({ path }) => ({
      loader: 'js',
      contents: `${readFileSync(path, 'utf8')}\n//# sourceMappingURL=data:application/json;base64,${NO_MAP}`,
    })),
};

/** Of each program. Splitting: the modules that it imports later are separate files. */
const options = {
  absWorkingDir: ROOT,
  external: notBundled,
  // The compiler of MJML; the thread that needs it loads it later, as one file.
  loader: { '.wasm': 'binary' },
  plugins: [ownFiles, unmappedLibraries],
  outdir: OUTPUT,
  outbase: SOURCE,
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // Each thread keeps the text of its modules in memory. Names stay, for stack traces and metrics.
  minifyWhitespace: true,
  minifySyntax: true,
  sourcemap: 'linked',
  sourcesContent: false,
  legalComments: 'none',
  banner: { js: BANNER },
  write: false,
  logLevel: 'warning',
};
// Each program is bundled separately. In one build, a thread would load 50 files with what it shares with other programs.
const builds = await Promise.all(
  programs.map((file) => build({ ...options, entryPoints: [join(SOURCE, file)] })),
);
const outputFiles = builds.flatMap((result) => result.outputFiles);

// Programs may be running: files that have not changed are not written.
const built = new Map(outputFiles.map(({ path, text }) => [path, withPlace(path, text)]));
const migrations = join(SOURCE, 'store/migrations');
for (const name of readdirSync(migrations).filter((file) => file.endsWith('.sql')))
  built.set(join(OUTPUT, 'store/migrations', name), readFileSync(join(migrations, name), 'utf8'));
for (const [path, content] of await buildConsole(ROOT, join(OUTPUT, 'console'))) built.set(path, content);
for (const [path, content] of built) {
  if (existsSync(path) && readFileSync(path).equals(Buffer.from(content))) continue;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}
for (const entry of readdirSync(OUTPUT, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath, entry.name);
  if (!entry.isDirectory() && !built.has(path)) rmSync(path);
}
chmodSync(join(OUTPUT, 'main.js'), 0o755);

function withPlace(path, text) {
  return path.endsWith('.js') ? text.replace(PLACE, `${relative(dirname(path), OUTPUT) || '.'}/`) : text;
}
