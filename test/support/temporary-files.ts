import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

/** Small shared-memory file systems, as in containers, are not used. */
const MIN_FREE_BYTES = 2 ** 30;
const MEMORY = '/dev/shm';

/**
 * Vitest's global setup of the unit tests: gives them a folder for temporary files, in memory where possible, so that no
 * commit waits for a disk. It is removed after the last test, with what tests have left there.
 */
export default function useTemporaryFolder(project: TestProject): () => void {
  const folder = mkdtempSync(join(hasMemory() ? MEMORY : tmpdir(), 'postrider-unit-'));
  project.config.env = { ...project.config.env, TMPDIR: folder, SQLITE_TMPDIR: folder };
  return () => rmSync(folder, { recursive: true, force: true });
}

function hasMemory(): boolean {
  if (!existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= MIN_FREE_BYTES;
}
