import { basename } from 'node:path';
import { SingleBar } from 'cli-progress';
import { Command } from 'commander';
import { lockDaemon } from '../store/database.ts';
import type { MigrationProgress } from '../store/migrate/migrate.ts';
import type { MigrationEstimate } from '../store/migrate/migration-estimate.ts';
import { estimateUpgrade, formatBytes, schemaState, upgradeDatabase } from '../store/migrate/upgrade.ts';
import type { CliContext } from './context.ts';

/** `postrider migrate`. */
export function migrateCommand(context: CliContext): Command {
  return new Command('migrate')
    .description('Migrate the database to the schema of this version')
    .option('--dry-run', 'print what the migration would do and needs, without changing anything')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The daemon must be stopped, except for a dry run. "postrider serve" also migrates at its start. A copy of the database
before the migration remains in the data directory as postrider.db.before-<schema>-<time>.

Exit status: 0 when the database has the schema of this version (or, with --dry-run, could be migrated), 1 when it
could not be migrated, 3 when a dry run finds too little free space.

Examples:
  postrider migrate --dry-run
  postrider migrate`,
    )
    .action((options: MigrateOptions) => {
      if (options.dryRun === true) dryRun(context, options.json === true);
      else migrate(context, options.json === true);
    });
}

interface MigrateOptions {
  dryRun?: boolean;
  json?: boolean;
}

function dryRun(context: CliContext, json: boolean): void {
  const { dir } = context.existingData();
  const { found, newest } = schemaState(dir);
  const estimate = estimateUpgrade(dir);
  if (estimate === null) {
    if (json) context.printJson({ schema: found, newSchema: newest, steps: [] });
    else context.print(`The database in ${dir} has schema ${found}, that of this version.`);
    return;
  }
  const fits = estimate.neededBytes <= estimate.freeBytes;
  context.printRecord(json ? jsonOf(estimate, fits) : textOf(estimate), { json });
  if (!fits) {
    const missing = formatBytes(estimate.neededBytes - estimate.freeBytes);
    context.partial(`${estimate.dir} has too little free space: about ${missing} more are needed`);
  }
}

function jsonOf(estimate: MigrationEstimate, fits: boolean): Record<string, unknown> {
  const { from, to, steps, rows, databaseBytes, newBytes, neededBytes, freeBytes, seconds, dir } = estimate;
  return {
    schema: from,
    newSchema: to,
    steps,
    rows,
    estimatedSeconds: Math.ceil(seconds),
    databaseBytes,
    newDatabaseBytes: Math.ceil(newBytes),
    neededBytes,
    freeBytes,
    fits,
    dir,
    copy: copyText(estimate),
  };
}

function textOf(estimate: MigrationEstimate): Record<string, unknown> {
  const { from, to, steps, rows, databaseBytes, newBytes, neededBytes, freeBytes, seconds, dir } = estimate;
  return {
    schema: `${from}, this version needs ${to}`,
    steps: steps.join(', '),
    rows: `about ${rows.toLocaleString('en')}`,
    time: `about ${formatSeconds(seconds)}`,
    database: `${formatBytes(databaseBytes)} in ${dir}, about ${formatBytes(newBytes)} afterwards`,
    space: `about ${formatBytes(neededBytes)} needed, ${formatBytes(freeBytes)} available`,
    copy: copyText(estimate),
  };
}

function copyText({ to, rebuilds, clones, dir }: MigrationEstimate): string {
  const how = rebuilds ? 'the old file itself' : clones ? 'shares blocks with the database' : 'a full copy';
  return `${dir}/postrider.db.before-${to}-<time> (${how})`;
}

function formatSeconds(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

function migrate(context: CliContext, json: boolean): void {
  const { dir } = context.existingData();
  const lock = lockDaemon(dir);
  try {
    const { found, newest } = schemaState(dir);
    if (found === newest) {
      if (json) context.printJson({ schema: found, migratedFrom: null, copy: null, removed: [] });
      else context.print(`The database in ${dir} already has schema ${found}.`);
      return;
    }
    const bar = createBar(process.stderr.isTTY && !json);
    try {
      const { from, to, copy, removed } = upgradeDatabase(dir, { onProgress: bar.update });
      bar.stop();
      if (json) return context.printJson({ schema: to, migratedFrom: from, copy, removed });
      context.print(`Migrated the database in ${dir} from schema ${from} to ${to}.`);
      if (copy !== null)
        context.print(`The database before the migration: ${copy}. Delete it when you no longer need it.`);
      for (const file of removed) context.print(`Removed ${basename(file)}.`);
    } finally {
      bar.stop();
    }
  } finally {
    lock.release();
  }
}

/** One bar per step if `shown`. The cursor stays visible, because an interrupt ends the process. */
function createBar(shown: boolean) {
  const bar = new SingleBar({
    format: '{step} {bar} {percentage} %  {item}  {duration_formatted}, {eta_formatted} left',
    barCompleteChar: '█',
    barIncompleteChar: '░',
    hideCursor: false,
    stream: process.stderr,
  });
  let step: MigrationProgress['step'] | null = null;
  return {
    update: (progress: MigrationProgress) => {
      if (!shown || progress.total === 0) return;
      const { done, total, item } = progress;
      const payload = { step: progress.step.padEnd(7), item };
      if (progress.step === step) bar.update(done, payload);
      else {
        if (step !== null) bar.stop();
        step = progress.step;
        bar.start(total, done, payload);
      }
    },
    stop: () => {
      if (step !== null) bar.stop();
      step = null;
    },
  };
}
