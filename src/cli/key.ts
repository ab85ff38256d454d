import type { Command } from 'commander';
import { type ApiKey, createKeys, keyHash, SCOPES } from '../accounts/keys.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import type { Tables } from '../store/tables.ts';
import { asJson, createCommand, createGroup, option } from './command.ts';
import type { CliContext } from './context.ts';
import { rotateMasterCommand } from './master-key.ts';

/** `postrider key create|list|revoke|rotate-master`. */
export function keyCommand(context: CliContext): Command {
  return createGroup('key', 'Manage API keys and the master key', {
    help: `
Scopes: ${SCOPES.join(', ')}. A key with the scope "operator" can read the state of the whole installation;
create a separate key for it.

Examples:
  postrider key create --account acct_8f3k2m9x0q1z --scope marketing,transactional --name shop
  postrider key create --account acct_8f3k2m9x0q1z --scope transactional --allow-ip 192.0.2.0/24 --allow-from shop.example
  postrider key create --account acct_8f3k2m9x0q1z --scope transactional --sigv4
  postrider key create --account acct_8f3k2m9x0q1z --scope operator --name monitoring --allow-ip 127.0.0.1
  postrider key list --secret - < leaked.log
  postrider key revoke key_1769860800000_4kx0m2p9q8zt
  postrider key rotate-master`,
    commands: [
      createCommand(context, {
        usage: 'create',
        description: 'Create an API key; prints it as JSON, with its secret, which is shown once',
        options: [
          option('--account <id>', 'account of the key', { required: true }),
          option('--scope <scopes...>', `permissions, separated by commas: ${SCOPES.join(', ')}`, {
            required: true,
          }),
          option('--name <name>', 'name shown in lists', { default: '' }),
          option('--allow-ip <cidr...>', 'addresses and networks that may use the key (default: any)'),
          option(
            '--allow-from <domain...>',
            'From domains that the key may use (default: all of the account)',
          ),
          option(
            '--no-essential',
            'reject messages marked as essential, which ignore a transactional opt-out',
          ),
          option(
            '--strict-compliance',
            'reject messages submitted over SMTP without compliance variables, instead of appending the footer',
          ),
          option(
            '--test',
            'create a test key: its mail is checked, stored and reported, and never leaves this server',
          ),
          option(
            '--sigv4',
            'also allow signed requests (AWS signature version 4), as SDKs of Amazon SES send them: the access key id is "keyId", the secret "key"',
          ),
          option('--json', 'print JSON (always the case)'),
        ],
        run: async ({ account: accountId, ...options }) => {
          const deps = await context.open();
          const { key, secret } = context.accepted(
            await createKeys(deps).create({
              accountId,
              name: options.name,
              scopes: parts(options.scope),
              allowIps: parts(options.allowIp),
              allowFrom: parts(options.allowFrom),
              allowEssential: options.essential !== false,
              strictCompliance: options.strictCompliance === true,
              livemode: options.test !== true,
              seal: options.sigv4 === true ? await deps.openSeal() : null,
            }),
          );
          context.printJson({ ...key, key: secret });
          for (const domain of key.allowFrom)
            if (deps.tables.domains.named(accountId, domain).length === 0)
              context.note(
                `warning: ${domain} is not registered in account ${accountId}: add it with "postrider domain add" before you send from it with this key`,
              );
        },
      }),
      createCommand(context, {
        usage: 'list',
        description: 'List API keys, including revoked ones',
        options: [
          option('--account <id>', 'only this account'),
          option(
            '--secret <text>',
            'only keys whose secret is in this text; "-" reads standard input, which leaves no trace in the shell history',
          ),
          asJson,
        ],
        run: async ({ account, secret }) => {
          const deps = await context.open({ account });
          const all = createKeys(deps).list(account ?? null);
          const keys = secret === undefined ? all : await leaked(context, deps.tables, all, secret);
          if (context.json) return context.printJson(keys);
          context.printRows(keys, 'There are no keys; create one with: key create', (key) => ({
            key: key.keyId,
            account: key.accountId,
            name: key.name,
            scopes: key.scopes.join(', '),
            allowed: [...key.allowIps, ...key.allowFrom].join(', '),
            restrictions: restrictionsOf(key).join(', '),
            created: key.createdAt,
            used: key.lastUsedAt ?? '',
            revoked: key.revokedAt ?? '',
          }));
        },
      }),
      createCommand(context, {
        usage: 'revoke <id>',
        description: 'Revoke an API key immediately and permanently',
        options: [asJson],
        run: async (keyId) => {
          const key = context.accepted(await createKeys(await context.open()).revoke(keyId));
          context.show(key, () => `Key ${key.keyId} is revoked`);
        },
      }),
      rotateMasterCommand(context),
    ],
  });
}

/** The keys whose secrets are in the text; fails when there are none. */
async function leaked(
  context: CliContext,
  tables: Tables,
  keys: readonly ApiKey[],
  given: string,
): Promise<ApiKey[]> {
  const secrets = given === '-' ? await secretsOf(process.stdin) : secretsIn(given);
  if (secrets.size === 0)
    context.usage(
      'The text contains no API key: "pr_" and 43 letters and digits. A part of a key cannot be searched, because only its hash is stored',
    );
  const ids = new Set([...secrets].map((secret) => tables.apiKeys.byHash(keyHash(secret))?.key_id));
  const found = keys.filter(({ keyId }) => ids.has(keyId));
  if (found.length === 0)
    context.fail(
      'No key has this secret: it belongs to another account or installation, or was revoked, and deleted after limits.eventDays',
    );
  return found;
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

/** Restrictions and other options of the key, named like them. */
function restrictionsOf({ allowEssential, strictCompliance, livemode, sigv4 }: ApiKey): string[] {
  return [
    ...(livemode ? [] : ['test']),
    ...(sigv4 ? ['sigv4'] : []),
    ...(allowEssential ? [] : ['no-essential']),
    ...(strictCompliance ? ['strict-compliance'] : []),
  ];
}

/** Options may be repeated or list several values with commas. */
function parts(values: string[] | undefined): string[] {
  return (values ?? []).flatMap((value) => value.split(',')).filter((value) => value.trim() !== '');
}
