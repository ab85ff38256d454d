import { type Command, InvalidArgumentError } from 'commander';
import { type FileImportResult, importFile } from '../../audience/import/file.ts';
import type { ImportBatch, ImportCounts } from '../../audience/import/import.ts';
import { fieldNamed } from '../../audience/import/rows.ts';
import { importFormatOf } from '../../audience/import/source.ts';
import { OperatorFault } from '../../core/operator-fault.ts';
import { isRefusal } from '../../core/refusal.ts';
import { asJson, createCommand, ofAccount, option } from '../command.ts';
import type { CliContext } from '../context.ts';
import { requireReadable } from '../input-files.ts';
import { createStepBar } from '../output/progress.ts';
import { withStopSignal } from '../signals.ts';
import { openAudience } from './open-audience.ts';

/** `postrider contacts import FILE`: imports files of any length, and can be interrupted at any time. */
export function contactsImportCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'import <file>',
    description: 'Import contacts from a CSV or NDJSON file; the same command resumes after an interruption',
    argument: 'CSV with a header line, or NDJSON (one JSON object per line)',
    options: [
      ofAccount,
      option('--group <id>', 'subscribe every contact to this subscription group'),
      option('--format <format>', 'format of the file (default: by its extension)', {
        choices: ['csv', 'ndjson'],
      }),
      option('--map <column=field>', 'read a column as this field; may be repeated', {
        parse: addMapping,
        default: [],
      }),
      option('--ignore-unknown', 'ignore unknown columns instead of stopping before the first row'),
      option('--allow-phone-only', 'accept rows with a phone and no email'),
      option('--dry-run', 'count and check rows without writing anything'),
      option('--report <file>', 'file for rejected rows (default: <file>.rejected.csv)'),
      asJson,
    ],
    help: `
Fields: email, phone, firstName, lastName, language, consentMethod, consentDetails, consentIpAddress,
consentUserAgent, consentTimestamp, globalStatus, isActive and customFields.<name>. Rows with another
globalStatus than active, or with isActive false, are rejected. Separators are comma, semicolon or tab.
A row of an existing contact updates the fields that the row contains. An import never removes an
opt-out or a suppression. --dry-run may count a contact as created more than once if its rows are far
apart, and does not check the account's limit of contacts.

Examples:
  postrider contacts import people.csv --account acct_8f3k2m9x0q1z --dry-run
  postrider contacts import people.csv --account acct_8f3k2m9x0q1z --map "Email Address=email" --map "Plan=customFields.plan"
  postrider contacts import members.ndjson --account acct_8f3k2m9x0q1z --group sgroup_1769860800000_4k2m9x7q1zab`,
    run: async (file, { account: accountId, group = null, map, report, ...options }) => {
      const format = options.format ?? importFormatOf(file);
      if (format === null)
        context.usage(`The extension of ${file} is neither .csv nor .ndjson: use --format`);
      await requireReadable(null, file);
      const reportFile = report ?? `${file}.rejected.csv`;
      const dryRun = options.dryRun === true;
      const { importer } = await openAudience(context, accountId);
      const { tables, writer, clock } = await context.open();
      const bar = createStepBar(process.stderr.isTTY && !context.json);
      let size = 0;
      const draw = ({ position, counts }: Pick<ImportBatch, 'position' | 'counts'>) =>
        bar.update('import', position.byte, size, `${counts.rows.toLocaleString('en')} rows`);
      // The first signal ends the import after the current batch.
      const result = await withStopSignal(new OperatorFault('Interrupted'), (signal) =>
        importFile(
          { tables, writer, importer, now: clock.now },
          {
            file,
            format,
            accountId,
            groupId: group,
            rows: {
              columns: new Map(map),
              rejectUnknown: options.ignoreUnknown !== true,
              requireEmail: options.allowPhoneOnly !== true,
            },
            dryRun,
            reportFile,
            signal,
            onStart: (begun) => {
              size = begun.size;
              draw(begun);
            },
            onProgress: draw,
          },
        ),
      ).finally(bar.stop);
      if (isRefusal(result)) {
        const hint = result.code === 'VALIDATION_ERROR' ? `. ${HINT}` : '';
        context.fail(`${file}: ${result.message}${hint}`);
      }
      printResult(context, { file, reportFile, dryRun }, result);
    },
  });
}

type Mapping = readonly [column: string, field: string];

/** Parses `--map`. Throws InvalidArgumentError. A column may contain "=", a field cannot. */
function addMapping(text: string, before: readonly Mapping[]): readonly Mapping[] {
  const at = text.lastIndexOf('=');
  const [column, target] = [text.slice(0, at).trim(), text.slice(at + 1)];
  if (at === -1 || column === '')
    throw new InvalidArgumentError('Must be COLUMN=FIELD, such as "Email Address=email"');
  const field = fieldNamed(target);
  if (field === null) throw new InvalidArgumentError(`"${target}" is not a field; see --help for the fields`);
  if (before.some(([known]) => known === column))
    throw new InvalidArgumentError(`"${column}" is mapped twice`);
  return [...before, [column, field]];
}

const HINT =
  'Nothing was imported: assign the fields with --map "Email Address=email", or use --ignore-unknown or --allow-phone-only';

function printResult(
  context: CliContext,
  { file, reportFile, dryRun }: { file: string; reportFile: string; dryRun: boolean },
  { counts, rejected, complete, resumed, ignored, ignoredTruncated }: FileImportResult,
): void {
  const report = counts.rejected === 0 || dryRun ? null : reportFile;
  context.show(
    {
      file,
      dryRun,
      complete,
      resumed,
      ...counts,
      rejectedRows: rejected,
      rejectedRowsTruncated: counts.rejected > rejected.length,
      reportFile: report,
      ignoredColumns: ignored,
      ignoredColumnsTruncated: ignoredTruncated,
    },
    () => [
      `${file}: ${summary(counts)}${dryRun ? ' (dry run: nothing was written)' : ''}`,
      ...(ignored.length === 0 ? [] : [`ignored columns: ${ignored.join(', ')}`]),
      ...rejected.slice(0, SHOWN).map(({ line, reason }) => `  line ${line}: ${reason}`),
      ...(dryRun && counts.rejected > SHOWN
        ? [`  and ${(counts.rejected - SHOWN).toLocaleString('en')} more`]
        : []),
      ...(report === null ? [] : [`all rejected rows with reasons: ${report}`]),
    ],
  );
  if (!complete) context.fail(dryRun ? 'Interrupted' : 'Interrupted; run the same command again to continue');
  else if (counts.rejected > 0) context.partial();
}

/** Rejected rows in the text output. */
const SHOWN = 10;

function summary(counts: ImportCounts): string {
  const words: [keyof ImportCounts, string][] = [
    ['rows', 'rows'],
    ['created', 'created'],
    ['updated', 'updated'],
    ['unchanged', 'unchanged'],
    ['rejected', 'rejected'],
    ['subscribed', 'subscribed'],
    ['optedOut', 'left inactive because of an earlier opt-out'],
  ];
  return words
    .filter(([name]) => name === 'rows' || counts[name] > 0)
    .map(([name, word]) => `${counts[name].toLocaleString('en')} ${word}`)
    .join(', ');
}
