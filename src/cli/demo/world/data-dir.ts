import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A data directory that is gone when the demo is. */
export function temporaryDataDir(): { dir: string; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-demo-'));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}
