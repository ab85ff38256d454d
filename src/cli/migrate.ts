import { basename } from 'node:path';
import { Command } from 'commander';
import { lockDaemon } from '../store/database/database.ts';
import type { MigrationEstimate } from '../store/migrate/migration-estimate.ts';
import { estimateUpgrade, formatBytes, schemaState, upgradeDatabase } from '../store/migrate/upgrade.ts';
import type { CliContext } from './context.ts';
import { createStepBar } from './output/progress.ts';

/** `postrider migrate`. */
export function migrateCommand(context: CliContext): Command {
  return new Command('migrate')
    .description('Migrate the database to the schema of this version')
    .option('--dry-run', 'print the steps, time and space of the migration without changing anything')
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
    else context.print(`The database in ${dir} already has schema ${found}.`);
    return;
  }
  const fits = estimate.neededBytes <= estimate.freeBytes;
  context.printRecord(json ? jsonOf(estimate, fits) : textOf(estimate), { json });
  if (!fits) {
    const missing = formatBytes(estimate.neededBytes - estimate.freeBytes);
    context.partial(`${estimate.dir} has too little free space: about ${missing} more is needed`);
  }
}

function jsonOf(estimate: MigrationEstimate, fits: boolean): Record<string, unknown> {
  const { from, to, steps, rows, databaseBytes, newBytes, neededBytes, freeBytes, seconds, dir } = estimate;
  return {
    schema: from,
    newSchema: to,
    steps,
    rows,
    estimatedSeconds: seconds === null ? null : Math.ceil(seconds),
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
    rows: rows === null ? UNMEASURED : `about ${rows.toLocaleString('en')}`,
    time: seconds === null ? UNMEASURED : `about ${formatSeconds(seconds)}`,
    database: `${formatBytes(databaseBytes)} in ${dir}, about ${formatBytes(newBytes)} afterwards`,
    space: `about ${formatBytes(neededBytes)} needed, ${formatBytes(freeBytes)} available`,
    copy: copyText(estimate),
  };
}

const UNMEASURED = 'not measured: too little free space';

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
    const bar = createStepBar(process.stderr.isTTY && !json);
    try {
      const { from, to, copy, removed } = upgradeDatabase(dir, {
        onProgress: ({ step, done, total, item }) => bar.update(step, done, total, item),
      });
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
