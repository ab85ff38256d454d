import { basename } from 'node:path';
import type { Command } from 'commander';
import { lockDaemon } from '../store/database/database.ts';
import {
  estimateUpgrade,
  formatBytes,
  type MigrationEstimate,
  schemaState,
  upgradeDatabase,
} from '../store/migrate/upgrade.ts';
import { asJson, createCommand, option } from './command.ts';
import type { CliContext } from './context.ts';
import { createStepBar } from './output/progress.ts';

/** `postrider migrate`. */
export function migrateCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'migrate',
    description: 'Migrate the database to the schema of this version',
    options: [
      option('--dry-run', 'print the steps and the space of the migration without changing anything'),
      asJson,
    ],
    help: `
The daemon must be stopped, except for a dry run. "postrider serve" also migrates at its start. A copy of the database
before the migration remains in the data directory as postrider.db.before-<schema>-<time>.

Exit status: 0 when the database has the schema of this version (or, with --dry-run, could be migrated), 1 when it
could not be migrated, 3 when a dry run finds too little free space.

Examples:
  postrider migrate --dry-run
  postrider migrate`,
    run: ({ dryRun }) => {
      if (dryRun === true) estimate(context);
      else migrate(context);
    },
  });
}

function estimate(context: CliContext): void {
  const { dir } = context.existingData();
  const { found, newest } = schemaState(dir);
  const upgrade = estimateUpgrade(dir);
  if (upgrade === null)
    return context.show(
      { schema: found, newSchema: newest, steps: [] },
      () => `The database in ${dir} already has schema ${found}.`,
    );
  const fits = upgrade.neededBytes <= upgrade.freeBytes;
  context.printRecord(context.json ? jsonOf(upgrade, fits) : textOf(upgrade));
  if (fits) return;
  const missing = formatBytes(upgrade.neededBytes - upgrade.freeBytes);
  context.partial(`${upgrade.dir} has too little free space: about ${missing} more is needed`);
}

function jsonOf(estimate: MigrationEstimate, fits: boolean): Record<string, unknown> {
  const { from, to, steps, databaseBytes, neededBytes, freeBytes, dir } = estimate;
  return {
    schema: from,
    newSchema: to,
    steps,
    databaseBytes,
    neededBytes,
    freeBytes,
    fits,
    dir,
    copy: copyOf(estimate),
  };
}

function textOf(estimate: MigrationEstimate): Record<string, unknown> {
  const { from, to, steps, databaseBytes, neededBytes, freeBytes, dir } = estimate;
  return {
    schema: `${from}, this version needs ${to}`,
    steps: steps.join(', '),
    database: `${formatBytes(databaseBytes)} in ${dir}`,
    space: `about ${formatBytes(neededBytes)} needed, ${formatBytes(freeBytes)} available`,
    copy: copyOf(estimate),
  };
}

/** Where the old database remains. */
function copyOf({ to, dir }: MigrationEstimate): string {
  return `${dir}/postrider.db.before-${to}-<time>`;
}

function migrate(context: CliContext): void {
  const { dir } = context.existingData();
  const lock = lockDaemon(dir);
  const bar = createStepBar(process.stderr.isTTY && !context.json);
  try {
    const { found, newest } = schemaState(dir);
    if (found === newest)
      return context.show(
        { schema: found, migratedFrom: null, copy: null, removed: [] },
        () => `The database in ${dir} already has schema ${found}.`,
      );
    const { from, to, copy, removed } = upgradeDatabase(dir, {
      onProgress: ({ step, done, total, item }) => bar.update(step, done, total, item),
    });
    bar.stop();
    context.show({ schema: to, migratedFrom: from, copy, removed }, () => [
      `Migrated the database in ${dir} from schema ${from} to ${to}.`,
      ...(copy === null
        ? []
        : [`The database before the migration: ${copy}. Delete it when you no longer need it.`]),
      ...removed.map((file) => `Removed ${basename(file)}.`),
    ]);
  } finally {
    bar.stop();
    lock.release();
  }
}
