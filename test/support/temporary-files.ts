import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { errorText } from '../../src/core/errors.ts';

/** Small shared-memory file systems, as in containers, are not used. */
const MIN_FREE_BYTES = 2 ** 30;
const MEMORY = '/dev/shm';
const PREFIX = 'postrider-unit-';

/**
 * Vitest's global setup of the unit tests: gives them a folder for temporary files, in memory where possible, so that no
 * commit waits for a disk. It is removed after the last test, with what tests have left there; that of a run that was
 * killed is removed by the next run.
 */
export default function useTemporaryFolder(project: TestProject): () => void {
  const fault = memoryFault();
  const parent = fault === null ? MEMORY : tmpdir();
  if (fault !== null && !isReported) {
    console.log(`${fault}: temporary files are in ${parent}, where commits wait for the disk`);
    isReported = true;
  }
  removeLeftovers(parent);
  const folder = mkdtempSync(join(parent, `${PREFIX}${process.pid}-`));
  // Mail servers that tests start run as other users, which need to reach their folders below this one.
  chmodSync(folder, 0o711);
  project.config.env = { ...project.config.env, TMPDIR: folder, SQLITE_TMPDIR: folder };
  return () => rmSync(folder, { recursive: true, force: true });
}

/** Each project has this global setup, in one process. */
let isReported = false;

/** Why temporary files cannot be in memory; null when they can. */
function memoryFault(): string | null {
  try {
    accessSync(MEMORY, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    return `${MEMORY} cannot be used (${errorText(error)})`;
  }
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= MIN_FREE_BYTES
    ? null
    : `${MEMORY} has less than ${MIN_FREE_BYTES >> 20} MiB of free space`;
}

/** Removes this user's folders of processes that no longer exist. */
function removeLeftovers(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = name.startsWith(PREFIX) ? /^\d+(?=-)/.exec(name.slice(PREFIX.length))?.[0] : undefined;
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    const folder = join(parent, name);
    if (statSync(folder, { throwIfNoEntry: false })?.uid !== process.getuid?.()) continue;
    rmSync(folder, { recursive: true, force: true });
  }
}
