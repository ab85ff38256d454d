import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { createAddressChecks } from '../../audience/hygiene/checks.ts';
import { createHygieneRuns } from '../../audience/hygiene/runs.ts';
import { presentHygieneRun } from '../../http/api/contacts/hygiene.ts';
import { tryLockDaemon } from '../../store/database/database.ts';
import { asJson, createCommand, ofAccount, option } from '../command.ts';
import { type CliContext, FAILED } from '../context.ts';
import { fieldLines } from '../output/table.ts';

/** How often the command reads whether the examination has ended. */
const POLL_MS = 500;

/** `postrider contacts hygiene`: examines the addresses of contacts, in the daemon, or here while none is running. */
export function contactsHygieneCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'hygiene',
    description: 'Examine the addresses of contacts; no contact is changed',
    options: [
      ofAccount,
      option('--group <id>', 'only the members of this group'),
      option('--last', 'show the last examination instead of a new one'),
      asJson,
    ],
    help: `
Looks for invalid and mistyped addresses, domains without mail service, disposable domains, addresses of functions and
several addresses of one mailbox. The console and GET /web-setup/contacts/hygiene/{hygieneId}/findings list the contacts.`,
    run: async ({ account, group = null, last }) => {
      const deps = await context.open({ account });
      const checks = createAddressChecks({ resolver: deps.createResolver(), monotonic: deps.monotonic });
      const runs = createHygieneRuns(deps, { checks, storageRefusal: () => null });
      const print = (hygieneId: string) => {
        const run = presentHygieneRun(context.accepted(runs.get(account, hygieneId), FAILED));
        context.show(run, () => {
          const { counts, ...fields } = run;
          return [...fieldLines(fields), '', ...fieldLines(counts)];
        });
      };
      if (last === true) {
        const [newest] = runs.list(account);
        return newest === undefined
          ? context.fail('No examination is stored for this account')
          : print(newest.hygiene_id);
      }
      // Taken before the run exists: only one process must run it.
      const lock = tryLockDaemon(deps.config.data.dir);
      try {
        const { hygiene_id: hygieneId } = context.accepted(await runs.add(account, group), FAILED);
        if (lock !== null) runs.start();
        while (deps.tables.hygiene.get(account, hygieneId)?.finished_at === null) await sleep(POLL_MS);
        print(hygieneId);
      } finally {
        await runs.stop();
        lock?.release();
      }
    },
  });
}
