import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * The folder of what the tests of one run share: the first test that needs it builds it (packages.ts). Not a name that begins with
 * POSTRIDER_, which would be a setting of the programs that tests start.
 */
const SHARED = 'TEST_SHARED_FOLDER';

/** `TEST_SHARED_FOLDER` of this run. Throws outside of a run. */
export function sharedFolder(): string {
  const folder = process.env[SHARED];
  if (folder === undefined) throw new Error('the project of this test has no global setup support/build.ts');
  return folder;
}

/** Vitest's global setup: builds the program once. Unit tests start its threads, all others the whole program. */
export default function build(): (() => void) | undefined {
  // Every project of the run has it as its global setup, in one process.
  if (process.env[SHARED] !== undefined) return undefined;
  execFileSync('npm', ['run', '--silent', 'build'], {
    cwd: new URL('../..', import.meta.url),
    stdio: 'inherit',
  });
  const folder = mkdtempSync(join(tmpdir(), 'postrider-shared-'));
  process.env[SHARED] = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
