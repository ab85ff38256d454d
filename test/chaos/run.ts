import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createContext, type ScenarioContext, within } from './context.ts';
import { LOGS, PROFILES } from './daemon.ts';
import { needFault, rootFault } from './machine.ts';
import { formatReport } from './report.ts';
import { failuresOf, type Scenario, type ScenarioOutcome } from './scenario.ts';
import { FAMILIES } from './scenarios/index.ts';

const USAGE = `Usage: npm run chaos -- [options]

Runs the built daemon under faults and abuse, compares the ledgers of each scenario, and exits with 1 when a message
was lost or stuck or a scenario reported another fault. Takes about 20 minutes; some scenarios need root.

Options:
  --only NAME[,NAME]    run the scenarios whose names begin with NAME
  --family NAME[,NAME]  run the scenarios of these families: ${[...FAMILIES.keys()].join(', ')}
  --short               run the short variant: fewer scenarios, each for half the time
  --logs DIRECTORY      store the logs of the daemons there
  --profiles DIRECTORY  store CPU profiles of the threads of the daemons there
  --list                list the scenarios
  --help                show this help

Examples:
  npm run chaos
  npm run chaos -- --only disk
  npm run chaos -- --family tenants
  npm run chaos -- --only kill-9-storm,dead-workers`;

const DEFAULT_LIMIT_SECONDS = 90;
/** Set in the process that runs in a separate mount namespace. */
const NAMESPACE = 'POSTRIDER_CHAOS_NAMESPACE';

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      family: { type: 'string' },
      logs: { type: 'string' },
      profiles: { type: 'string' },
      short: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return print(USAGE);
  const { only, family, short } = values;
  for (const [directory, variable] of [
    [values.logs, LOGS],
    [values.profiles, PROFILES],
  ] as const) {
    if (directory === undefined) continue;
    mkdirSync(directory, { recursive: true });
    process.env[variable] = resolve(directory);
  }
  const families = namesIn(family) ?? [...FAMILIES.keys()];
  const unknown = families.find((name) => !FAMILIES.has(name));
  if (unknown !== undefined) {
    console.error(`There is no family "${unknown}": the families are ${[...FAMILIES.keys()].join(', ')}.`);
    return 2;
  }
  const prefixes = namesIn(only);
  const chosen = families
    .flatMap((name) => FAMILIES.get(name) ?? [])
    .filter(
      (scenario) =>
        (!short || scenario.short === true) &&
        (prefixes?.some((prefix) => scenario.name.startsWith(prefix)) ?? true),
    );
  if (chosen.length === 0) {
    console.error('No scenario matches the options: see --list.');
    return 2;
  }
  if (values.list) return print(listing(chosen));
  // The mounts of a separate namespace end with its last process, even if this one is killed.
  if (process.env[NAMESPACE] === undefined && rootFault() === null) return inNamespace();
  return runAll(chosen, short);
}

/** The names in the value of an option. */
function namesIn(value: string | undefined): string[] | undefined {
  return value?.split(',').map((name) => name.trim());
}

async function runAll(chosen: readonly Scenario[], short: boolean): Promise<number> {
  let context: ScenarioContext | null = null;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      console.error(`${signal}: cleaning up`);
      void (context?.clear() ?? Promise.resolve()).finally(() => process.exit(1));
    });
  }
  const outcomes: ScenarioOutcome[] = [];
  for (const scenario of chosen) {
    const reason = scenario.needs?.map(needFault).find((fault) => fault !== null) ?? null;
    if (reason !== null) {
      outcomes.push({ scenario, kind: 'skipped', reason });
      continue;
    }
    context = createContext(scenario.name, short);
    const outcome = await runOne(scenario, context);
    outcomes.push(outcome);
    progress(outcome);
  }
  console.log(`\n${formatReport(outcomes)}`);
  const skippedInCi = process.env['CI'] !== undefined && outcomes.some(({ kind }) => kind === 'skipped');
  return skippedInCi || outcomes.some((outcome) => failuresOf(outcome).length > 0) ? 1 : 0;
}

async function runOne(scenario: Scenario, context: ScenarioContext): Promise<ScenarioOutcome> {
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  const limit = scenario.limitSeconds ?? DEFAULT_LIMIT_SECONDS;
  try {
    const result = await within(limit * 1000, scenario.run(context));
    if (result === null) throw new Error(`not finished after ${limit} s`);
    return { scenario, kind: 'ran', result, seconds: seconds() };
  } catch (error) {
    return { scenario, kind: 'broke', error, seconds: seconds() };
  } finally {
    await context.clear();
  }
}

function progress(outcome: ScenarioOutcome): void {
  if (outcome.kind === 'skipped') return;
  const failures = failuresOf(outcome);
  const notes = outcome.kind === 'ran' ? outcome.result.notes : [];
  console.log(
    [
      `${failures.length === 0 ? 'ok    ' : 'FAILED'} ${outcome.scenario.name} (${outcome.seconds.toFixed(0)} s)`,
      ...notes.map((note) => `       ${note}`),
      ...failures.map((failure) => `       ! ${failure}`),
    ].join('\n'),
  );
}

function listing(scenarios: readonly Scenario[]): string {
  const widest = Math.max(...scenarios.map(({ name }) => name.length));
  return scenarios
    .map(({ name, summary, short }) => `${name.padEnd(widest)}  ${short ? '[short] ' : ''}${summary}`)
    .join('\n');
}

/** Runs the same command line in a separate mount namespace; it ends with this process, and cleans up. */
function inNamespace(): Promise<number> {
  const program = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const child = spawn(
    'setpriv',
    ['--pdeathsig', 'TERM', '--', 'unshare', '--mount', '--propagation', 'private', ...program],
    { stdio: 'inherit', env: { ...process.env, [NAMESPACE]: '1' } },
  );
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

function print(text: string): number {
  console.log(text);
  return 0;
}
