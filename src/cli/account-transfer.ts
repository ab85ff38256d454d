import { resolve } from 'node:path';
import type { Command } from 'commander';
import { OperatorFault } from '../core/operator-fault.ts';
import { isRefusal } from '../core/refusal.ts';
import { type ExportOptions, type ExportResult, exportAccount } from '../transfer/export.ts';
import { totalOf } from '../transfer/format.ts';
import { cancelImport, importAccount } from '../transfer/import.ts';
import { mayCallPrivateNetworks } from '../webhooks/private-networks.ts';
import type { CliContext } from './context.ts';
import { readTextFile, requireReadable } from './input-files.ts';
import { createByteBar, createCountBar } from './output/progress.ts';
import { counted } from './output/table.ts';
import { withStopSignal } from './signals.ts';

/** Adds `postrider account export|import`. */
export function addTransferCommands(account: Command, context: CliContext): void {
  account
    .command('export <id>')
    .description('Export an account to a file, to move it to another machine; disables it')
    .requiredOption('--output <file>', 'a new file, or - for standard output')
    .requiredOption('--passphrase-file <file>', 'file with the passphrase that seals the secrets')
    .option('--without-queue', 'leave the account enabled; this machine sends what is in its queue')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
The file contains everything except messages and events: settings, API keys (as hashes), domains with their DKIM keys, contacts
with consent, groups, templates, suppressions, webhooks, campaigns. Secrets are sealed with the passphrase; contacts are not:
protect the file like the database. See docs/scaling.md.

Examples:
  postrider account export acct_8f3k2m9x0q1z --output shop.account.gz --passphrase-file passphrase
  postrider account import shop.account.gz --passphrase-file passphrase --dry-run`,
    )
    .action((id: string, options: ExportFlags) => runExport(context, id, options));
  account
    .command('import [file]')
    .description(
      'Import an account that was exported from another machine; it is disabled until you enable it',
    )
    .option('--passphrase-file <file>', 'file with the passphrase of the export')
    .option('--dry-run', 'check the file without importing it')
    .option('--cancel <id>', 'remove what an interrupted import of this account has imported')
    .option('--json', 'print JSON')
    .action((file: string | undefined, options: ImportFlags) => runImport(context, file, options));
}

interface ExportFlags {
  output: string;
  passphraseFile: string;
  withoutQueue?: boolean;
  json?: boolean;
}

interface ImportFlags {
  passphraseFile?: string;
  dryRun?: boolean;
  cancel?: string;
  json?: boolean;
}

async function runExport(context: CliContext, accountId: string, flags: ExportFlags): Promise<void> {
  context.existingData();
  const toStdout = flags.output === '-';
  if (toStdout && process.stdout.isTTY) return context.usage('Standard output is a terminal: specify a file');
  const passphrase = readPassphrase(flags.passphraseFile);
  const deps = await context.open();
  const json = flags.json === true;
  const bar = createCountBar(process.stderr.isTTY && !json);
  const stopped = new OperatorFault('Stopped by a signal; nothing was exported');
  await withStopSignal(stopped, async (signal) => {
    try {
      const options: ExportOptions = {
        accountId,
        dataDir: deps.config.data.dir,
        hostname: deps.config.hostname,
        passphrase,
        output: toStdout ? process.stdout : resolve(flags.output),
        withoutQueue: flags.withoutQueue === true,
        onProgress: (done, total) => bar.update('export', done, total),
        signal,
      };
      const result = await exportAccount({ ...deps, seal: await deps.seal() }, options);
      bar.stop();
      if (isRefusal(result)) return context.refused(result);
      report(context, result, { output: flags.output, toStdout, json });
    } finally {
      bar.stop();
    }
  });
}

function report(
  context: CliContext,
  { accountId, counts, bytes, queued, disabled }: ExportResult,
  { output, toStdout, json }: { output: string; toStdout: boolean; json: boolean },
): void {
  const records = totalOf(counts);
  if (!toStdout && json)
    return context.printJson({ accountId, file: resolve(output), bytes, records, counts, queued, disabled });
  const text = `Exported account ${accountId}: ${records.toLocaleString('en')} records, ${counts.contact.toLocaleString('en')} contacts, ${counts.domain} domains`;
  // Standard output has the file.
  if (toStdout) context.note(text);
  else context.print(text);
  if (disabled)
    context.note(
      `Account ${accountId} is disabled on this machine: "postrider account enable ${accountId}" enables it again`,
    );
  if (queued > 0)
    context.note(
      `This machine still sends ${counted(queued, 'queued message')} of the account: disable the account when the queue has none`,
    );
}

async function runImport(context: CliContext, file: string | undefined, flags: ImportFlags): Promise<void> {
  const json = flags.json === true;
  if (flags.cancel !== undefined) {
    if (file !== undefined || flags.dryRun === true || flags.passphraseFile !== undefined)
      return context.usage('--cancel is used alone, with the id of the account');
    const removed = await cancelImport(await context.open(), flags.cancel);
    if (isRefusal(removed)) return context.refused(removed);
    if (json) return context.printJson({ accountId: flags.cancel, removed });
    return context.print(`Removed account ${flags.cancel} (${removed.toLocaleString('en')} rows)`);
  }
  if (file === undefined) return context.usage('Specify the file of an exported account');
  if (flags.passphraseFile === undefined)
    return context.usage('Specify the file with the passphrase: --passphrase-file');
  // Before a database is created for it.
  await requireReadable(null, file);
  const passphrase = readPassphrase(flags.passphraseFile);
  const deps = await context.open({ create: true });
  const bar = createByteBar(process.stderr.isTTY && !json);
  const dryRun = flags.dryRun === true;
  const stopped = new OperatorFault(
    dryRun
      ? 'Stopped by a signal; nothing was imported'
      : 'Stopped by a signal: run the command again to continue, or remove what was imported with --cancel',
  );
  await withStopSignal(stopped, async (signal) => {
    try {
      const result = await importAccount(
        { ...deps, seal: await deps.seal() },
        {
          file,
          passphrase,
          dryRun,
          allowPrivateNetworks: mayCallPrivateNetworks(deps.config, deps.tables),
          onProgress: (step, done, total) => bar.update(step, done, total),
          signal,
        },
      );
      bar.stop();
      if (isRefusal(result)) return context.refused(result);
      const { accountId, counts, hostname, createdAt } = result.header;
      const records = totalOf(counts);
      if (json)
        return context.printJson({
          accountId,
          dryRun,
          resumed: result.resumed,
          hostname,
          createdAt,
          records,
          counts,
        });
      const text = `account ${accountId} of ${hostname} (exported ${createdAt}): ${records.toLocaleString('en')} records, ${counts.contact.toLocaleString('en')} contacts, ${counts.domain} domains`;
      if (dryRun) return context.print(`Checked ${text}. It can be imported.`);
      context.print(`Imported ${text}.`);
      context.print(
        `Next: publish the platform's DNS records again ("postrider zone"), change the routing, then run "postrider account enable ${accountId}".`,
      );
    } finally {
      bar.stop();
    }
  });
}

/** The text of the file without its line end. */
function readPassphrase(file: string): string {
  return readTextFile('--passphrase-file', file).replace(/\r?\n$/, '');
}
