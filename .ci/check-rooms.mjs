// Runs the dependency rules and refuses an empty run: a check that cruised nothing proves nothing. Then compares
// the picture in ARCHITECTURE.md with the floors that the rules are made of.
import { readFileSync } from 'node:fs';
import { cruise } from 'dependency-cruiser';
import config from '../.dependency-cruiser.mjs';
import { drawFloors } from './floors.mjs';

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
if (totalCruised < 10) {
  console.error(`only ${totalCruised} modules were looked at: the check itself is broken`);
  process.exit(1);
}
if (!readFileSync(new URL('../ARCHITECTURE.md', import.meta.url), 'utf8').includes(`\n${drawFloors()}\n`)) {
  console.error(`the picture of the floors in ARCHITECTURE.md should be:\n${drawFloors()}`);
  process.exit(1);
}
console.log(`rooms: ${totalCruised} modules, ${violations.length} violations`);
process.exit(violations.length === 0 ? 0 : 1);
