import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import {
  type Account,
  type AccountPatch,
  type Accounts,
  accountInputSchema,
  accountPatchSchema,
  createAccounts,
} from '../accounts/accounts.ts';
import {
  changeLimits,
  LIMIT_NAMES,
  type LimitChanges,
  type LimitName,
  readLimits,
} from '../accounts/limits.ts';
import { ADDRESS_FORM, parsePostalAddress } from '../accounts/postal-address.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import { rampStatus } from '../delivery/ramp.ts';
import { parseInput } from '../http/validation/parse.ts';
import { linkPrefix } from '../mail/tokens.ts';
import { DATABASE_FILE } from '../store/database/connection.ts';
import { transferCommands } from './account-transfer.ts';
import { asJson, createCommand, createGroup, flagOf, type OptionValues, option } from './command.ts';
import type { CliContext } from './context.ts';

const name = option('--name <name>', 'name of the account');
const company = option('--company <name>', 'company name in the footer of every message');
const address = option(
  '--address <line>',
  'postal address in the footer of every message, parts separated by commas',
);

const createOptions = [
  option('--name <name>', 'name of the account', { required: true }),
  company,
  address,
  option('--id <id>', 'account id (default: generated)'),
  option('--json', 'print JSON (always the case)'),
] as const;
const updateOptions = [
  name,
  company,
  address,
  option('--abuse-email <address>', 'where abuse reports are sent'),
  option('--no-abuse-email', 'remove the address for abuse reports'),
  option('--logo-url <url>', 'logo on the public pages'),
  option('--no-logo-url', 'remove the logo'),
  asJson,
] as const;
type UpdateOptions = OptionValues<typeof updateOptions>;

/** `postrider account create|list|update|limits|ramp|disable|enable|export|import`. */
export function accountCommand(context: CliContext): Command {
  return createGroup('account', 'Manage accounts', {
    help: `
An address is one line, its parts separated by commas: ${ADDRESS_FORM}.
The postal code may also be given with the city ("10115 Berlin") or the region ("IL 62701").

Examples:
  postrider account create --name Shop --company "Shop Ltd." --address "1 Main St, Springfield, IL, 62701, US"
  postrider account update acct_8f3k2m9x0q1z --address "Musterstr. 5, 10115 Berlin, Germany"
  postrider account disable acct_8f3k2m9x0q1z`,
    commands: [
      createCommand(context, {
        usage: 'create',
        description: 'Create an account; prints its id and three new keys as JSON, shown once',
        options: createOptions,
        run: (options) => create(context, options),
      }),
      createCommand(context, {
        usage: 'list',
        description: 'List accounts, oldest first',
        options: [asJson],
        run: async () => {
          const accounts = createAccounts(await context.open()).list();
          context.printRows(
            accounts.map(record),
            'There are no accounts. Create one with "postrider account create"',
            (account) => ({
              account: account.accountId,
              name: account.name,
              status: account.status,
              company: account.companyName,
              created: account.createdAt,
            }),
          );
        },
      }),
      createCommand(context, {
        usage: 'update <id>',
        description: 'Update an account',
        options: updateOptions,
        run: (id, options) => update(context, id, options),
      }),
      limitsCommand(context),
      rampCommand(context),
      ...transferCommands(context),
      ...SWITCHES.map(({ verb, status, description }) =>
        createCommand(context, {
          usage: `${verb} <id>`,
          description,
          options: [asJson],
          run: (id) => change(context, (accounts) => accounts.setStatus(id, status)),
        }),
      ),
    ],
  });
}

const SWITCHES = [
  {
    verb: 'disable',
    status: 'disabled',
    description: 'Disable an account: reject its requests, hold its queued messages and campaigns',
  },
  { verb: 'enable', status: 'active', description: 'Enable a disabled account: release what is held' },
] as const;

async function create(context: CliContext, given: OptionValues<typeof createOptions>): Promise<void> {
  const input = context.accepted(
    parseInput(
      accountInputSchema,
      {
        name: given.name,
        companyName: given.company,
        companyAddress: parseAddress(context, given.address),
        accountId: given.id,
      },
      'account',
    ),
  );
  const { dir } = context.config().data;
  if (!existsSync(join(dir, DATABASE_FILE)))
    context.note(`Creating a new installation, because there is no database in ${dir}`);
  const accounts = createAccounts(await context.open({ create: true }));
  const created = context.accepted(await accounts.create(input));
  context.printJson({ accountId: created.account.accountId, keys: created.keys });
}

async function update(context: CliContext, id: string, options: UpdateOptions): Promise<void> {
  for (const [key, message] of EMPTY_VALUES) {
    const value = options[key];
    if (typeof value === 'string' && value.trim() === '') context.usage(message);
  }
  const changes = {
    name: options.name,
    companyName: options.company,
    companyAddress: parseAddress(context, options.address),
    abuseEmail: orNull(options.abuseEmail),
    logoUrl: orNull(options.logoUrl),
  };
  if (Object.values(changes).every((value) => value === undefined))
    context.usage('Nothing to change: specify at least one option');
  const patch = parseInput(accountPatchSchema, changes, 'account');
  await change(context, async (accounts) => (isRefusal(patch) ? patch : accounts.update(id, patch)));
}

async function change(
  context: CliContext,
  work: (accounts: Accounts) => Promise<Account | Refusal>,
): Promise<void> {
  const account = context.accepted(await work(createAccounts(await context.open())));
  context.show(record(account), () => `Account ${account.accountId} (${account.name}) is ${account.status}`);
}

/** `postrider account ramp`. */
function rampCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'ramp <id>',
    description: 'Show, skip or apply the ramp of a new account and its new domains (reputation.ramp)',
    argument: 'the account',
    options: [
      option('--skip', 'send without the limits of the ramp'),
      option('--apply', 'apply it again'),
      asJson,
    ],
    run: async (id, { skip, apply }) => {
      if (skip === true && apply === true) context.usage('Use either --skip or --apply');
      const { config, clock, tables, writer } = await context.open({ account: id });
      if (skip === true || apply === true)
        await writer.run((tx) => tx.accountLimits.skipRamp(id, skip === true ? 1 : null));
      context.printRows(
        rampStatus({ config, tables }, id, clock.now()),
        'No ramp limits the account',
        ({ domain, day, days, limit, used }) => ({
          of: domain ?? 'the account',
          day: `${day} of ${days}`,
          used,
          limit,
        }),
      );
    },
  });
}

/** `postrider account limits`. */
function limitsCommand(context: CliContext): Command {
  const command = createCommand(context, {
    usage: 'limits <id>',
    description: 'Show or set the limits of an account; the daemon applies changes immediately',
    argument: 'the account',
    options: [
      asJson,
      option('--default [names...]', 'return the named limits, or all, to the configured defaults'),
    ],
    help: `
A value is a whole number or "unlimited". Defaults are set in [limits.account] of the configuration.

Examples:
  postrider account limits acct_8f3k2m9x0q1z
  postrider account limits acct_8f3k2m9x0q1z --messages-per-hour 1000 --contacts 50000
  postrider account limits acct_8f3k2m9x0q1z --default messages-per-hour
  postrider account limits acct_8f3k2m9x0q1z --default`,
    run: (id, options: LimitOptions) => limits(context, id, options),
  });
  for (const limit of LIMIT_NAMES) command.option(`--${flagOf(limit)} <n>`, LIMIT_HELP[limit]);
  return command;
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

type LimitOptions = Partial<Record<LimitName, string>> & { default: true | string[] | undefined };

async function limits(context: CliContext, id: string, options: LimitOptions): Promise<void> {
  const changes = limitChanges(options);
  if (typeof changes === 'string') return context.usage(changes);
  const deps = await context.open({ account: id });
  const { tables, clock, config } = deps;
  if (Object.keys(changes).length > 0) {
    const refusal = await changeLimits(deps, id, changes);
    if (refusal !== null) context.fail(refusal.message);
  }
  const readings = readLimits(tables, config.limits.account, id, clock.now());
  if (context.json)
    return context.printJson({
      accountId: id,
      limits: Object.fromEntries(
        readings.map(({ limit, value, isDefault, used }) => [limit, { value, isDefault, used }]),
      ),
    });
  context.printRows(readings, '', ({ limit, value, isDefault, used }) => ({
    limit: flagOf(limit),
    value: value ?? 'unlimited',
    set: isDefault ? 'default' : 'account',
    used: used ?? '',
  }));
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

function parseAddress(context: CliContext, line: string | undefined): AccountPatch['companyAddress'] {
  if (line === undefined) return undefined;
  return parsePostalAddress(line) ?? context.usage(`--address must be: ${ADDRESS_FORM}`);
}

/** A value that a `--no-…` option removes is null. */
function orNull(value: string | boolean | undefined): string | null | undefined {
  return typeof value === 'boolean' ? null : value;
}

function record(account: Account) {
  // Load balancers route links by it.
  return { ...account, linkPrefix: linkPrefix(account.accountId) };
}
