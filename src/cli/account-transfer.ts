import { resolve } from 'node:path';
import type { Command } from 'commander';
import { createAccounts } from '../accounts/accounts.ts';
import { SECOND } from '../core/clock.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import { cancelMove, type ExportOptions, type ExportResult, exportAccount } from '../transfer/export.ts';
import { totalOf } from '../transfer/format.ts';
import { cancelImport, importAccount } from '../transfer/import.ts';
import { mayCallPrivateNetworks } from '../webhooks/private-networks.ts';
import { asJson, createCommand, type OptionValues, option } from './command.ts';
import type { CliContext } from './context.ts';
import { readTextFile, requireReadable } from './input-files.ts';
import { createByteBar, createCountBar } from './output/progress.ts';
import { counted } from './output/table.ts';
import { withStopSignal } from './signals.ts';

/** A request whose body has arrived is answered in milliseconds. */
const SETTLE_MS = 500;
/** How long an export waits until the messages in the queue are sent. */
const WAIT_SECONDS = 60;

const exportOptions = [
  option('--output <file>', 'a new file, or - for standard output'),
  option('--passphrase-file <file>', 'file with the passphrase that seals the secrets'),
  option('--live', 'export it while it is in use, as the first file of a move; --difference follows'),
  option('--difference', 'export what changed since the first file; disables the account'),
  option('--late', 'export opt-outs and suppressions that arrived here since the account left'),
  option('--without-queue', 'do not wait for the queue: this machine sends the rest of it'),
  option('--cancel', 'forget the first file of a move'),
  asJson,
] as const;

/** `postrider account export|import`. */
export function transferCommands(context: CliContext): Command[] {
  return [
    createCommand(context, {
      usage: 'export <id>',
      description:
        'Export an account to a file, to move it to another machine; disables it, except with --live',
      options: exportOptions,
      help: `
The file contains everything except messages and events: settings, API keys (as hashes), domains with their DKIM keys, contacts
with consent, groups, templates, suppressions, webhooks, campaigns. Secrets are sealed with the passphrase; contacts are not:
protect the file like the database. See docs/scaling.md.

Two files keep the interruption short: one with --live while the account is in use, imported at once, and one with --difference,
which takes seconds. From then on requests of the account get 503, until it is enabled on one of the machines. It waits up to
${WAIT_SECONDS} seconds until the messages in the queue are sent.

Examples:
  postrider account export acct_8f3k2m9x0q1z --live --output shop.account.gz --passphrase-file passphrase
  postrider account export acct_8f3k2m9x0q1z --difference --output shop.rest.gz --passphrase-file passphrase
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
        option('--enable', 'enable the account when everything is imported'),
        option('--cancel <id>', 'remove what an interrupted import of this account has imported'),
        asJson,
      ],
      run: async (file, { cancel, dryRun, enable, passphraseFile }) => {
        if (dryRun === true && enable === true) context.usage('Use either --dry-run or --enable');
        if (cancel === undefined)
          return runImport(context, file, {
            passphraseFile,
            dryRun: dryRun === true,
            enable: enable === true,
          });
        if (file !== undefined || dryRun === true || enable === true || passphraseFile !== undefined)
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
  const { output, passphraseFile } = flags;
  if (flags.cancel === true) {
    const isAlone = output === undefined && passphraseFile === undefined && flags.withoutQueue !== true;
    if (!isAlone || partOf(flags) !== 'whole') context.usage('--cancel is used alone');
    context.accepted(await cancelMove(await context.open(), accountId));
    return context.show({ accountId, cancelled: true }, () => `The first file of ${accountId} is forgotten`);
  }
  if (output === undefined) return context.usage('Specify a new file: --output');
  if (passphraseFile === undefined)
    return context.usage('Specify the file with the passphrase: --passphrase-file');
  const parts = [flags.live, flags.difference, flags.late].filter((flag) => flag === true);
  if (parts.length > 1) context.usage('Use only one of --live, --difference and --late');
  const toStdout = output === '-';
  if (toStdout && process.stdout.isTTY) context.usage('Standard output is a terminal: specify a file');
  const passphrase = readPassphrase(passphraseFile);
  const deps = await context.open();
  let isWaiting = false;
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
        part: partOf(flags),
        withoutQueue: flags.withoutQueue === true,
        settleMs: SETTLE_MS,
        waitMs: WAIT_SECONDS * SECOND,
        onWaiting: (queued) => {
          if (!isWaiting) context.note(`Waiting until ${counted(queued, 'queued message')} are sent`);
          isWaiting = true;
        },
        onProgress: (done, total) => bar.update('export', done, total),
        signal,
      },
    ),
  ).finally(bar.stop);
  const { counts, bytes, queued, disabled, refusedMs } = context.accepted(exported);
  const records = totalOf(counts);
  if (!toStdout && context.json)
    return context.printJson({
      accountId,
      file: resolve(output),
      bytes,
      records,
      counts,
      queued,
      disabled,
      refusedMs: Math.round(refusedMs),
    });
  const text = `Exported account ${accountId}: ${contentOf(counts)}`;
  // Standard output has the file.
  if (toStdout) context.note(text);
  else context.print(text);
  if (disabled)
    context.note(
      `Account ${accountId} is disabled on this machine since ${seconds(refusedMs)}, and its requests get 503: "postrider account enable ${accountId}" enables it again`,
    );
  if (flags.live === true)
    context.note(
      `The account stays in use. Import the file on the other machine, then export the rest with --difference`,
    );
  else if (queued > 0)
    context.note(`This machine still sends ${counted(queued, 'queued message')} of the account`);
}

function partOf({ live, difference, late }: OptionValues<typeof exportOptions>): ExportOptions['part'] {
  if (live === true) return 'first';
  if (difference === true) return 'difference';
  return late === true ? 'late' : 'whole';
}

async function runImport(
  context: CliContext,
  file: string | undefined,
  {
    passphraseFile,
    dryRun,
    enable,
  }: { passphraseFile: string | undefined; dryRun: boolean; enable: boolean },
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
  const { header, resumed, added } = context.accepted(imported);
  const { accountId, counts, hostname, createdAt, part, movedAt } = header;
  const records = totalOf(counts);
  if (part === 'late')
    return context.show(
      { accountId, dryRun, hostname, createdAt, records, added },
      () => `Added ${added} of ${records} opt-outs and suppressions that arrived on ${hostname}`,
    );
  const isLast = part !== 'first';
  if (enable && isLast) context.accepted(await createAccounts(deps).setStatus(accountId, 'active'));
  // By the clocks of both machines.
  const refusedMs = movedAt === null ? null : Math.max(0, deps.clock.now() - Date.parse(movedAt));
  context.show(
    { accountId, dryRun, resumed, hostname, createdAt, part, records, counts, movedAt, refusedMs },
    () => {
      const text = `account ${accountId} of ${hostname} (exported ${createdAt}): ${contentOf(counts)}`;
      if (dryRun) return `Checked ${text}. It can be imported.`;
      if (!isLast)
        return [
          `Imported ${text}.`,
          `Next: export what changed since then on ${hostname} with --difference, and import that file.`,
        ];
      const since = refusedMs === null ? '' : ` Its requests were refused for ${seconds(refusedMs)}.`;
      return [
        `Imported ${text}.${since}`,
        enable
          ? `Account ${accountId} is active. Next: change the routing, and publish the platform's DNS records again ("postrider zone").`
          : `Next: publish the platform's DNS records again ("postrider zone"), change the routing, then run "postrider account enable ${accountId}".`,
      ];
    },
  );
}

function seconds(ms: number): string {
  return `${(ms / SECOND).toFixed(1)} s`;
}

function contentOf(counts: ExportResult['counts']): string {
  return `${totalOf(counts).toLocaleString('en')} records, ${counts.contact.toLocaleString('en')} contacts, ${counts.domain} domains`;
}

/** The text of the file without its line end. */
function readPassphrase(file: string): string {
  return readTextFile('--passphrase-file', file).replace(/\r?\n$/, '');
}
