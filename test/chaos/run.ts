import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { LOGS } from './daemon.ts';
import { needFault, rootFault } from './machine.ts';
import { printReport } from './report.ts';
import { failuresOf, type Outcome, type Scenario } from './scenario.ts';
import { SCENARIOS } from './scenarios/index.ts';
import { createStage, type Stage, within } from './stage.ts';

const USAGE = `Usage: npm run chaos -- [options]

Runs the built daemon under faults and abuse, keeps a ledger per scenario, and exits with 1 when a message was
lost or stuck, or when anything else was not as it must be. Takes about 10 minutes; needs root for some of it.

Options:
  --only NAME[,NAME]  run the scenarios whose names are or begin with NAME
  --short             run the short variant: fewer scenarios, each for half the time
  --logs DIRECTORY    keep what the daemons log there
  --list              list the scenarios
  --help              show this help

Examples:
  npm run chaos
  npm run chaos -- --only disk
  npm run chaos -- --only kill-9-storm,dead-workers`;

const LIMIT_SECONDS = 90;
/** Set in the process that runs in a mount namespace of its own. */
const NAMESPACE = 'POSTRIDER_CHAOS_NAMESPACE';

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      logs: { type: 'string' },
      short: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return say(USAGE);
  const { only, short, logs } = values;
  if (logs !== undefined) {
    mkdirSync(logs, { recursive: true });
    process.env[LOGS] = resolve(logs);
  }
  const wanted = only?.split(',').map((name) => name.trim());
  const chosen = SCENARIOS.filter(
    (scenario) =>
      (!short || scenario.short === true) && (wanted?.some((name) => scenario.name.startsWith(name)) ?? true),
  );
  if (chosen.length === 0) {
    console.error(`no scenario is called ${only}; see --list`);
    return 2;
  }
  if (values.list) return say(listing(chosen));
  // Mounts made in a namespace of its own end with its last process, whatever happens to this one.
  if (process.env[NAMESPACE] === undefined && rootFault() === null) return inNamespace();
  return runAll(chosen, short);
}

async function runAll(chosen: readonly Scenario[], short: boolean): Promise<number> {
  let stage: Stage | null = null;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      console.error(`${signal}: cleaning up`);
      void (stage?.clear() ?? Promise.resolve()).finally(() => process.exit(1));
    });
  }
  const outcomes: Outcome[] = [];
  for (const scenario of chosen) {
    const reason = scenario.needs?.map(needFault).find((fault) => fault !== null) ?? null;
    if (reason !== null) {
      outcomes.push({ scenario, kind: 'skipped', reason });
      continue;
    }
    stage = createStage(scenario.name, short);
    const outcome = await runOne(scenario, stage);
    outcomes.push(outcome);
    progress(outcome);
  }
  console.log(`\n${printReport(outcomes)}`);
  const skippedInCi = process.env['CI'] !== undefined && outcomes.some(({ kind }) => kind === 'skipped');
  return skippedInCi || outcomes.some((outcome) => failuresOf(outcome).length > 0) ? 1 : 0;
}

async function runOne(scenario: Scenario, stage: Stage): Promise<Outcome> {
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  const limit = scenario.limitSeconds ?? LIMIT_SECONDS;
  try {
    const result = await within(limit * 1000, scenario.run(stage));
    if (result === null) throw new Error(`not at its end after ${limit} s`);
    return { scenario, kind: 'ran', result, seconds: seconds() };
  } catch (error) {
    return { scenario, kind: 'broke', error, seconds: seconds() };
  } finally {
    await stage.clear();
  }
}

function progress(outcome: Outcome): void {
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

/** Runs the same command line in a mount namespace of its own. */
function inNamespace(): Promise<number> {
  const child = spawn(
    'unshare',
    ['--mount', '--propagation', 'private', process.execPath, ...process.execArgv, ...process.argv.slice(1)],
    { stdio: 'inherit', env: { ...process.env, [NAMESPACE]: '1' } },
  );
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

function say(text: string): number {
  console.log(text);
  return 0;
}
