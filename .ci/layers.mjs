// The layers of src/: one list, from which the dependency rules and the diagram in ARCHITECTURE.md are generated.
import { readFileSync } from 'node:fs';

export const layers = JSON.parse(readFileSync(new URL('layers.json', import.meta.url), 'utf8')).map(
  ({ layer, modules }) => ({ layer, modules: Object.keys(modules), notes: modules }),
);

/** The diagram, top layer first. */
export function drawLayers() {
  return layers
    .flatMap(({ layer, modules, notes }) =>
      modules.map((module, index) => {
        const name = module.endsWith('.ts') ? module : `${module}/`;
        return `${(index === 0 ? `L${layer}` : '').padEnd(5)}${name.padEnd(14)}${notes[module]}`;
      }),
    )
    .join('\n');
}
