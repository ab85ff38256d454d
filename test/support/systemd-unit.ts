import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemdUnits } from '../../.packaging/unit.ts';

const UNITS = systemdUnits(new URL('../..', import.meta.url).pathname);

/** The text of a unit of the package. */
export function unitText(name: string): string {
  const text = UNITS[name];
  if (text === undefined) throw new Error(`the package has no unit ${name}`);
  return text;
}

/**
 * What `systemd-analyze verify` reports about a unit of the package with a drop-in; '' when it is valid. `as`: the name of an
 * instance of a template.
 */
export async function verifyUnit(
  dropIn = '',
  { unit = 'postrider.service', as = unit }: { unit?: string; as?: string } = {},
): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-unit-'));
  try {
    const file = join(dir, as);
    // The package is not installed where the tests run.
    writeFileSync(file, unitText(unit).replaceAll('/usr/bin/postrider', '/bin/true'));
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
