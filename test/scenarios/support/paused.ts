import { expect } from 'vitest';
import { control, resume } from './controls.ts';
import { many } from './many.ts';
import type { ScenarioRun } from './run.ts';
import type { Scenario } from './scenario.ts';
import { expectReason } from './source-addresses.ts';

/** Mail that waits while the scope and target that `where` returns are paused, and is delivered once after the pause. */
export function paused(
  title: string,
  where: (run: ScenarioRun) => NonNullable<Parameters<typeof control>[2]>,
): Scenario {
  return {
    title,
    hosts: { mx: {} },
    messages: many(3, 'user'),
    play: async (run) => {
      await control(run, 'pause', where(run));
      await run.sendAll();
      await run.settle();
      expect(run.sink('mx').sessions).toEqual([]);
      await expectReason(run, 'user0', 'paused', 'maintenance');
      await resume(run, where(run));
    },
  };
}
