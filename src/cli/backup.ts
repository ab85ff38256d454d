import { basename } from 'node:path';
import type { Command } from 'commander';
import { createBackup } from '../backup/create.ts';
import { findBackup, listBackups } from '../backup/folder.ts';
import type { Manifest } from '../backup/manifest.ts';
import { verifyBackup } from '../backup/verify.ts';
import { systemClock } from '../core/clock.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import { formatBytes } from '../store/migrate/upgrade.ts';
import { asJson, createCommand, createGroup, option } from './command.ts';
import type { CliContext } from './context.ts';
import { createByteBar } from './output/progress.ts';
import { counted } from './output/table.ts';
import { withStopSignal } from './signals.ts';

/** `postrider backup create|list|verify`. */
export function backupCommand(context: CliContext): Command {
  return createGroup('backup', 'Create, list and verify backups of the data directory', {
    help: `
A backup is a directory with the database, the other files of the data directory, the configuration, and a manifest with
checksums. It does not include the master key unless requested: keep a copy of the key in another place.
"postrider backup DIR" is short for "postrider backup create DIR". See docs/backup.md.

Examples:
  postrider backup create /var/backups/postrider
  postrider backup verify /var/backups/postrider
  postrider restore /var/backups/postrider --data /var/lib/postrider`,
    commands: [
      createCommand(context, {
        usage: 'create <dir>',
        isDefault: true,
        description: 'Create a backup in a new directory in <dir>; the daemon may be running',
        options: [
          option('--include-key', 'include the master key: the backup then reveals all secrets'),
          asJson,
        ],
        run: (dir, { includeKey }) => create(context, dir, includeKey === true),
      }),
      createCommand(context, {
        usage: 'list <dir>',
        description: 'List the backups in <dir>, newest first',
        options: [asJson],
        run: (dir) => list(context, dir),
      }),
      createCommand(context, {
        usage: 'verify <dir>',
        description: 'Check a backup, or the newest one in <dir>; exit status 3 when something is wrong',
        options: [asJson],
        run: (dir) => verify(context, dir),
      }),
    ],
  });
}

async function create(context: CliContext, dir: string, includeKey: boolean): Promise<void> {
  context.existingData();
  const bar = createByteBar(process.stderr.isTTY && !context.json);
  const stopped = new OperatorFault('Stopped by a signal; no backup was created');
  const { path, manifest } = await withStopSignal(stopped, (signal) =>
    createBackup({
      config: context.config(),
      dir,
      includeKey,
      clock: systemClock,
      onProgress: ({ step, done, total }) => bar.update(step, done, total),
      signal,
    }),
  ).finally(bar.stop);
  if (context.json) return context.printJson({ path, ...summary(manifest) });
  context.print(`Created ${path} (${formatBytes(manifest.bytes)}).`);
  if (!manifest.includesKey && manifest.keyFingerprint !== null)
    context.note(
      'The backup does not include the master key, without which its secrets cannot be read: keep a copy of the key in another place (docs/lost-master-key.md states why)',
    );
}

function summary({ files, ...manifest }: Manifest) {
  return { ...manifest, files: files.length };
}

async function list(context: CliContext, dir: string): Promise<void> {
  const listed = await listBackups(dir);
  const empty = `There is no backup in ${dir}`;
  if (context.json)
    return context.printRows(
      listed.map(({ path, manifest, fault }) => ({
        path,
        complete: manifest !== null,
        ...(manifest === null ? { fault } : summary(manifest)),
      })),
      empty,
    );
  context.printRows(listed, empty, ({ path, manifest }) => ({
    backup: basename(path),
    created: manifest?.createdAt ?? '',
    size: manifest === null ? '' : formatBytes(manifest.bytes),
    version: manifest?.version ?? '',
    schema: manifest?.schema ?? '',
    queued: manifest?.counts?.queued ?? '',
    key: manifest?.includesKey === true ? 'included' : '',
    state: manifest === null ? 'damaged or incomplete' : 'complete',
  }));
}

async function verify(context: CliContext, dir: string): Promise<void> {
  const bar = createByteBar(process.stderr.isTTY && !context.json);
  const path = await findBackup(dir);
  const { manifest, key, problems } = await verifyBackup(path, {
    masterKeyFile: context.config().data.masterKeyFile,
    onProgress: (step, { done, total }) => bar.update(step, done, total),
  }).finally(bar.stop);
  const intact = problems.length === 0;
  context.printRecord(
    context.json
      ? { path, intact, key, problems, ...(manifest === null ? {} : summary(manifest)) }
      : describe(path, manifest, key),
  );
  if (!intact) context.partial(problems.join('\n'));
}

function describe(path: string, manifest: Manifest | null, key: string): Record<string, unknown> {
  if (manifest === null) return { backup: path };
  const { createdAt, version, schema, instanceId, generation, bytes, files, counts } = manifest;
  return {
    backup: path,
    created: createdAt,
    version: `${version}, schema ${schema}`,
    instance: `${instanceId ?? 'none'}, generation ${generation}`,
    size: `${formatBytes(bytes)} in ${counted(files.length, 'file')}`,
    ...(counts === null
      ? {}
      : {
          accounts: counts.accounts,
          domains: counts.domains,
          contacts: counts.contacts,
          messages: Object.entries(counts.messages)
            .map(([state, number]) => `${number} ${state}`)
            .join(', '),
          unfinished: `${counted(counts.queued, 'message')}, ${counted(counts.webhookDeliveries, 'webhook delivery', 'webhook deliveries')}: a restore holds them`,
        }),
    'master key': key,
  };
}
