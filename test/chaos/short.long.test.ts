// Long: runs a scenario of each family of faults and abuse under load.
import { expect, it } from 'vitest';
import { startChild } from '../support/child.ts';

/** The short variant of the suite, as `npm run chaos -- --short` runs it. */
it('loses no mail and leaves none stuck in the short variant', async () => {
  const program = new URL('run.ts', import.meta.url).pathname;
  const child = startChild(process.execPath, ['--import', 'tsx', program, '--short'], { env: process.env });
  const { code } = await child.exited;
  console.log(child.output);
  expect(code, child.output).toBe(0);
});
