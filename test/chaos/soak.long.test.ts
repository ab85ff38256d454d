// Long: sends for a minute and kills destinations meanwhile.
import { expect, it } from 'vitest';
import { startChild } from '../support/child.ts';

/** The soak test for a minute at a fixed rate: compares the messages, and neither growth nor times. */
it('loses and repeats no message in a short soak test', async () => {
  const program = new URL('../bench/soak.ts', import.meta.url).pathname;
  const options = ['--minutes', '1', '--rate', '60', '--peak', '300', '--counts'];
  const child = startChild(process.execPath, ['--import', 'tsx', program, ...options], { env: process.env });
  const { code } = await child.exited;
  console.log(child.output);
  expect(code, child.output).toBe(0);
});
