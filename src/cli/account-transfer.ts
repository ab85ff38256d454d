import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { fileFault } from '../core/operator-fault.ts';
import { isRefusal } from '../core/refusal.ts';
import { type ExportOptions, type ExportResult, exportAccount } from '../transfer/export.ts';
import { totalOf } from '../transfer/format.ts';
import { cancelImport, importAccount } from '../transfer/import.ts';
import type { CliContext } from './context.ts';
import { createByteBar, createCountBar } from './output/progress.ts';

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
The file has everything but messages and events: settings, API keys (as hashes), domains with their DKIM keys, contacts
with consent, groups, templates, suppressions, webhooks, campaigns. Secrets are sealed with the passphrase; contacts are not:
keep the file as safe as the database. See docs/scaling.md.

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
    .option('--dry-run', 'check the file, and import nothing')
    .option('--cancel <id>', 'remove what an import that was interrupted has imported')
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
  const passphrase = readPassphrase(flags.passphraseFile);
  const deps = await context.open();
  const toStdout = flags.output === '-';
  if (toStdout && process.stdout.isTTY) return context.usage('Standard output is a terminal: name a file');
  const json = flags.json === true;
  const bar = createCountBar(process.stderr.isTTY && !json);
  await untilSignal(context, 'Stopped by a signal; nothing was exported', async (signal) => {
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
  if (disabled) context.note(`Account ${accountId} is disabled here: "postrider account enable" undoes it`);
  if (queued > 0)
    context.note(
      `${queued.toLocaleString('en')} messages of the account are in the queue of this machine, which sends them: disable the account when they are sent`,
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
  if (file === undefined) return context.usage('Name the file of an exported account');
  if (flags.passphraseFile === undefined)
    return context.usage('Name the file with the passphrase: --passphrase-file');
  const passphrase = readPassphrase(flags.passphraseFile);
  const deps = await context.open({ create: true });
  const bar = createByteBar(process.stderr.isTTY && !json);
  const dryRun = flags.dryRun === true;
  const stopped = dryRun
    ? 'Stopped by a signal; nothing was imported'
    : 'Stopped by a signal: run the command again to continue, or remove what was imported with --cancel';
  await untilSignal(context, stopped, async (signal) => {
    try {
      const result = await importAccount(
        { ...deps, seal: await deps.seal() },
        {
          file,
          passphrase,
          dryRun,
          allowPrivateNetworks: deps.config.webhooks.allowPrivateNetworks,
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

/** Runs `work` with a signal that SIGINT and SIGTERM abort; then the failure is `message`. */
async function untilSignal(
  context: CliContext,
  message: string,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const onSignal = () => stop.abort(new Error(message));
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, onSignal);
  try {
    await work(stop.signal);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    context.fail(message);
  } finally {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, onSignal);
  }
}

/** The text of the file without its line end. */
function readPassphrase(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw fileFault('--passphrase-file', file, error);
  }
}
