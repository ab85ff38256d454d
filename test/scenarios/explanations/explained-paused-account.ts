import { delivered } from '../support/attempts.ts';
import { control, resume } from '../support/controls.ts';
import { explained } from '../support/explained.ts';
import type { ScenarioRun } from '../support/run.ts';

const where = (run: ScenarioRun) => ({ scope: 'account', target: run.env.api.accountId }) as const;

export default explained({
  title: 'explains mail of an account that the operator has paused',
  explains: 'paused',
  text: 'maintenance',
  hosts: { mx: {} },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  cause: async (run) => {
    await control(run, 'pause', where(run));
    await run.sendAll();
    await run.settle();
  },
  end: (run) => resume(run, where(run)),
});
