import type { Reporter, Vitest } from 'vitest/node';
import { LONG, SERIAL } from './test-lists.ts';

/** Vitest's reporter that names the long tests that a run of all other projects left out, and how to run them. */
export class LeftOutTests implements Reporter {
  #runsAllOthers = false;

  onInit(vitest: Vitest): void {
    const filters = vitest.config.project;
    this.#runsAllOthers =
      filters.length > 1 && ['unit', 'component', 'scenarios', 'e2e'].every((name) => filters.includes(name));
  }

  onTestRunEnd(): void {
    if (!this.#runsAllOthers) return;
    const lines = Object.entries({ ...LONG, ...SERIAL }).map(([file, reason]) => `  ${file}: ${reason}`);
    console.log(`Not run, because each takes long (npm run test:all runs them):\n${lines.join('\n')}\n`);
  }
}
