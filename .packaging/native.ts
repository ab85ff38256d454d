import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Processor, Runtime } from './runtime.ts';

/**
 * Compiles better-sqlite3 for a runtime, whose ABI differs from that of the Node that runs this script. Needs node-gyp (part of npm), python3, make and a C++ compiler; for another processor its cross compiler.
 */
export function buildNativeModule(
  root: string,
  processor: Processor,
  runtime: Runtime,
  cache: string,
): string {
  const source = join(root, 'node_modules/better-sqlite3');
  const { version }: { version: string } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  const name = `better-sqlite3-${version}-node-${runtime.version}-${processor}-${RECIPE}.node`;
  const module = join(cache, name);
  if (existsSync(module)) return module;
  const tools = toolsFor(processor);
  const dir = join(cache, `build-${processor}-${runtime.version}`);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  for (const part of ['package.json', 'binding.gyp', 'src', 'deps'])
    cpSync(join(source, part), join(dir, part), { recursive: true });
  const nodedir = join(dir, 'node');
  cpSync(join(runtime.dir, 'include'), join(nodedir, 'include'), { recursive: true });
  correctHeaders(join(nodedir, 'include/node/node_object_wrap.h'));
  const npm = execFileSync('npm', ['root', '--global'], { encoding: 'utf8' }).trim();
  const nodeGyp = join(npm, 'npm/node_modules/node-gyp/bin/node-gyp.js');
  // Paths of the build directory would make the file differ between machines.
  const flags = `-ffile-prefix-map=${dir}=.`;
  execFileSync(
    process.execPath,
    [nodeGyp, 'rebuild', '--release', `--nodedir=${nodedir}`, `--arch=${processor}`, '--loglevel=warn'],
    {
      cwd: dir,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...ownEnvironment(), CC: tools.cc, CXX: tools.cxx, CFLAGS: flags, CXXFLAGS: flags },
    },
  );
  const built = join(dir, 'build/Release/better_sqlite3.node');
  execFileSync(tools.strip, ['--strip-unneeded', built]);
  checkLibc(tools.objdump, built);
  renameSync(built, module);
  rmSync(dir, { recursive: true });
  return module;
}

/** In the name of the compiled module: changes when it is compiled in another way. */
const RECIPE = 'gc-safe';

/**
 * Removes the cleanup hooks of node::ObjectWrap, the base class of the objects of better-sqlite3. Node 24 added them; they
 * abort the process when the garbage collector deletes such an object while no context is entered
 * (`RemoveEnvironmentCleanupHook`: assertion `(env) != nullptr`). The class is compiled into the module, and without the
 * hooks it is that of Node 20 and 22. Throws when the header is not as expected.
 */
export function correctHeaders(file: string): void {
  const text = readFileSync(file, 'utf8');
  const calls = /^ +(?:Add|Remove)CleanupHook\(\);\n/gm;
  const found = text.match(calls)?.length ?? 0;
  if (found === 0 && !text.includes('CleanupHook')) return;
  if (found !== 2)
    throw new Error(`${file}: ${found} calls of cleanup hooks, not 2: adapt .packaging/native.ts`);
  writeFileSync(file, text.replaceAll(calls, ''));
}

/** Without npm's settings: node-gyp prefers them to its arguments, and `nodedir` would name other headers. */
function ownEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_config_/i.test(name)));
}

function toolsFor(processor: Processor): { cc: string; cxx: string; strip: string; objdump: string } {
  const prefix =
    processor === process.arch ? '' : processor === 'arm64' ? 'aarch64-linux-gnu-' : 'x86_64-linux-gnu-';
  const tools = {
    cc: `${prefix}gcc`,
    cxx: `${prefix}g++`,
    strip: `${prefix}strip`,
    objdump: `${prefix}objdump`,
  };
  try {
    execFileSync(tools.cxx, ['--version'], { stdio: 'ignore' });
  } catch (error) {
    throw new Error(
      `${tools.cxx} is needed to compile for ${processor}: install it (Debian: ${PACKAGES[processor]})`,
      {
        cause: error,
      },
    );
  }
  return tools;
}

const PACKAGES: Record<Processor, string> = {
  x64: 'g++-x86-64-linux-gnu',
  arm64: 'g++-aarch64-linux-gnu',
};

/** The C library of Debian 12; `Depends` in deb.ts names it, too. */
export const OLDEST_LIBC = '2.36';

/** Throws when the file needs a newer C library than that of Debian 12: it was compiled on a newer system. */
function checkLibc(objdump: string, file: string): void {
  const symbols = execFileSync(objdump, ['-T', file], { encoding: 'utf8', maxBuffer: 1 << 26 });
  const versions = [...symbols.matchAll(/\bGLIBC_(\d+)\.(\d+)/g)].map(
    ([, major, minor]) => [Number(major), Number(minor)] as const,
  );
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_LIBC.split('.').map(Number);
  const newer = versions.find(
    ([major, minor]) => major > oldestMajor || (major === oldestMajor && minor > oldestMinor),
  );
  if (newer !== undefined)
    throw new Error(
      `${file} needs glibc ${newer.join('.')}, Debian 12 has ${OLDEST_LIBC}: build on Debian 12`,
    );
}
