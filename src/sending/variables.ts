import { INEXACT, inexactPath } from '../core/exact-numbers.ts';
import { isServiceVariable } from '../mail/template.ts';
import type { Fault } from './faults.ts';

/** Checks of `templateVariables`, of sends and of previews. Whether a value can be inserted is found by rendering. */
type Variables = Readonly<Record<string, unknown>>;

const MAX_DEPTH = 32;

/** Reports names of the service's variables, and values that cannot be used. */
export function checkVariables(variables: Variables, fault: Fault): void {
  for (const name of Object.keys(variables)) {
    if (isServiceVariable(name))
      fault(`templateVariables.${name}`, 'is set by the service and cannot be given');
  }
  checkValues(variables, fault);
}

/** Reports the first inexact number of each variable, or that the values are nested too deep. */
export function checkValues(variables: Variables, fault: Fault): void {
  if (isDeeperThan(variables, MAX_DEPTH)) {
    fault('templateVariables', `must not be nested more than ${MAX_DEPTH} levels deep`);
    return;
  }
  for (const [name, value] of Object.entries(variables)) {
    const path = inexactPath(value);
    if (path !== null) fault(`templateVariables.${name}${path}`, INEXACT);
  }
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((inner) => isDeeperThan(inner, depth - 1));
}
