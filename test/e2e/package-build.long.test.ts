// Long: packs the program with its production dependencies.
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runPackaging } from '../support/packages.ts';
import { requirePrograms } from '../support/required-programs.ts';

/* `npm run package` whose compression fails: `dpkg-deb` is replaced by a program that writes half a file. */
const required = requirePrograms('dpkg-deb', 'compiler');

describe.skipIf(required.missing)(`a build of the packages${required.reason}`, () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'postrider-package-'));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  it('never shows an incomplete package under its final name', async () => {
    const programs = join(dir, 'bin');
    const out = join(dir, 'out');
    const seen = join(dir, 'seen');
    await mkdir(programs);
    const script = `#!/bin/sh\nfor file do :; done\necho half > "$file"\nls '${out}' > '${seen}'\nexit 1\n`;
    await writeFile(join(programs, 'dpkg-deb'), script, { mode: 0o755 });
    const env = { PATH: `${programs}${delimiter}${process.env['PATH'] ?? ''}` };
    await expect(runPackaging(out, { env })).rejects.toThrow('dpkg-deb');
    expect(await readFile(seen, 'utf8')).toMatch(/^work-\w+\n$/);
    expect(await readdir(out)).toEqual([]);
  }, 600_000);
});
