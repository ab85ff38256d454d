import type { Reporter, Vitest } from 'vitest/node';

/** Vitest's reporter that tells after a run of all other projects how to run the long tests that it left out. */
export class LeftOutTests implements Reporter {
  #runsAllOthers = false;

  onInit(vitest: Vitest): void {
    const filters = vitest.config.project;
    this.#runsAllOthers =
      filters.length > 1 && ['unit', 'component', 'scenarios', 'e2e'].every((name) => filters.includes(name));
  }

  onTestRunEnd(): void {
    if (!this.#runsAllOthers) return;
    console.log(
      'Not run: *.long.test.ts and *.serial.test.ts, whose first line has the reason. npm run test:all runs them.\n',
    );
  }
}
