import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { faultsInEvents, readLedger } from '../../support/ledger.ts';
import { type Program, requirePrograms } from '../../support/required-programs.ts';
import { type Environment, type EnvironmentOptions, startEnvironment } from './environment.ts';
import { checkLedger } from './ledger.ts';
import { startScenario } from './run.ts';
import type { ExpectedMessage, Scenario } from './scenario.ts';

export interface FamilyOptions extends EnvironmentOptions {
  /** Programs that the family requires: without one it is skipped, or fails in CI. */
  programs?: readonly Program[];
}

/**
 * Defines one test for each scenario of a family, by name, with one daemon for all; and a last test that compares the ledger
 * of the whole family: every accepted message is final, and its events are in order. The name of a scenario is that of its
 * destination: `greylisting` sends to `greylisting.example`.
 */
export function registerScenarios(
  family: string,
  named: Readonly<Record<string, Scenario>>,
  options: FamilyOptions = {},
): void {
  const { programs = [], signedZones, ...environment } = options;
  const required = requirePrograms(...programs);
  const scenarios = Object.entries(named).map(([name, scenario]) => ({ name, scenario }));

  const zonesOf: EnvironmentOptions['signedZones'] = ({ port, addressOf, policyAddress }) =>
    Object.fromEntries(
      scenarios.flatMap(({ name, scenario }) => {
        const lines = signedLines(`${name}.example`, scenario, { port, addressOf, policyAddress });
        return lines === null ? [] : [[`${name}.example`, lines]];
      }),
    );

  describe.skipIf(required.missing)(`${family}${required.reason}`, () => {
    let env: Environment;
    let accepted = 0;
    /** Ids of messages that are final without an attempt, which have no `email_sent`. */
    const neverSent: string[] = [];
    beforeAll(async () => {
      env = await startEnvironment({
        ...environment,
        ...(signedZones === undefined
          ? {}
          : { signedZones: (names) => ({ ...zonesOf(names), ...signedZones(names) }) }),
      });
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

/** The lines of the zone of a destination; null if the zone is not signed. */
function signedLines(
  domain: string,
  scenario: Scenario,
  env: Parameters<NonNullable<EnvironmentOptions['signedZones']>>[0],
): string[] | null {
  if (scenario.signed === undefined) return null;
  const address = (label: string) => env.addressOf(domain, label);
  const labels = Object.keys(scenario.hosts);
  return [
    ...labels.map((label, index) => `@ 60 MX ${10 * (index + 1)} ${label}`),
    ...labels.map((label) => `${label} 60 A ${address(label)}`),
    ...(scenario.mtaSts === undefined
      ? []
      : ['_mta-sts 60 TXT "v=STSv1; id=1;"', `mta-sts 60 A ${env.policyAddress}`]),
    ...scenario.signed({ domain, port: env.port, address, today: '' }),
  ];
}
