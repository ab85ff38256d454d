import { Command } from 'commander';
import { type ApiKey, createKeys, SCOPES } from '../accounts/keys.ts';
import { iso } from '../core/clock.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import type { CliContext } from './context.ts';

/** `postrider key create|list|revoke`. */
export function keyCommand(context: CliContext): Command {
  const command = new Command('key').description('Manage API keys').addHelpText(
    'after',
    `
Scopes: ${SCOPES.join(', ')}.

Examples:
  postrider key create --account acct_8f3k2m9x0q1z --scope marketing,transactional --name shop
  postrider key create --account acct_8f3k2m9x0q1z --scope transactional --allow-ip 192.0.2.0/24 --allow-from shop.example
  postrider key revoke key_1769860800000_4kx0m2p9q8zt`,
  );
  command
    .command('create')
    .description('Create a key; prints it as JSON, its secret is shown once')
    .requiredOption('--account <id>', 'account of the key')
    .requiredOption('--scope <scopes...>', `permissions, separated by commas: ${SCOPES.join(', ')}`)
    .option('--name <name>', 'name shown in lists', '')
    .option('--allow-ip <cidr...>', 'addresses and networks that may use it (default: any)')
    .option('--allow-from <domain...>', 'From domains that it may send for (default: all of the account)')
    .option('--no-essential', 'refuse mail marked as essential, which ignores a transactional opt-out')
    .option(
      '--strict-compliance',
      'refuse mail submitted over SMTP without the compliance variables, instead of appending the footer',
    )
    .option('--json', 'print JSON (always the case)')
    .action((options: CreateOptions) => create(context, options));
  command
    .command('list')
    .description('List keys, revoked ones included')
    .option('--account <id>', 'only this account')
    .option('--json', 'print JSON')
    .action((options: ListOptions) => list(context, options));
  command
    .command('revoke <keyId>')
    .description('Revoke a key, immediately and permanently')
    .option('--json', 'print JSON')
    .action((keyId: string, options: { json?: boolean }) => revoke(context, keyId, options.json === true));
  return command;
}

interface CreateOptions {
  account: string;
  scope: string[];
  name: string;
  allowIp?: string[];
  allowFrom?: string[];
  essential: boolean;
  strictCompliance?: boolean;
}

interface ListOptions {
  account?: string;
  json?: boolean;
}

async function create(context: CliContext, options: CreateOptions): Promise<void> {
  const house = await context.open();
  const made = await createKeys(house).create({
    accountId: options.account,
    name: options.name,
    scopes: parts(options.scope),
    allowIps: parts(options.allowIp),
    allowFrom: parts(options.allowFrom),
    allowEssential: options.essential,
    strictCompliance: options.strictCompliance === true,
  });
  if (isRefusal(made)) return say(context, made);
  context.printJson({ ...record(made.key), key: made.secret });
  for (const domain of made.key.allowFrom) {
    if (house.tables.domains.named(options.account, domain).length > 0) continue;
    context.note(
      `warning: ${domain} is not registered in account ${options.account}: the key cannot send from it until "postrider domain add" is done`,
    );
  }
}

async function list(context: CliContext, { account, json }: ListOptions): Promise<void> {
  const { tables, ...deps } = await context.open();
  if (account !== undefined && tables.accounts.get(account) === null) {
    context.fail(`there is no account ${account}`);
    return;
  }
  const keys = createKeys({ tables, ...deps }).list(account ?? null);
  if (json === true) context.printJson(keys.map(record));
  else {
    const rows = keys.map((key) => ({
      key: key.keyId,
      account: key.accountId,
      name: key.name,
      scopes: key.scopes.join(', '),
      'tied to': [...key.allowIps, ...key.allowFrom].join(', '),
      limits: limitsOf(key).join(', '),
      created: iso(key.createdAt),
      revoked: key.revokedAt === null ? '' : iso(key.revokedAt),
    }));
    context.printRows(rows, { json: false, empty: 'there are no keys; create one with: key create' });
  }
}

async function revoke(context: CliContext, keyId: string, json: boolean): Promise<void> {
  const key = await createKeys(await context.open()).revoke(keyId);
  if (isRefusal(key)) say(context, key);
  else if (json) context.printJson(record(key));
  else context.print(`key ${key.keyId} is revoked`);
}

/** What the key is barred from, in the words of its options. */
function limitsOf({ allowEssential, strictCompliance }: ApiKey): string[] {
  return [...(allowEssential ? [] : ['no-essential']), ...(strictCompliance ? ['strict-compliance'] : [])];
}

/** Bad input is bad usage; the rest failed. */
function say(context: CliContext, refusal: Refusal): void {
  if (refusal.code === 'VALIDATION_ERROR') context.usage(refusal.message);
  else context.fail(refusal.message);
}

/** Options may be repeated and joined by commas alike. */
function parts(values: string[] | undefined): string[] {
  return (values ?? []).flatMap((value) => value.split(',')).filter((value) => value.trim() !== '');
}

function record({ createdAt, revokedAt, ...key }: ApiKey): object {
  return { ...key, createdAt: iso(createdAt), revokedAt: revokedAt === null ? null : iso(revokedAt) };
}
