import { Command } from 'commander';
import { isRefusal } from '../../core/refusal.ts';
import { altDkimHost, platformOf } from '../../domains/platform/platform.ts';
import {
  presentDomain,
  presentKeys,
  presentSecondaryFlags,
  verificationMessage,
} from '../../domains/present.ts';
import { dmarcProgress } from '../../domains/reports.ts';
import { useCaseId } from '../../domains/use-cases.ts';
import type { CheckReport } from '../../domains/verification/apply-results.ts';
import { CHECKS, REQUIRED_CHECKS } from '../../domains/verification/checks.ts';
import { normalizeDomain } from '../../mail/address.ts';
import type { DomainRow } from '../../store/domains/domains.ts';
import type { Tables } from '../../store/tables.ts';
import type { CliContext } from '../context.ts';
import { fieldLines } from '../output/table.ts';
import {
  domainRecordTable,
  domainZoneFile,
  type FormatOptions,
  outputFormat,
  type RecordFormat,
  recordFormat,
} from './record-output.ts';
import { withDomains } from './with-domains.ts';

/** `postrider domain add|list|show|verify|rotate-dkim|delete`. */
export function domainCommand(context: CliContext): Command {
  const command = new Command('domain').description('Manage sending domains');
  command
    .command('add <name>')
    .description('Add a domain and print the DNS records to publish')
    .requiredOption('--account <id>', 'the account that sends from it')
    .requiredOption('--use-case <id>', 'stream and region: tx-local, mk-local, …')
    .option('--group <id>', "domain group (default: the account's default group)")
    .option('--format <format>', 'format of the records: table (default), bind or json', recordFormat)
    .option('--json', 'print JSON')
    .action((name: string, options: AddOptions) => addDomain(context, name, options));
  command
    .command('list')
    .description('List domains')
    .option('--account <id>', 'only this account')
    .option('--json', 'print JSON')
    .action((options: ListOptions) => listDomains(context, options));
  command
    .command('show <domain>')
    .description('Show a domain (name or id) and the DNS records to publish')
    .option('--account <id>', 'only in this account')
    .option('--format <format>', 'format of the records: table (default), bind or json', recordFormat)
    .option('--json', 'print JSON')
    .action((text: string, options: ShowOptions) => showDomain(context, text, options));
  command
    .command('verify <domain>')
    .description('Verify the DNS records of a domain (name or id) now')
    .option('--account <id>', 'only in this account')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
Queries the configured resolvers without caches, and records the result as the daemon does. "missing" and "wrong"
require a change in the zone. "unknown" means that a DNS server failed: the previous result remains.
Exits 0 when the domain is verified, 3 when it is not.`,
    )
    .action((text: string, options: ListOptions) => verifyDomain(context, text, options));
  command
    .command('delete <domain>')
    .description('Delete a domain (name or id) with its keys and queued messages')
    .option('--account <id>', 'only in this account')
    .option('--yes', 'do not ask for confirmation')
    .option('--json', 'print JSON')
    .action((text: string, options: DeleteOptions) => deleteDomain(context, text, options));
  command
    .command('rotate-dkim <domain>')
    .description('Rotate the DKIM key of a domain (name or id)')
    .option('--account <id>', 'only in this account')
    .option('--format <format>', 'format of the records: table (default), bind or json', recordFormat)
    .option('--json', 'print JSON')
    .action((text: string, options: ShowOptions) => rotateDkim(context, text, options));
  return command;
}

interface DeleteOptions extends ListOptions {
  yes?: boolean;
}

interface ListOptions {
  account?: string;
  json?: boolean;
}

interface ShowOptions extends ListOptions {
  format?: RecordFormat;
}

interface AddOptions extends FormatOptions {
  account: string;
  useCase: string;
  group?: string;
}

async function addDomain(context: CliContext, name: string, options: AddOptions): Promise<void> {
  await withDomains(context, async ({ domains, tables, config }) => {
    if (tables.accounts.get(options.account) === null)
      return context.fail(`There is no account ${options.account}`);
    const result = await domains.register(options.account, {
      domain: name,
      useCaseId: options.useCase,
      groupId: options.group,
    });
    if (isRefusal(result)) return context.fail(result.message);
    await domains.provisionSecondary(result.domain.domain_id);
    const domain = tables.domains.byId(result.domain.domain_id) ?? result.domain;
    const records = domains.records(domain);
    const notes = result.created
      ? [
          `The platform's zone has a new record, ${altDkimHost(platformOf(config), domain.alt_domain_id)}: publish the output of "postrider zone" again.`,
        ]
      : [];
    const format = outputFormat(options, 'table');
    if (format === 'json') return context.printJson({ ...detailsOf(domain), ...records, notes });
    if (format === 'bind')
      return context.print([...notes.map((note) => `; ${note}`), domainZoneFile(records)].join('\n'));
    const what = result.created ? 'is registered' : 'was already registered';
    context.print(
      [`${domain.name} ${what}: ${domain.domain_id}`, ...notes, '', domainRecordTable(records)].join('\n'),
    );
  });
}

async function listDomains(context: CliContext, options: ListOptions): Promise<void> {
  const { tables } = await context.open();
  const { account } = options;
  if (account !== undefined && tables.accounts.get(account) === null)
    return context.fail(`There is no account ${account}`);
  const rows = tables.domains.list(account ?? null);
  if (options.json) return context.printJson(rows.map(detailsOf));
  context.printRows(
    rows.map((row) => ({
      domain: row.name,
      useCase: useCaseId(row.use_case, row.region),
      status: row.status,
      failing: REQUIRED_CHECKS.filter(({ column }) => row[column] === 0)
        .map(({ name }) => name)
        .join(' '),
      secondary: row.alt_status,
      account: row.account_id,
    })),
    { json: false, empty: 'There are no domains' },
  );
}

async function showDomain(context: CliContext, name: string, options: ShowOptions): Promise<void> {
  await withDomains(context, async ({ domains, tables, clock }) => {
    const domain = findDomain(context, tables, name, options.account);
    if (domain === null) return;
    const records = domains.records(domain);
    const dmarc = dmarcProgress(tables.dmarcReports.history(domain.name), clock.now());
    const format = outputFormat(options, 'table');
    const dkimKeys = presentKeys(tables.dkimKeys.of(domain.domain_id));
    if (format === 'json')
      return context.printJson({ ...detailsOf(domain), dkimKeys, ...records, dmarcProgress: dmarc });
    if (format === 'bind') return context.print(domainZoneFile(records));
    const keys = dkimKeys.map(
      ({ selector, lane, algorithm, state, since, publishedBy }) =>
        `  ${selector}  ${lane}  ${algorithm}  ${state} since ${since}  published by ${publishedBy}`,
    );
    const text = ['DKIM keys', ...keys, '', dmarc, '', domainRecordTable(records)];
    context.print([...fieldLines(detailsOf(domain)), '', ...text].join('\n'));
  });
}

async function verifyDomain(context: CliContext, text: string, options: ListOptions): Promise<void> {
  await withDomains(context, async ({ domains, tables }) => {
    const domain = findDomain(context, tables, text, options.account);
    if (domain === null) return;
    const result = await domains.verify(domain.account_id, domain.domain_id);
    if (isRefusal(result)) return context.fail(result.message);
    const message = verificationMessage(result.domain, result.checks);
    if (options.json) context.printJson({ message, ...detailsOf(result.domain), checks: result.checks });
    else context.print([message, '', ...result.checks.flatMap(checkLines)].join('\n'));
    if (result.domain.status !== 'SUCCESS') context.partial();
  });
}

async function deleteDomain(context: CliContext, text: string, options: DeleteOptions): Promise<void> {
  await withDomains(context, async ({ domains, tables }) => {
    const domain = findDomain(context, tables, text, options.account);
    if (domain === null) return;
    const { domain_id: domainId, name, account_id: accountId } = domain;
    const queued = tables.queue.countOfDomain(domainId);
    const messages = `${queued} queued ${queued === 1 ? 'message' : 'messages'}`;
    const question = `Delete ${name} (${domainId}) of ${accountId}? ${messages} will be dropped.`;
    if (options.yes !== true && !(await context.confirm(question))) return;
    const removed = await domains.remove(accountId, domainId);
    if (isRefusal(removed)) return context.fail(removed.message);
    if (options.json === true) context.printJson({ domainId, domain: name });
    else context.print(`${name} (${domainId}) is deleted`);
  });
}

async function rotateDkim(context: CliContext, text: string, options: ShowOptions): Promise<void> {
  await withDomains(context, async ({ domains, tables }) => {
    const domain = findDomain(context, tables, text, options.account);
    if (domain === null) return;
    const result = await domains.rotateDkim(domain.account_id, domain.domain_id);
    if (isRefusal(result)) return context.fail(result.message);
    const records = domains.records(result.domain);
    const message = result.isManaged
      ? `The DKIM keys of ${domain.name} in the platform's zone are rotated at the next check: nothing needs to be published.`
      : result.started
        ? `The rotation of the DKIM key of ${domain.name} has started: publish the new record. The old key signs until the new record is found.`
        : `A rotation of the DKIM key of ${domain.name} is already in progress.`;
    const format = outputFormat(options, 'table');
    if (format === 'json') context.printJson({ message, ...detailsOf(result.domain), ...records });
    else if (format === 'bind') context.print(domainZoneFile(records));
    else context.print([message, '', domainRecordTable(records)].join('\n'));
  });
}

/** Finds a domain by id or name; reports a failure unless exactly one matches. */
function findDomain(
  context: CliContext,
  tables: Tables,
  text: string,
  account: string | undefined,
): DomainRow | null {
  if (account !== undefined && tables.accounts.get(account) === null) {
    context.fail(`There is no account ${account}`);
    return null;
  }
  const name = normalizeDomain(text);
  const found = tables.domains
    .list(account ?? null)
    .filter((row) => row.domain_id === text || row.name === name);
  const [only, ...others] = found;
  if (only === undefined) context.fail(`There is no domain ${text}`);
  else if (others.length === 0) return only;
  else {
    const ids = found.map(
      (row) => `  ${row.domain_id}  ${useCaseId(row.use_case, row.region)}  ${row.account_id}`,
    );
    context.usage(`${text} is registered ${found.length} times; specify one by its id:\n${ids.join('\n')}`);
  }
  return null;
}

function detailsOf(row: DomainRow) {
  return {
    ...presentDomain(row),
    accountId: row.account_id,
    useCaseId: useCaseId(row.use_case, row.region),
    altDomainId: row.alt_domain_id,
    altStatus: row.alt_status,
    ...presentSecondaryFlags(row),
  };
}

function checkLines({ check, result, expected, found, hint }: CheckReport): string[] {
  const lines = [`${result.padEnd(7)} ${CHECKS[check].label}`];
  if (hint !== '') lines.push(`        ${hint}`);
  if (result === 'missing' || result === 'wrong') {
    lines.push(`        expected  ${expected}`);
    for (const value of found?.split('\n') ?? []) lines.push(`        found     ${value}`);
  }
  return lines;
}
