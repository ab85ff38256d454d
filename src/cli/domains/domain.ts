import type { Command } from 'commander';
import { altDkimHost, platformOf } from '../../domains/platform/platform.ts';
import {
  presentDomain,
  presentKeys,
  presentSecondaryFlags,
  verificationMessage,
} from '../../domains/present.ts';
import { dmarcProgress } from '../../domains/reports.ts';
import { useCaseId } from '../../domains/use-cases.ts';
import { CHECKS, REQUIRED_CHECKS } from '../../domains/verification/checks.ts';
import type { CheckReport } from '../../domains/verification/status.ts';
import { normalizeDomain } from '../../mail/address.ts';
import type { DomainRow } from '../../store/domains/domains.ts';
import { asJson, createCommand, createGroup, type OptionValues, option, withoutAsking } from '../command.ts';
import { type CliContext, FAILED } from '../context.ts';
import { fieldLines } from '../output/table.ts';
import { openDomains } from './open-domains.ts';
import { domainRecordTable, domainZoneFile, type RecordFormat, recordFormat } from './record-output.ts';

const inAccount = option('--account <id>', 'only in this account');
const format = option('--format <format>', 'format of the records: table (default), bind or json', {
  parse: recordFormat,
});

const addOptions = [
  option('--account <id>', 'the account that sends from it', { required: true }),
  option('--use-case <id>', 'stream and region: tx-local, mk-local, …', { required: true }),
  option('--group <id>', "domain group (default: the account's default group)"),
  format,
  asJson,
] as const;
const showOptions = [inAccount, format, asJson] as const;

/** `postrider domain add|list|show|verify|rotate-dkim|delete`. */
export function domainCommand(context: CliContext): Command {
  return createGroup('domain', 'Manage sending domains', {
    commands: [
      createCommand(context, {
        usage: 'add <name>',
        description: 'Add a domain and print the DNS records to publish',
        options: addOptions,
        run: (name, options) => addDomain(context, name, options),
      }),
      createCommand(context, {
        usage: 'list',
        description: 'List domains',
        options: [option('--account <id>', 'only this account'), asJson],
        run: async ({ account }) => {
          const { tables } = await context.open({ account });
          const rows = tables.domains.list(account ?? null);
          if (context.json) return context.printJson(rows.map(detailsOf));
          context.printRows(rows, 'There are no domains', (row) => ({
            domain: row.name,
            useCase: useCaseId(row.use_case, row.region),
            status: row.status,
            failing: REQUIRED_CHECKS.filter(({ column }) => row[column] === 0)
              .map(({ name }) => name)
              .join(' '),
            secondary: row.alt_status,
            account: row.account_id,
          }));
        },
      }),
      createCommand(context, {
        usage: 'show <domain>',
        description: 'Show a domain (name or id) and the DNS records to publish',
        options: showOptions,
        run: (text, options) => showDomain(context, text, options),
      }),
      createCommand(context, {
        usage: 'verify <domain>',
        description: 'Verify the DNS records of a domain (name or id) now',
        options: [inAccount, asJson],
        help: `
Queries the configured resolvers without caches, and records the result as the daemon does. "missing" and "wrong"
require a change in the zone. "unknown" means that a DNS server failed: the previous result remains.
Exits 0 when the domain is verified, 3 when it is not.`,
        run: async (text, { account }) => {
          const domains = await openDomains(context);
          const { account_id: accountId, domain_id: domainId } = await findDomain(context, text, account);
          const { domain, checks } = context.accepted(await domains.verify(accountId, domainId), FAILED);
          const message = verificationMessage(domain, checks);
          context.show({ message, ...detailsOf(domain), checks }, () => [
            message,
            '',
            ...checks.flatMap(checkLines),
          ]);
          if (domain.status !== 'SUCCESS') context.partial();
        },
      }),
      createCommand(context, {
        usage: 'delete <domain>',
        description: 'Delete a domain (name or id) with its keys and queued messages',
        options: [inAccount, withoutAsking, asJson],
        run: async (text, { account, yes }) => {
          const domains = await openDomains(context);
          const { tables } = await context.open();
          const {
            domain_id: domainId,
            name,
            account_id: accountId,
          } = await findDomain(context, text, account);
          const queued = tables.queue.countOfDomain(domainId);
          const messages = `${queued} queued ${queued === 1 ? 'message' : 'messages'}`;
          const question = `Delete ${name} (${domainId}) of ${accountId}? ${messages} will be dropped.`;
          if (yes !== true && !(await context.confirm(question))) return;
          context.accepted(await domains.remove(accountId, domainId), FAILED);
          context.show({ domainId, domain: name }, () => `${name} (${domainId}) is deleted`);
        },
      }),
      createCommand(context, {
        usage: 'rotate-dkim <domain>',
        description: 'Rotate the DKIM key of a domain (name or id)',
        options: [inAccount, format, asJson],
        run: async (text, options) => {
          const domains = await openDomains(context);
          const { account_id, domain_id, name } = await findDomain(context, text, options.account);
          const { domain, isManaged, started } = context.accepted(
            await domains.rotateDkim(account_id, domain_id),
            FAILED,
          );
          const message = isManaged
            ? `The DKIM keys of ${name} in the platform's zone are rotated at the next check: nothing needs to be published.`
            : started
              ? `The rotation of the DKIM key of ${name} has started: publish the new record. The old key signs until the new record is found.`
              : `A rotation of the DKIM key of ${name} is already in progress.`;
          const records = domains.records(domain);
          printDomain(context, options.format, {
            json: { message, ...detailsOf(domain), ...records },
            bind: [domainZoneFile(records)],
            table: [message, '', domainRecordTable(records)],
          });
        },
      }),
    ],
  });
}

async function addDomain(
  context: CliContext,
  name: string,
  options: OptionValues<typeof addOptions>,
): Promise<void> {
  const domains = await openDomains(context);
  const { tables, config } = await context.open({ account: options.account });
  const { domain: registered, created } = context.accepted(
    await domains.register(options.account, {
      domain: name,
      useCaseId: options.useCase,
      groupId: options.group,
    }),
    FAILED,
  );
  await domains.provisionSecondary(registered.domain_id);
  const domain = tables.domains.byId(registered.domain_id) ?? registered;
  const records = domains.records(domain);
  const notes = created
    ? [
        `The platform's zone has a new record, ${altDkimHost(platformOf(config), domain.alt_domain_id)}: publish the output of "postrider zone" again.`,
      ]
    : [];
  const what = created ? 'is registered' : 'was already registered';
  printDomain(context, options.format, {
    json: { ...detailsOf(domain), ...records, notes },
    bind: [...notes.map((note) => `; ${note}`), domainZoneFile(records)],
    table: [`${domain.name} ${what}: ${domain.domain_id}`, ...notes, '', domainRecordTable(records)],
  });
}

async function showDomain(
  context: CliContext,
  name: string,
  options: OptionValues<typeof showOptions>,
): Promise<void> {
  const domains = await openDomains(context);
  const { tables, clock } = await context.open();
  const domain = await findDomain(context, name, options.account);
  const records = domains.records(domain);
  const dmarc = dmarcProgress(tables.dmarcReports.history(domain.name), clock.now());
  const dkimKeys = presentKeys(tables.dkimKeys.of(domain.domain_id));
  const keys = dkimKeys.map(
    ({ selector, lane, algorithm, state, since, publishedBy }) =>
      `  ${selector}  ${lane}  ${algorithm}  ${state} since ${since}  published by ${publishedBy}`,
  );
  const text = ['DKIM keys', ...keys, '', dmarc, '', domainRecordTable(records)];
  printDomain(context, options.format, {
    json: { ...detailsOf(domain), dkimKeys, ...records, dmarcProgress: dmarc },
    bind: [domainZoneFile(records)],
    table: [...fieldLines(detailsOf(domain)), '', ...text],
  });
}

/** Prints a domain with its records. */
function printDomain(
  context: CliContext,
  given: RecordFormat | undefined,
  formats: { json: object; bind: readonly string[]; table: readonly string[] },
): void {
  const chosen = given ?? (context.json ? 'json' : 'table');
  if (chosen === 'json') context.printJson(formats.json);
  else context.print(formats[chosen].join('\n'));
}

/** Finds a domain by id or name; fails unless exactly one matches. */
async function findDomain(
  context: CliContext,
  text: string,
  account: string | undefined,
): Promise<DomainRow> {
  const { tables } = await context.open({ account });
  const name = normalizeDomain(text);
  const found = tables.domains
    .list(account ?? null)
    .filter((row) => row.domain_id === text || row.name === name);
  const [only, ...others] = found;
  if (only === undefined) return context.fail(`There is no domain ${text}`);
  if (others.length === 0) return only;
  const ids = found.map(
    (row) => `  ${row.domain_id}  ${useCaseId(row.use_case, row.region)}  ${row.account_id}`,
  );
  return context.usage(
    `${text} is registered ${found.length} times; specify one by its id:\n${ids.join('\n')}`,
  );
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
