import { execFileSync } from 'node:child_process';

// Not a name that begins with POSTRIDER_, which would be a setting of the programs that tests start.
const BUILT = 'TEST_PROGRAM_IS_BUILT';

/** Vitest's global setup: builds the program once. Unit tests start its threads, all others the whole program. */
export default function build(): void {
  // Every project of the run has it as its global setup, in one process.
  if (process.env[BUILT] !== undefined) return;
  execFileSync('npm', ['run', '--silent', 'build'], {
    cwd: new URL('../..', import.meta.url),
    stdio: 'inherit',
  });
  process.env[BUILT] = 'yes';
}
