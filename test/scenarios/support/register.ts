import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { faultsInEvents, readLedger } from '../../support/ledger.ts';
import { type Environment, startEnvironment } from './environment.ts';
import { checkLedger } from './ledger.ts';
import { startScenario } from './run.ts';
import type { ExpectedMessage, Scenario } from './scenario.ts';

/**
 * Defines one test for each scenario file of a family, in alphabetical order, over one daemon; and at the end one that
 * compares the ledger of the whole family: every accepted message is final, and its events are in order.
 */
export async function registerScenarios(family: string): Promise<void> {
  const folder = new URL(`../${family}/`, import.meta.url);
  const files = readdirSync(folder).filter((file) => file.endsWith('.ts'));
  const scenarios = await Promise.all(
    files.map(async (file) => {
      const module: { default: Scenario } = await import(new URL(file, folder).pathname);
      return { name: file.slice(0, -'.ts'.length), scenario: module.default };
    }),
  );

  describe(family, () => {
    let env: Environment;
    let accepted = 0;
    /** Messages that end without an attempt have no `email_sent`. */
    const neverSent: string[] = [];
    beforeAll(async () => {
      env = await startEnvironment();
    });
    afterAll(() => env?.stop());

    it.each(scenarios.map(({ name, scenario }) => [scenario.title, name, scenario] as const))(
      '%s (%s)',
      async (_title, name, scenario) => {
        const run = await startScenario(env, scenario, name);
        try {
          await (scenario.play ?? ((each) => each.sendAll()))(run);
          await run.finish();
          await run.closeConnections();
          await checkLedger(run, scenario);
          await scenario.verify?.(run);
        } finally {
          accepted += run.accepted.length;
          for (const [user, { attempts }] of Object.entries<ExpectedMessage>(scenario.messages))
            if (attempts.length === 0) neverSent.push(run.sent.get(user) ?? '');
          await run.close();
        }
      },
    );

    it(`the ledger of all scenarios in ${family} is complete`, async () => {
      expect(await readLedger(env.api)).toMatchObject({ accepted, queued: 0 });
      const faults = await faultsInEvents(env.api);
      expect(faults.filter((fault) => !neverSent.some((id) => fault === `${id}: email_failed`))).toEqual([]);
      expect(env.errors).toEqual([]);
    });
  });
}
