// The layers as machine-checked rules, generated from .ci/layers.json (as is the diagram in ARCHITECTURE.md):
// a module imports only from lower layers, never from a neighbor on its own layer.
import { layers } from './.ci/layers.mjs';

const path = (module) => (module.endsWith('.ts') ? `^src/${module.replace('.', '\\.')}$` : `^src/${module}/`);
const topLayer = Math.max(...layers.map(({ layer }) => layer));

const layerRules = layers.flatMap(({ layer, modules }) =>
  layer === topLayer
    ? []
    : modules.map((module) => ({
        name: `layer-${layer}-${module}`,
        comment: `${module} (layer ${layer}) may import lower layers only`,
        severity: 'error',
        from: { path: path(module) },
        to: {
          path: '^src/',
          pathNot: [path(module), ...layers.filter((l) => l.layer < layer).flatMap((l) => l.modules.map(path))],
        },
      })),
);

export default {
  forbidden: [
    ...layerRules,
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'worker-stays-small',
      comment: 'the delivery worker must not import the store or the events, not even transitively',
      severity: 'error',
      from: { path: '^src/delivery/worker/' },
      to: { path: '^src/(store|events)/', reachable: true },
    },
    {
      name: 'daemon-without-cli',
      severity: 'error',
      from: { path: '^src/daemon(\\.ts$|/)' },
      to: { path: '^src/(cli/|main\\.ts)' },
    },
    {
      name: 'console-knows-the-api-only',
      severity: 'error',
      from: { path: '^src/console/' },
      to: { path: '^src/', pathNot: '^src/(console|http|mail/blocks)/' },
    },
    {
      name: 'console-is-bundled-separately',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/console/' },
      to: { path: '^src/console/' },
    },
    { name: 'no-test-in-src', severity: 'error', from: { path: '^src/' }, to: { path: '^test/' } },
    { name: 'sql-in-store-only', severity: 'error', from: { path: '^src/', pathNot: '^src/store/' }, to: { path: 'better-sqlite3' } },
  ],
  options: {
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    // The parser reads neither TSX nor which imports are of types: check-layers.mjs examines those of the console.
    exclude: { path: '^src/console/.*\\.tsx$' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { extensions: ['.ts', '.js'], exportsFields: ['exports'], conditionNames: ['import', 'node'] },
  },
};
