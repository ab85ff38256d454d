// Checks the dependency rules, and that the diagram and the paths in ARCHITECTURE.md are up to date.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import config from '../.dependency-cruiser.mjs';
import { drawLayers, layers } from './layers.mjs';
import { cruise } from './tools.mjs';

/** Fewer files than this mean that the check itself is broken: it found nothing to examine. */
const FEWEST_FILES = 10;

const { output } = await cruise(['src'], {
  ...config.options,
  ruleSet: { forbidden: config.forbidden },
  validate: true,
});
const { totalCruised, violations } = output.summary;
for (const { rule, from, to, cycle } of violations) {
  console.error(
    `${rule.name}: ${from} -> ${cycle ? cycle.map((step) => step.name ?? step).join(' -> ') : to}`,
  );
}
if (totalCruised < FEWEST_FILES) {
  console.error(`Only ${totalCruised} files were examined: the check itself is broken`);
  process.exit(1);
}
// The application runs in browsers: it imports types from the API, the pure modules that make HTML of blocks, and text of the
// documentation.
const consoleFiles = readdirSync('src/console', { recursive: true })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => posix.join('src/console', name));
if (consoleFiles.length < FEWEST_FILES) {
  console.error(`Only ${consoleFiles.length} files of the console were examined: the check itself is broken`);
  process.exit(1);
}
for (const file of consoleFiles) {
  const text = readFileSync(file, 'utf8');
  for (const [, kind, specifier] of text.matchAll(/^(?:import|export)\b( type)?[^;']*'(\.[^']+)';/gm)) {
    const path = posix.join(posix.dirname(file), specifier);
    if (/^docs\/(?:reference\/)?[\w-]+\.md\?raw$/.test(path)) continue;
    if (
      path.startsWith('src/console/') ||
      path.startsWith('src/mail/blocks/') ||
      (kind !== undefined && path.startsWith('src/http/'))
    )
      continue;
    console.error(`console-imports-types-only: ${file} -> ${path}`);
    process.exitCode = 1;
  }
}
const architecture = readFileSync(new URL('../ARCHITECTURE.md', import.meta.url), 'utf8');
if (!architecture.includes(`\n${drawLayers()}\n`)) {
  console.error(`The diagram in ARCHITECTURE.md should be:\n${drawLayers()}`);
  process.exit(1);
}
const modules = new Set(layers.flatMap((layer) => layer.modules));
const mentioned = [...architecture.matchAll(/`([\w.-]+\/[\w./-]*)`/g)].map(([, path]) => path);
const missing = mentioned.filter((path) => {
  const file = modules.has(path.split('/')[0]) ? `src/${path}` : path;
  return !['', '.ts'].some((extension) => existsSync(new URL(`../${file}${extension}`, import.meta.url)));
});
if (missing.length > 0) {
  console.error(`ARCHITECTURE.md names files that do not exist: ${missing.join(', ')}`);
  process.exit(1);
}
console.log(`layers: ${totalCruised} files, ${violations.length} violations`);
process.exit(violations.length === 0 ? process.exitCode : 1);
