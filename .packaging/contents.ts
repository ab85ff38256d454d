import {
  chmodSync,
  copyFileSync,
  cpSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { constants, gzipSync } from 'node:zlib';
import { exampleToml } from '../src/config/example.ts';
import { programHelp } from './commands.ts';
import { bashCompletion, fishCompletion, zshCompletion } from './completion.ts';
import {
  copyDependencies,
  licenseTexts,
  runtimeDependencies,
  unbundledDependencies,
} from './dependencies.ts';
import { programPage, settingsPage } from './manual.ts';
import type { Runtime } from './runtime.ts';

/** The inputs of the packages. */
export interface Parts {
  /** The project's directory, built, with the API reference in `dist/docs/`. */
  root: string;
  version: string;
  runtime: Runtime;
  /** The compiled better-sqlite3. */
  nativeModule: string;
  /** Epoch seconds: modification time of all files (https://reproducible-builds.org/specs/source-date-epoch/). */
  epoch: number;
}

/** Writes the files that are installed below `/usr` or `/usr/local` to `dir`. */
export async function writePrefix(parts: Parts, dir: string): Promise<void> {
  const { root, version, runtime } = parts;
  const library = join(dir, 'lib/postrider');
  copy(join(root, '.packaging/postrider.sh'), join(dir, 'bin/postrider'), 0o755);
  copy(join(runtime.dir, 'bin/node'), join(library, 'bin/node'), 0o755);
  const reference = join(root, 'dist/docs');
  cpSync(join(root, 'dist'), join(library, 'dist'), {
    recursive: true,
    filter: (file) => file !== reference,
  });
  // Data that the program reads from its own directory (src/config/shaping.ts, src/config/program-file.ts).
  for (const name of readdirSync(join(root, 'config')).filter((each) => each.endsWith('.toml')))
    if (name !== 'postrider.example.toml')
      copy(join(root, 'config', name), join(library, 'config', name), 0o644);
  copyDependencies(root, unbundledDependencies(root), library);
  copy(
    parts.nativeModule,
    join(library, 'node_modules/better-sqlite3/build/Release/better_sqlite3.node'),
    0o644,
  );
  const manifest = { name: 'postrider', version, type: 'module', license: 'MIT', private: true };
  write(join(library, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);

  const documents = join(dir, 'share/doc/postrider');
  const nodeLicense = readFileSync(join(runtime.dir, 'LICENSE'), 'utf8');
  write(join(documents, 'copyright'), licenseTexts(root, runtimeDependencies(root), nodeLicense));
  write(join(documents, 'CHANGELOG.md.gz'), compressed(readFileSync(join(root, 'CHANGELOG.md'))));
  write(join(documents, 'examples/postrider.example.toml'), exampleToml());
  cpSync(join(root, 'config/monitoring'), join(documents, 'examples/monitoring'), { recursive: true });
  const site = join(root, 'docs/site');
  cpSync(join(root, 'docs'), join(documents, 'docs'), { recursive: true, filter: (file) => file !== site });
  cpSync(reference, join(documents, 'docs/api'), { recursive: true });

  const program = await programHelp();
  const page = { version, date: new Date(parts.epoch * 1000).toISOString().slice(0, 10) };
  const manual = join(dir, 'share/man');
  write(join(manual, 'man1/postrider.1.gz'), compressed(programPage(program, page)));
  write(join(manual, 'man5/postrider.toml.5.gz'), compressed(settingsPage(page)));
  write(join(dir, 'share/bash-completion/completions/postrider'), bashCompletion(program));
  write(join(dir, 'share/zsh/vendor-completions/_postrider'), zshCompletion(program));
  write(join(dir, 'share/fish/vendor_completions.d/postrider.fish'), fishCompletion(program));
}

/** Writes a file with this mode, and creates its directory. */
export function write(file: string, content: string | Buffer, mode = 0o644): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  chmodSync(file, mode);
}

/** Copies a file with this mode, and creates its directory. */
export function copy(from: string, to: string, mode: number): void {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
  chmodSync(to, mode);
}

/** Sets modes and modification times that do not depend on this machine. Returns the size of the files in bytes. */
export function normalize(path: string, epoch: number): number {
  const status = lstatSync(path);
  let bytes = status.isFile() ? status.size : 0;
  if (status.isDirectory()) for (const name of readdirSync(path)) bytes += normalize(join(path, name), epoch);
  const isProgram = status.isDirectory() || (status.mode & 0o100) !== 0;
  if (!status.isSymbolicLink()) chmodSync(path, isProgram ? 0o755 : 0o644);
  lutimesSync(path, epoch, epoch);
  return bytes;
}

/** Compresses with gzip, without a time in the header. */
export function compressed(content: string | Buffer): Buffer {
  return gzipSync(content, { level: constants.Z_BEST_COMPRESSION });
}
