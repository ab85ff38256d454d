// The floors of the house, as machine-checked rules: .ci/floors.json is the one list, this turns it into
// "a room imports only from floors below it, never from a neighbour" (ARCHITECTURE.md draws the same list).
import { floors } from './.ci/floors.mjs';

const path = (room) => (room.endsWith('.ts') ? `^src/${room.replace('.', '\\.')}$` : `^src/${room}/`);

const floorRules = floors.flatMap(({ floor, rooms }) =>
  floor === 8
    ? []
    : rooms.map((room) => ({
        name: `floor-${floor}-${room}`,
        comment: `${room} (floor ${floor}) may import lower floors only`,
        severity: 'error',
        from: { path: path(room) },
        to: {
          path: '^src/',
          pathNot: [path(room), ...floors.filter((f) => f.floor < floor).flatMap((f) => f.rooms.map(path))],
        },
      })),
);

export default {
  forbidden: [
    ...floorRules,
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'worker-stays-small',
      comment: 'the delivery worker must not reach the store or the events, also not through other files',
      severity: 'error',
      from: { path: '^src/delivery/worker/' },
      to: { path: '^src/(store|events)/', reachable: true },
    },
    {
      name: 'daemon-knows-no-cli',
      severity: 'error',
      from: { path: '^src/daemon\\.ts$' },
      to: { path: '^src/(cli/|main\\.ts)' },
    },
    { name: 'no-test-in-src', severity: 'error', from: { path: '^src/' }, to: { path: '^test/' } },
    { name: 'sql-in-store-only', severity: 'error', from: { path: '^src/', pathNot: '^src/store/' }, to: { path: 'better-sqlite3' } },
  ],
  options: {
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { extensions: ['.ts', '.js'], exportsFields: ['exports'], conditionNames: ['import', 'node'] },
  },
};
