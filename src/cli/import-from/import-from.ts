import { statSync } from 'node:fs';
import type { Command } from 'commander';
import { OperatorFault } from '../../core/operator-fault.ts';
import { isRefusal } from '../../core/refusal.ts';
import type { Domains } from '../../domains/service.ts';
import { useCaseId } from '../../domains/use-cases.ts';
import { templateInput } from '../../http/api/templates.ts';
import { parseInput } from '../../http/validation/parse.ts';
import { PROVIDER_NAMES, PROVIDERS, type ProviderName } from '../../moves/exports.ts';
import { ExportFault } from '../../moves/json-entries.ts';
import { type MoveDeps, moveExports } from '../../moves/move.ts';
import { type ExportFile, readExport } from '../../moves/read.ts';
import { createPartials } from '../../templates/partials.ts';
import { createTemplates } from '../../templates/templates.ts';
import { createTemplateThreads } from '../../templates/thread/threads.ts';
import { mayCallPrivateNetworks } from '../../webhooks/private-networks.ts';
import { openAudience } from '../audience/open-audience.ts';
import { openSuppressions } from '../audience/suppression.ts';
import { asJson, createCommand, createGroup, type OptionValues, ofAccount, option } from '../command.ts';
import { type CliContext, FAILED } from '../context.ts';
import { openDomains } from '../domains/open-domains.ts';
import { requireReadable } from '../input-files.ts';
import { createStepBar } from '../output/progress.ts';
import { openWebhooks } from '../sending/webhook.ts';
import { withStopSignal } from '../signals.ts';
import { withoutTrace } from './dry-run.ts';
import { type MoveReport, movedJson, movedLines, needsAttention } from './report.ts';

const BY = 'command line';
const options = [
  ofAccount,
  option(
    '--use-case <ids...>',
    'stream and region of new domains (default: transactional in the first region)',
  ),
  option('--dry-run', 'show what would happen without writing anything'),
  asJson,
] as const;

/** `postrider import-from postmark|sendgrid|…`. */
export function importFromCommand(context: CliContext): Command {
  return createGroup('import-from', 'Import the export files of another provider', {
    help: `
The kind of each file is recognized by its content; all files are read to their end before anything is written.
What the account has already is left as it is: the same command can be run again, also after an interruption.
docs/reference/move-from-<provider>.md names the files, and the commands that export them. Exits 3 when something was left out.

Example:
  postrider import-from postmark suppressions.json domains.json templates.json webhooks.json --account acct_8f3k2m9x0q1z --dry-run`,
    commands: PROVIDER_NAMES.map((provider) =>
      createCommand(context, {
        usage: `${provider} <files...>`,
        description: `Import files of ${PROVIDERS[provider].title}: ${kindsOf(provider)}`,
        options,
        run: (files, given) => importFrom(context, provider, files, given),
      }),
    ),
  });
}

function kindsOf(provider: ProviderName): string {
  const kinds = PROVIDERS[provider].forms.flatMap(({ kind, instead }) =>
    instead === undefined ? [kind] : [],
  );
  return [...new Set(kinds)].join(', ');
}

async function importFrom(
  context: CliContext,
  provider: ProviderName,
  files: readonly string[],
  { account: accountId, useCase, ...given }: OptionValues<typeof options>,
): Promise<void> {
  const dryRun = given.dryRun === true;
  for (const file of files) await requireReadable(null, file);
  const found = await context.open({ account: accountId });
  const opened = dryRun ? withoutTrace(found) : found;
  const [region] = opened.config.regions;
  const useCaseIds = useCase ?? (region === undefined ? [] : [useCaseId('tx', region.code)]);
  const interrupted = new OperatorFault('Interrupted; run the same command again to continue');
  const bar = createStepBar(process.stderr.isTTY && !context.json);
  const report = await withStopSignal(interrupted, async (signal): Promise<MoveReport> => {
    const size = files.reduce((sum, file) => sum + statSync(file).size, 0);
    let current = '';
    let done = 0;
    const onBytes = (step: string, count: number) => {
      done = step === current ? done + count : count;
      current = step;
      bar.update(step, done, size, `${files.length} files`);
    };
    const read = await readAll(context, provider, files, {
      signal,
      onBytes: (count) => onBytes('read', count),
    });
    const { deps, domains } = await openParts({ ...context, open: async () => opened }, accountId);
    const moved = await moveExports(deps, read, {
      provider,
      accountId,
      useCaseIds,
      dryRun,
      by: BY,
      signal,
      onBytes,
    });
    const result = context.accepted(moved, FAILED);
    const records = new Map(
      result.domains.flatMap(({ status, domainId }) => {
        const row = status === 'created' && domainId !== null ? opened.tables.domains.byId(domainId) : null;
        return row === null ? [] : [[row.domain_id, domains.records(row)] as const];
      }),
    );
    return { title: PROVIDERS[provider].title, accountId, dryRun, files: read, result, records };
  }).finally(bar.stop);
  context.show(movedJson(report), () => movedLines(report));
  if (needsAttention(report.result)) context.partial();
}

/** Reads all files; fails with what is wrong with each of them, before anything is written. */
async function readAll(
  context: CliContext,
  provider: ProviderName,
  files: readonly string[],
  reading: Parameters<typeof readExport>[2],
): Promise<ExportFile[]> {
  const read: ExportFile[] = [];
  const faults: string[] = [];
  for (const file of files) {
    try {
      read.push(await readExport(file, provider, reading));
    } catch (error) {
      if (!(error instanceof ExportFault)) throw error;
      faults.push(`${file}${error.line === 0 ? '' : `, line ${error.line}`}: ${error.message}`);
    }
  }
  const [first, ...others] = faults;
  if (first === undefined) return read;
  for (const fault of others) context.report(fault, FAILED);
  return context.fail(`${first}. Nothing was imported`);
}

async function openParts(
  context: CliContext,
  accountId: string,
): Promise<{ deps: MoveDeps; domains: Domains }> {
  const opened = await context.open();
  const { tables, writer, limits, config, log } = opened;
  const threads = createTemplateThreads(log);
  const domains = await openDomains(context);
  const { groups, importer } = await openAudience(context, accountId);
  const deps: MoveDeps = {
    tables,
    suppressions: await openSuppressions(context, accountId, limits.mayAdd.suppressions),
    domains,
    groups,
    importer,
    templates: createTemplates(opened, limits.mayAdd.templates, threads),
    partials: createPartials(opened, threads),
    webhooks: await openWebhooks(context, accountId),
    mayAddWebhook: () => writer.run((tx) => limits.mayAdd.webhooks(tx, accountId), accountId),
    allowPrivateNetworks: () => mayCallPrivateNetworks(config, tables),
    parseTemplate: (fields) => {
      const input = parseInput(templateInput, fields, 'template');
      return isRefusal(input) ? input : null;
    },
  };
  return { deps, domains };
}
