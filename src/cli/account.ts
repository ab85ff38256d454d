import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { type AccountPatch, accountInputSchema, accountPatchSchema } from '../accounts/account-form.ts';
import { type Account, type Accounts, createAccounts } from '../accounts/accounts.ts';
import {
  changeLimits,
  LIMIT_NAMES,
  type LimitChanges,
  type LimitName,
  readLimits,
} from '../accounts/limits.ts';
import { ADDRESS_FORM, parsePostalAddress } from '../accounts/postal-address.ts';
import { iso } from '../core/clock.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import { parseInput } from '../http/validation/parse.ts';
import { linkPrefix } from '../mail/tokens.ts';
import { DATABASE_FILE } from '../store/database/connection.ts';
import { addTransferCommands } from './account-transfer.ts';
import type { CliContext } from './context.ts';

/** `postrider account create|list|update|limits|disable|enable|export|import`. */
export function accountCommand(context: CliContext): Command {
  const command = new Command('account').description('Manage accounts').addHelpText(
    'after',
    `
An address is one line, its parts separated by commas: ${ADDRESS_FORM}.
The postal code may also be given with the city ("10115 Berlin") or the region ("IL 62701").

Examples:
  postrider account create --name Shop --company "Shop Ltd." --address "1 Main St, Springfield, IL, 62701, US"
  postrider account update acct_8f3k2m9x0q1z --address "Musterstr. 5, 10115 Berlin, Germany"
  postrider account disable acct_8f3k2m9x0q1z`,
  );
  command
    .command('create')
    .description('Create an account; prints its id and three new keys as JSON, shown once')
    .requiredOption('--name <name>', 'name of the account')
    .option('--company <name>', 'company name in the footer of every message')
    .option('--address <line>', 'postal address in the footer of every message, parts separated by commas')
    .option('--id <id>', 'account id (default: generated)')
    .option('--json', 'print JSON (always the case)')
    .action((options: CreateOptions) => create(context, options));
  command
    .command('list')
    .description('List accounts, oldest first')
    .option('--json', 'print JSON')
    .action((options: JsonOption) => list(context, options));
  command
    .command('update <id>')
    .description('Update an account')
    .option('--name <name>', 'name of the account')
    .option('--company <name>', 'company name in the footer of every message')
    .option('--address <line>', 'postal address in the footer of every message, parts separated by commas')
    .option('--abuse-email <address>', 'where abuse reports are sent')
    .option('--no-abuse-email', 'remove the address for abuse reports')
    .option('--logo-url <url>', 'logo on the public pages')
    .option('--no-logo-url', 'remove the logo')
    .option('--json', 'print JSON')
    .action((id: string, options: UpdateOptions) => update(context, id, options));
  command.addCommand(limitsCommand(context));
  addTransferCommands(command, context);
  for (const { verb, status, description } of SWITCHES) {
    command
      .command(`${verb} <id>`)
      .description(description)
      .option('--json', 'print JSON')
      .action((id: string, options: JsonOption) =>
        change(context, options, (accounts) => accounts.setStatus(id, status)),
      );
  }
  return command;
}

const SWITCHES = [
  {
    verb: 'disable',
    status: 'disabled',
    description: 'Disable an account: reject its requests, hold its queued messages and campaigns',
  },
  { verb: 'enable', status: 'active', description: 'Enable a disabled account: release what is held' },
] as const;

interface JsonOption {
  json?: boolean;
}

interface CreateOptions extends JsonOption {
  name: string;
  company?: string;
  address?: string;
  id?: string;
}

interface UpdateOptions extends JsonOption {
  name?: string;
  company?: string;
  address?: string;
  /** False: --no-abuse-email. */
  abuseEmail?: string | false;
  logoUrl?: string | false;
}

async function create(context: CliContext, options: CreateOptions): Promise<void> {
  const address = options.address === undefined ? undefined : parsePostalAddress(options.address);
  if (address === null) {
    context.usage(BAD_ADDRESS);
    return;
  }
  const { name, company: companyName, id: accountId } = options;
  const input = parseInput(
    accountInputSchema,
    { name, companyName, companyAddress: address, accountId },
    'account',
  );
  const { dir } = context.config().data;
  if (!isRefusal(input) && !existsSync(join(dir, DATABASE_FILE)))
    context.note(`Creating a new installation, because there is no database in ${dir}`);
  const created = isRefusal(input)
    ? input
    : await createAccounts(await context.open({ create: true })).create(input);
  if (isRefusal(created)) context.refused(created);
  else context.printJson({ accountId: created.account.accountId, keys: created.keys });
}

async function list(context: CliContext, { json }: JsonOption): Promise<void> {
  const accounts = createAccounts(await context.open()).list();
  if (json === true) context.printJson(accounts.map(record));
  else {
    const rows = accounts.map(({ accountId, name, status, companyName, createdAt }) => ({
      account: accountId,
      name,
      status,
      company: companyName,
      created: iso(createdAt),
    }));
    context.printRows(rows, {
      json: false,
      empty: 'There are no accounts. Create one with "postrider account create"',
    });
  }
}

async function update(context: CliContext, id: string, options: UpdateOptions): Promise<void> {
  const empty = EMPTY_VALUES.find(
    ([name]) => typeof options[name] === 'string' && options[name].trim() === '',
  );
  if (empty !== undefined) return context.usage(empty[1]);
  const address = addressChange(options.address);
  const changes = {
    name: options.name,
    companyName: options.company,
    companyAddress: address,
    abuseEmail: orNull(options.abuseEmail),
    logoUrl: orNull(options.logoUrl),
  };
  if (address === 'bad') context.usage(BAD_ADDRESS);
  else if (Object.values(changes).every((value) => value === undefined)) {
    context.usage('Nothing to change: specify at least one option');
  } else {
    const patch = parseInput(accountPatchSchema, changes, 'account');
    await change(context, options, (accounts) => (isRefusal(patch) ? patch : accounts.update(id, patch)));
  }
}

async function change(
  context: CliContext,
  { json }: JsonOption,
  work: (accounts: Accounts) => Promise<Account | Refusal> | Refusal,
): Promise<void> {
  const account = await work(createAccounts(await context.open()));
  if (isRefusal(account)) context.refused(account);
  else if (json === true) context.printJson(record(account));
  else context.print(`Account ${account.accountId} (${account.name}) is ${account.status}`);
}

/** `postrider account limits`. */
function limitsCommand(context: CliContext): Command {
  const command = new Command('limits')
    .argument('<id>', 'the account')
    .description('Show or set the limits of an account; the daemon applies changes immediately')
    .option('--json', 'print JSON')
    .option('--default [names...]', 'return the named limits, or all, to the configured defaults')
    .addHelpText(
      'after',
      `
A value is a whole number or "unlimited". Defaults are set in [limits.account] of the configuration.

Examples:
  postrider account limits acct_8f3k2m9x0q1z
  postrider account limits acct_8f3k2m9x0q1z --messages-per-hour 1000 --contacts 50000
  postrider account limits acct_8f3k2m9x0q1z --default messages-per-hour
  postrider account limits acct_8f3k2m9x0q1z --default`,
    );
  for (const name of LIMIT_NAMES) command.option(`--${flagOf(name)} <n>`, LIMIT_HELP[name]);
  return command.action((id: string, options: LimitOptions) => limits(context, id, options));
}

const LIMIT_HELP: Record<LimitName, string> = {
  domains: 'domains',
  webhooks: 'webhooks',
  templates: 'templates, with compliance templates',
  contacts: 'contacts',
  messagesPerHour: 'messages in any 60 minutes; each recipient counts',
  messagesPerDay: 'messages in any 24 hours; each recipient counts',
  concurrentRequests: 'API requests processed at the same time',
  storedBytes: 'bytes of contacts, templates, campaigns, groups and contents of messages',
  campaigns: 'campaigns',
  subscriptionGroups: 'subscription groups',
  suppressions: 'suppressions',
};

type LimitOptions = JsonOption & Partial<Record<LimitName, string>> & { default?: true | string[] };

async function limits(context: CliContext, id: string, options: LimitOptions): Promise<void> {
  const changes = limitChanges(options);
  if (typeof changes === 'string') return context.usage(changes);
  const deps = await context.open();
  const { tables, clock, config } = deps;
  if (tables.accounts.get(id) === null) return context.fail(`There is no account ${id}`);
  if (Object.keys(changes).length > 0) {
    const refusal = await changeLimits(deps, id, changes);
    if (refusal !== null) return context.fail(refusal.message);
  }
  const readings = readLimits(tables, config.limits.account, id, clock.now());
  if (options.json === true) {
    context.printJson({
      accountId: id,
      limits: Object.fromEntries(
        readings.map(({ limit, value, isDefault, used }) => [limit, { value, isDefault, used }]),
      ),
    });
    return;
  }
  const rows = readings.map(({ limit, value, isDefault, used }) => ({
    limit: flagOf(limit),
    value: value ?? 'unlimited',
    set: isDefault ? 'default' : 'account',
    used: used ?? '',
  }));
  context.printRows(rows, { json: false, empty: '' });
}

/** The changes of the options, or a message about what is wrong with them. */
function limitChanges(options: LimitOptions): LimitChanges | string {
  const changes: LimitChanges = {};
  const toDefault = options.default === true ? LIMIT_NAMES.map(flagOf) : (options.default ?? []);
  for (const flag of toDefault) {
    const name = LIMIT_NAMES.find((each) => flagOf(each) === flag);
    if (name === undefined)
      return `--default: there is no limit "${flag}"; limits are ${LIMIT_NAMES.map(flagOf).join(', ')}`;
    changes[name] = 'default';
  }
  for (const name of LIMIT_NAMES) {
    const text = options[name];
    if (text === undefined) continue;
    const min = name === 'concurrentRequests' ? 1 : 0;
    if (text === 'unlimited') changes[name] = null;
    else if (/^\d{1,15}$/.test(text) && Number(text) >= min) changes[name] = Number(text);
    else return `--${flagOf(name)} must be a whole number of at least ${min}, or "unlimited"`;
  }
  return changes;
}

/** `messagesPerHour` is `messages-per-hour` on the command line. */
function flagOf(name: LimitName): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Options that must not be empty, with the error message. */
const EMPTY_VALUES: readonly (readonly [keyof UpdateOptions, string])[] = [
  ['name', '--name must not be empty'],
  [
    'company',
    '--company must not be empty: the footer of every message names the company. Give the new name instead',
  ],
  [
    'address',
    '--address must not be empty: a postal address is required in the footer of every message. Give the new address instead',
  ],
  ['abuseEmail', '--abuse-email must not be empty: use --no-abuse-email to remove it'],
  ['logoUrl', '--logo-url must not be empty: use --no-logo-url to remove it'],
];

const BAD_ADDRESS = `--address must be: ${ADDRESS_FORM}`;

function addressChange(line: string | undefined): AccountPatch['companyAddress'] | 'bad' {
  if (line === undefined) return undefined;
  return parsePostalAddress(line) ?? 'bad';
}

/** A value that a `--no-…` option removes is null. */
function orNull(value: string | false | undefined): string | null | undefined {
  return value === false ? null : value;
}

function record(account: Account): object {
  return {
    ...account,
    // Load balancers route links by it.
    linkPrefix: linkPrefix(account.accountId),
    createdAt: iso(account.createdAt),
    updatedAt: iso(account.updatedAt),
  };
}
