// Completes the package-lock.json of the working directory, here or in .ci/tools. Run it after `npm install`.
// - Adds optional platform packages that npm omitted because the registry did not have them: `npm ci` rejects a lock file without
//   them on every platform. The entries have a version and a platform, but no integrity, which an `npm install` with a complete
//   registry adds.
// - States the Node versions on which a dependency runs here, where it demands a newer one than it needs: `npm ci` would begin
//   with a warning (EBADENGINE). The tests run on these versions.
import { readFileSync, writeFileSync } from 'node:fs';

const SYSTEMS = 'aix android darwin freebsd linux netbsd openbsd openharmony sunos win32'.split(' ');
const PROCESSORS = 'arm arm64 ia32 loong64 mips64el ppc64 riscv64 s390x wasm32 x64'.split(' ');
/** Of mailauth, only its undici and its commander needed Node 22; `overrides` in package.json replaces both. */
const ENGINES = { mailauth: '>=20.19' };

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const { packages } = lock;
const before = Object.keys(packages).length;
for (const [path, { optionalDependencies = {}, dev }] of Object.entries(packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    if (packages[`${path}/node_modules/${name}`] ?? packages[`node_modules/${name}`]) continue;
    const words = (name.split('/').pop() ?? name).split(/[-.]/);
    const os = words.find((word) => SYSTEMS.includes(word));
    const cpu = words.find((word) => PROCESSORS.includes(word));
    if (os === undefined && cpu === undefined) continue;
    packages[`node_modules/${name}`] = {
      version: version.replace(/^[~^]/, ''),
      ...(cpu === undefined ? {} : { cpu: [cpu] }),
      ...(dev ? { dev } : {}),
      optional: true,
      ...(os === undefined ? {} : { os: [os] }),
    };
  }
}
for (const [name, node] of Object.entries(ENGINES)) {
  const library = packages[`node_modules/${name}`];
  if (library !== undefined) library.engines.node = node;
}
lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => a.localeCompare(b, 'en')));
writeFileSync('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`);
console.log(`${Object.keys(packages).length - before} packages added`);
