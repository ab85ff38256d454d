import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const UNIT = new URL('../../systemd/postrider.service', import.meta.url).pathname;

/** What `systemd-analyze verify` reports about the unit of the package with a drop-in; '' when it is valid. */
export async function verifyUnit(dropIn = ''): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-unit-'));
  try {
    const file = join(dir, 'postrider.service');
    // The package is not installed where the tests run.
    writeFileSync(file, readFileSync(UNIT, 'utf8').replaceAll('/usr/bin/postrider', '/bin/true'));
    mkdirSync(`${file}.d`);
    writeFileSync(join(`${file}.d`, 'override.conf'), dropIn);
    const output = await new Promise<string>((resolve) => {
      execFile('systemd-analyze', ['verify', '--man=no', file], (_, stdout, stderr) =>
        resolve(stdout + stderr),
      );
    });
    // Only faults of this unit: verify also loads those of the machine that it depends on.
    return output
      .split('\n')
      .filter((line) => line.includes('postrider'))
      .join('\n');
  } finally {
    rmSync(dir, { recursive: true });
  }
}
