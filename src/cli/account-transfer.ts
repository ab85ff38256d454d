import { resolve } from 'node:path';
import type { Command } from 'commander';
import { OperatorFault } from '../core/operator-fault.ts';
import { type ExportResult, exportAccount } from '../transfer/export.ts';
import { totalOf } from '../transfer/format.ts';
import { cancelImport, importAccount } from '../transfer/import.ts';
import { mayCallPrivateNetworks } from '../webhooks/private-networks.ts';
import { asJson, createCommand, type OptionValues, option } from './command.ts';
import type { CliContext } from './context.ts';
import { readTextFile, requireReadable } from './input-files.ts';
import { createByteBar, createCountBar } from './output/progress.ts';
import { counted } from './output/table.ts';
import { withStopSignal } from './signals.ts';

const exportOptions = [
  option('--output <file>', 'a new file, or - for standard output', { required: true }),
  option('--passphrase-file <file>', 'file with the passphrase that seals the secrets', {
    required: true,
  }),
  option('--without-queue', 'leave the account enabled; this machine sends what is in its queue'),
  asJson,
] as const;

/** `postrider account export|import`. */
export function transferCommands(context: CliContext): Command[] {
  return [
    createCommand(context, {
      usage: 'export <id>',
      description: 'Export an account to a file, to move it to another machine; disables it',
      options: exportOptions,
      help: `
The file contains everything except messages and events: settings, API keys (as hashes), domains with their DKIM keys, contacts
with consent, groups, templates, suppressions, webhooks, campaigns. Secrets are sealed with the passphrase; contacts are not:
protect the file like the database. See docs/scaling.md.

Examples:
  postrider account export acct_8f3k2m9x0q1z --output shop.account.gz --passphrase-file passphrase
  postrider account import shop.account.gz --passphrase-file passphrase --dry-run`,
      run: (id, options) => runExport(context, id, options),
    }),
    createCommand(context, {
      usage: 'import [file]',
      description:
        'Import an account that was exported from another machine; it is disabled until you enable it',
      options: [
        option('--passphrase-file <file>', 'file with the passphrase of the export'),
        option('--dry-run', 'check the file without importing it'),
        option('--cancel <id>', 'remove what an interrupted import of this account has imported'),
        asJson,
      ],
      run: async (file, { cancel, dryRun, passphraseFile }) => {
        if (cancel === undefined)
          return runImport(context, file, { passphraseFile, dryRun: dryRun === true });
        if (file !== undefined || dryRun === true || passphraseFile !== undefined)
          context.usage('--cancel is used alone, with the id of the account');
        const removed = context.accepted(await cancelImport(await context.open(), cancel));
        context.show(
          { accountId: cancel, removed },
          () => `Removed account ${cancel} (${removed.toLocaleString('en')} rows)`,
        );
      },
    }),
  ];
}

async function runExport(
  context: CliContext,
  accountId: string,
  flags: OptionValues<typeof exportOptions>,
): Promise<void> {
  context.existingData();
  const { output } = flags;
  const toStdout = output === '-';
  if (toStdout && process.stdout.isTTY) context.usage('Standard output is a terminal: specify a file');
  const passphrase = readPassphrase(flags.passphraseFile);
  const deps = await context.open();
  const bar = createCountBar(process.stderr.isTTY && !context.json);
  const stopped = new OperatorFault('Stopped by a signal; nothing was exported');
  const exported = await withStopSignal(stopped, async (signal) =>
    exportAccount(
      { ...deps, seal: await deps.openSeal() },
      {
        accountId,
        dataDir: deps.config.data.dir,
        hostname: deps.config.hostname,
        passphrase,
        output: toStdout ? process.stdout : resolve(output),
        withoutQueue: flags.withoutQueue === true,
        onProgress: (done, total) => bar.update('export', done, total),
        signal,
      },
    ),
  ).finally(bar.stop);
  const { counts, bytes, queued, disabled } = context.accepted(exported);
  const records = totalOf(counts);
  if (!toStdout && context.json)
    return context.printJson({ accountId, file: resolve(output), bytes, records, counts, queued, disabled });
  const text = `Exported account ${accountId}: ${contentOf(counts)}`;
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

async function runImport(
  context: CliContext,
  file: string | undefined,
  { passphraseFile, dryRun }: { passphraseFile: string | undefined; dryRun: boolean },
): Promise<void> {
  if (file === undefined) return context.usage('Specify the file of an exported account');
  if (passphraseFile === undefined)
    return context.usage('Specify the file with the passphrase: --passphrase-file');
  // Before a database is created for it.
  await requireReadable(null, file);
  const passphrase = readPassphrase(passphraseFile);
  const deps = await context.open({ create: true });
  const bar = createByteBar(process.stderr.isTTY && !context.json);
  const stopped = new OperatorFault(
    dryRun
      ? 'Stopped by a signal; nothing was imported'
      : 'Stopped by a signal: run the command again to continue, or remove what was imported with --cancel',
  );
  const imported = await withStopSignal(stopped, async (signal) =>
    importAccount(
      { ...deps, seal: await deps.openSeal() },
      {
        file,
        passphrase,
        dryRun,
        allowPrivateNetworks: mayCallPrivateNetworks(deps.config, deps.tables),
        onProgress: (step, done, total) => bar.update(step, done, total),
        signal,
      },
    ),
  ).finally(bar.stop);
  const { header, resumed } = context.accepted(imported);
  const { accountId, counts, hostname, createdAt } = header;
  const records = totalOf(counts);
  context.show({ accountId, dryRun, resumed, hostname, createdAt, records, counts }, () => {
    const text = `account ${accountId} of ${hostname} (exported ${createdAt}): ${contentOf(counts)}`;
    return dryRun
      ? `Checked ${text}. It can be imported.`
      : [
          `Imported ${text}.`,
          `Next: publish the platform's DNS records again ("postrider zone"), change the routing, then run "postrider account enable ${accountId}".`,
        ];
  });
}

function contentOf(counts: ExportResult['counts']): string {
  return `${totalOf(counts).toLocaleString('en')} records, ${counts.contact.toLocaleString('en')} contacts, ${counts.domain} domains`;
}

/** The text of the file without its line end. */
function readPassphrase(file: string): string {
  return readTextFile('--passphrase-file', file).replace(/\r?\n$/, '');
}
