import { expect } from 'vitest';
import type { WAIT_REASON_CODES } from '../../../src/delivery/waits.ts';
import { eventually } from '../../support/eventually.ts';
import type { ScenarioRun, WaitReason } from './run.ts';
import type { Scenario } from './scenario.ts';

export type ReasonCode = (typeof WAIT_REASON_CODES)[number];

/** A scenario in which mail waits for one reason. */
export interface ExplainedScenario extends Scenario {
  explains: ReasonCode;
}

/**
 * Mail that waits for the reason `explains`: after `cause`, the explanations of the message to `user` and of its destination
 * have the reason, the first one as the deciding reason; after `end`, it no longer applies.
 */
export function explained(
  options: Omit<ExplainedScenario, 'play' | 'title'> & {
    title?: string;
    cause(run: ScenarioRun): Promise<void>;
    end?(run: ScenarioRun): Promise<unknown>;
    /** Default: `ada`. */
    user?: string;
    /** Part of the text of the reason. */
    text: string;
    /** False: another reason decides. Default: true. */
    decides?: false;
  },
): ExplainedScenario {
  const { explains, cause, end, user = 'ada', text, decides = true, ...scenario } = options;
  return {
    title: `explains mail with the reason ${explains}`,
    ...scenario,
    explains,
    play: async (run) => {
      await cause(run);
      const reason = await eventually(`the reason ${explains}`, async () => {
        const reasons = await run.explain(user);
        return (decides ? reasons.slice(0, 1) : reasons).find(({ code }) => code === explains) ?? null;
      });
      expect(reason.text).toContain(text);
      // A final message is not in the queue.
      if (explains !== 'final') await expectOfDestination(run, decides ? explains : null);
      await end?.(run);
    },
  };
}

async function expectOfDestination({ env, domain }: ScenarioRun, code: ReasonCode | null): Promise<void> {
  const path = `/web-setup/queue/destinations/${domain}`;
  const { data } = await env.api.get<{ messages: number; reasons: WaitReason[] }>(path);
  expect(data.messages).toBeGreaterThan(0);
  if (code !== null) expect(data.reasons.map((reason) => reason.code)).toContain(code);
}
