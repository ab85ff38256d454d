// Runs the dependency rules and refuses an empty run: a check that cruised nothing proves nothing.
import { cruise } from 'dependency-cruiser';
import config from '../.dependency-cruiser.mjs';

const { output } = await cruise(['src'], { ...config.options, ruleSet: { forbidden: config.forbidden }, validate: true });
const { totalCruised, violations } = output.summary;
for (const { rule, from, to, cycle } of violations) {
  console.error(`${rule.name}: ${from} -> ${cycle ? cycle.map((step) => step.name ?? step).join(' -> ') : to}`);
}
if (totalCruised < 10) {
  console.error(`only ${totalCruised} modules were looked at: the check itself is broken`);
  process.exit(1);
}
console.log(`rooms: ${totalCruised} modules, ${violations.length} violations`);
process.exit(violations.length === 0 ? 0 : 1);
