import { access } from 'node:fs/promises';
import { SingleBar } from 'cli-progress';
import { Command, Option } from 'commander';
import type { ImportCounts } from '../audience/import.ts';
import { type FileImportResult, importFile } from '../audience/import-file.ts';
import { formatOf, type ImportFormat } from '../audience/import-source.ts';
import { isRefusal } from '../core/refusal.ts';
import { withAudience } from './contacts-house.ts';
import type { CliContext } from './context.ts';

/** `postrider contacts import FILE`: a file of contacts, of any length, that may be interrupted at any moment. */
export function contactsImportCommand(context: CliContext): Command {
  return new Command('import')
    .description('take in contacts from a CSV or NDJSON file; the same command goes on after an interruption')
    .argument('<file>', 'CSV with a header line, or NDJSON: one JSON object a line')
    .requiredOption('--account <id>', 'the account')
    .option('--group <id>', 'make everybody a member of this subscription group')
    .addOption(new Option('--format <format>', 'default: by the file’s ending').choices(['csv', 'ndjson']))
    .option('--report <file>', 'where rejected rows are listed (default: <file>.rejected.csv)')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Columns: email, phone, firstName, lastName, consentMethod, consentDetails, consentIpAddress,
consentUserAgent, consentTimestamp and customFields.<name>; email or phone is needed. Separators are
comma, semicolon or tab. A row that names a known contact changes what it names and keeps the rest.
No import lifts an opt-out or a suppression.

Examples:
  postrider contacts import people.csv --account acct_8f3k2m9x0q1z
  postrider contacts import members.ndjson --account acct_8f3k2m9x0q1z --group sgroup_1769860800000_4k2m9x7q1zab`,
    )
    .action((file: string, options: ImportOptions) => run(context, file, options));
}

interface ImportOptions {
  account: string;
  group?: string;
  format?: ImportFormat;
  report?: string;
  json?: boolean;
}

async function run(context: CliContext, file: string, options: ImportOptions): Promise<void> {
  const format = options.format ?? formatOf(file);
  if (format === null) return context.usage('the file’s ending does not tell what it is: use --format');
  if (!(await isReadable(file))) return context.fail(`${file} cannot be read`);
  const reportFile = options.report ?? `${file}.rejected.csv`;
  await withAudience(context, options.account, async ({ importer }, house) => {
    const interruption = onInterruption();
    const bar = createBar(process.stderr.isTTY && options.json !== true);
    try {
      const result = await importFile(
        { ...house, importer, now: house.clock.now },
        {
          file,
          format,
          accountId: options.account,
          groupId: options.group ?? null,
          reportFile,
          signal: interruption.signal,
          onStart: ({ size, place, counts }) => bar.start(size, place.byte, counts.rows),
          onProgress: ({ place, counts }) => bar.update(place.byte, counts.rows),
        },
      );
      bar.stop();
      if (isRefusal(result)) return context.fail(result.message);
      tell(context, file, reportFile, result, options.json === true);
    } finally {
      bar.stop();
      interruption.forget();
    }
  });
}

async function isReadable(file: string): Promise<boolean> {
  try {
    await access(file);
    return true;
  } catch {
    // Missing or not allowed: the operator sees which.
    return false;
  }
}

/** The first signal ends the import after the batch under way. */
function onInterruption(): { signal: AbortSignal; forget(): void } {
  const controller = new AbortController();
  const stop = () => controller.abort();
  const signals = ['SIGINT', 'SIGTERM'] as const;
  for (const name of signals) process.on(name, stop);
  return {
    signal: controller.signal,
    forget: () => {
      for (const name of signals) process.removeListener(name, stop);
    },
  };
}

/** A bar on a terminal, nothing elsewhere. */
function createBar(shown: boolean) {
  const bar = new SingleBar({
    format: '{bar} {percentage} %  {rows} rows  {duration_formatted}, {eta_formatted} to go',
    barCompleteChar: '█',
    barIncompleteChar: '░',
    hideCursor: true,
    stream: process.stderr,
  });
  let running = false;
  return {
    start: (total: number, at: number, rows: number) => {
      if (!shown) return;
      running = true;
      bar.start(total, at, { rows: rows.toLocaleString('en') });
    },
    update: (at: number, rows: number) => {
      if (running) bar.update(at, { rows: rows.toLocaleString('en') });
    },
    stop: () => {
      if (running) bar.stop();
      running = false;
    },
  };
}

function tell(
  context: CliContext,
  file: string,
  reportFile: string,
  { counts, rejected, complete, resumed, ignored }: FileImportResult,
  json: boolean,
): void {
  const report = counts.rejected === 0 ? null : reportFile;
  if (json) {
    context.printJson({
      file,
      complete,
      resumed,
      ...counts,
      rejectedRows: rejected,
      reportFile: report,
      ignoredColumns: ignored,
    });
  } else {
    context.print(
      [
        `${file}: ${summary(counts)}`,
        ...(ignored.length === 0 ? [] : [`ignored columns: ${ignored.join(', ')}`]),
        ...(report === null
          ? []
          : rejected.slice(0, SHOWN).map(({ line, reason }) => `  line ${line}: ${reason}`)),
        ...(report === null ? [] : [`every rejected row with its reason: ${report}`]),
      ].join('\n'),
    );
  }
  if (!complete) context.fail('interrupted; run the same command again to continue');
  else if (counts.rejected > 0) context.partial();
}

/** Rejected rows that are shown at once. */
const SHOWN = 10;

function summary(counts: ImportCounts): string {
  const words: [keyof ImportCounts, string][] = [
    ['rows', 'rows'],
    ['created', 'created'],
    ['updated', 'updated'],
    ['unchanged', 'unchanged'],
    ['rejected', 'rejected'],
    ['subscribed', 'subscribed'],
    ['optedOut', 'left inactive, because they once left the group'],
  ];
  return words
    .filter(([name]) => name === 'rows' || counts[name] > 0)
    .map(([name, word]) => `${counts[name].toLocaleString('en')} ${word}`)
    .join(', ');
}
