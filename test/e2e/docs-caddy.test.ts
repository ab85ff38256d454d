import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { blocksOf } from '../support/reader.ts';
import { requirePrograms } from '../support/required-programs.ts';

/* The configuration of Caddy in docs/public-pages.md, checked by Caddy: with it, Caddy would request real certificates. */
const DOCUMENT = 'docs/public-pages.md';
const TEST = 'test/e2e/docs-caddy.test.ts';
const required = requirePrograms('caddy');
const run = promisify(execFile);

it.skipIf(required.missing)(`Caddy accepts its configuration in ${DOCUMENT}${required.reason}`, async () => {
  const blocks = blocksOf(DOCUMENT).filter((block) => block.kind === 'run by' && block.test === TEST);
  expect(blocks).toHaveLength(1);
  const dir = await mkdtemp(join(tmpdir(), 'postrider-caddy-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, 'Caddyfile');
  await writeFile(file, blocks.map(({ text }) => text).join(''));
  const { stdout, stderr } = await run('caddy', ['validate', '--adapter', 'caddyfile', '--config', file], {
    env: { PATH: process.env['PATH'], HOME: dir },
  });
  expect(stdout + stderr).toContain('Valid configuration');
});
