// Checks the dependency rules, and the diagram in ARCHITECTURE.md against the layers that the rules are generated from.
import { readFileSync } from 'node:fs';
import { cruise } from 'dependency-cruiser';
import config from '../.dependency-cruiser.mjs';
import { drawLayers } from './layers.mjs';

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
if (!readFileSync(new URL('../ARCHITECTURE.md', import.meta.url), 'utf8').includes(`\n${drawLayers()}\n`)) {
  console.error(`The diagram in ARCHITECTURE.md should be:\n${drawLayers()}`);
  process.exit(1);
}
console.log(`layers: ${totalCruised} files, ${violations.length} violations`);
process.exit(violations.length === 0 ? 0 : 1);
