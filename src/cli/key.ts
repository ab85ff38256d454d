import { Command } from 'commander';
import { type ApiKey, createKeys, keyHash, SCOPES } from '../accounts/keys.ts';
import { iso } from '../core/clock.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import { isRefusal } from '../core/refusal.ts';
import type { Tables } from '../store/tables.ts';
import type { CliContext } from './context.ts';

/** `postrider key create|list|revoke`. */
export function keyCommand(context: CliContext): Command {
  const command = new Command('key').description('Manage API keys').addHelpText(
    'after',
    `
Scopes: ${SCOPES.join(', ')}. A key with the scope "operator" can read the state of the whole installation;
create a separate key for it.

Examples:
  postrider key create --account acct_8f3k2m9x0q1z --scope marketing,transactional --name shop
  postrider key create --account acct_8f3k2m9x0q1z --scope transactional --allow-ip 192.0.2.0/24 --allow-from shop.example
  postrider key create --account acct_8f3k2m9x0q1z --scope operator --name monitoring --allow-ip 127.0.0.1
  postrider key list --secret - < leaked.log
  postrider key revoke key_1769860800000_4kx0m2p9q8zt`,
  );
  command
    .command('create')
    .description('Create an API key; prints it as JSON, with its secret, which is shown once')
    .requiredOption('--account <id>', 'account of the key')
    .requiredOption('--scope <scopes...>', `permissions, separated by commas: ${SCOPES.join(', ')}`)
    .option('--name <name>', 'name shown in lists', '')
    .option('--allow-ip <cidr...>', 'addresses and networks that may use the key (default: any)')
    .option('--allow-from <domain...>', 'From domains that the key may use (default: all of the account)')
    .option('--no-essential', 'reject messages marked as essential, which ignore a transactional opt-out')
    .option(
      '--strict-compliance',
      'reject messages submitted over SMTP without compliance variables, instead of appending the footer',
    )
    .option('--json', 'print JSON (always the case)')
    .action((options: CreateOptions) => create(context, options));
  command
    .command('list')
    .description('List API keys, including revoked ones')
    .option('--account <id>', 'only this account')
    .option(
      '--secret <text>',
      'only keys whose secret is in this text; "-" reads standard input, which leaves no trace in the shell history',
    )
    .option('--json', 'print JSON')
    .action((options: ListOptions) => list(context, options));
  command
    .command('revoke <id>')
    .description('Revoke an API key immediately and permanently')
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
  secret?: string;
  json?: boolean;
}

async function create(context: CliContext, options: CreateOptions): Promise<void> {
  const deps = await context.open();
  const created = await createKeys(deps).create({
    accountId: options.account,
    name: options.name,
    scopes: parts(options.scope),
    allowIps: parts(options.allowIp),
    allowFrom: parts(options.allowFrom),
    allowEssential: options.essential,
    strictCompliance: options.strictCompliance === true,
  });
  if (isRefusal(created)) return context.refused(created);
  context.printJson({ ...record(created.key), key: created.secret });
  for (const domain of created.key.allowFrom) {
    if (deps.tables.domains.named(options.account, domain).length > 0) continue;
    context.note(
      `warning: ${domain} is not registered in account ${options.account}: add it with "postrider domain add" before you send from it with this key`,
    );
  }
}

async function list(context: CliContext, { account, secret, json }: ListOptions): Promise<void> {
  const { tables, ...deps } = await context.open();
  if (account !== undefined && tables.accounts.get(account) === null) {
    context.fail(`There is no account ${account}`);
    return;
  }
  const all = createKeys({ tables, ...deps }).list(account ?? null);
  const keys = secret === undefined ? all : await leaked(context, tables, all, secret);
  if (keys === null) return;
  if (json === true) context.printJson(keys.map(record));
  else {
    const rows = keys.map((key) => ({
      key: key.keyId,
      account: key.accountId,
      name: key.name,
      scopes: key.scopes.join(', '),
      allowed: [...key.allowIps, ...key.allowFrom].join(', '),
      restrictions: restrictionsOf(key).join(', '),
      created: iso(key.createdAt),
      used: key.lastUsedAt === null ? '' : iso(key.lastUsedAt),
      revoked: key.revokedAt === null ? '' : iso(key.revokedAt),
    }));
    context.printRows(rows, { json: false, empty: 'There are no keys; create one with: key create' });
  }
}

/** The keys whose secrets are in the text; null: there are none, which was reported. */
async function leaked(
  context: CliContext,
  tables: Tables,
  keys: readonly ApiKey[],
  given: string,
): Promise<ApiKey[] | null> {
  const secrets = given === '-' ? await secretsOf(process.stdin) : secretsIn(given);
  if (secrets.size === 0) {
    context.usage(
      'The text contains no API key: "pr_" and 43 letters and digits. A part of a key cannot be searched, because only its hash is stored',
    );
    return null;
  }
  const ids = new Set([...secrets].map((secret) => tables.apiKeys.byHash(keyHash(secret))?.key_id));
  const found = keys.filter(({ keyId }) => ids.has(keyId));
  if (found.length > 0) return found;
  context.fail(
    'No key has this secret: it belongs to another account or installation, or was revoked, and deleted after limits.eventDays',
  );
  return null;
}

/** Secrets in a stream of any length, such as a log or a patch; throws OperatorFault for more than MAX_SECRETS. */
async function secretsOf(input: AsyncIterable<Buffer>): Promise<Set<string>> {
  const found = new Set<string>();
  let rest = '';
  for await (const chunk of input) {
    const text = rest + chunk.toString('latin1');
    for (const secret of secretsIn(text)) found.add(secret);
    if (found.size > MAX_SECRETS)
      throw new OperatorFault(`The text contains more than ${MAX_SECRETS} keys: search it in parts`);
    rest = text.slice(-SECRET_LENGTH);
  }
  return found;
}

function secretsIn(text: string): Set<string> {
  return new Set(text.match(/pr_[0-9A-Za-z]{43}(?![0-9A-Za-z])/g));
}

/** `pr_` and 43 characters (core/ids). */
const SECRET_LENGTH = 46;
const MAX_SECRETS = 1000;

async function revoke(context: CliContext, keyId: string, json: boolean): Promise<void> {
  const key = await createKeys(await context.open()).revoke(keyId);
  if (isRefusal(key)) context.refused(key);
  else if (json) context.printJson(record(key));
  else context.print(`Key ${key.keyId} is revoked`);
}

/** Restrictions of the key, named like its options. */
function restrictionsOf({ allowEssential, strictCompliance }: ApiKey): string[] {
  return [...(allowEssential ? [] : ['no-essential']), ...(strictCompliance ? ['strict-compliance'] : [])];
}

/** Options may be repeated or list several values with commas. */
function parts(values: string[] | undefined): string[] {
  return (values ?? []).flatMap((value) => value.split(',')).filter((value) => value.trim() !== '');
}

function record({ createdAt, revokedAt, lastUsedAt, ...key }: ApiKey): object {
  return {
    ...key,
    createdAt: iso(createdAt),
    revokedAt: revokedAt === null ? null : iso(revokedAt),
    lastUsedAt: lastUsedAt === null ? null : iso(lastUsedAt),
  };
}
