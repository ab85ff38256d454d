import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { createHeldMail, type HeldMail, type HeldSelection } from '../backup/held.ts';
import {
  holdUnfinished,
  type Restored,
  type RestoreOptions,
  restoreBackup,
  restoreCopy,
} from '../backup/restore.ts';
import { HOUR, iso, systemClock } from '../core/clock.ts';
import { createRecorder } from '../events/record.ts';
import type { HeldFilter } from '../store/backup/restore-holds.ts';
import type { CliContext, CliDeps } from './context.ts';
import { addDefaultCommand } from './help.ts';
import { createByteBar } from './output/progress.ts';
import { capitalized, counted } from './output/table.ts';

/** `postrider restore`, and the commands for held messages and webhook deliveries. */
export function restoreCommand(context: CliContext): Command {
  const command = new Command('restore')
    .description('Restore a backup; release or drop held messages')
    .addHelpText(
      'after',
      `
A restore holds every message and webhook delivery that was not finished at the time of the backup, because the original
may have sent it afterwards, and pauses campaigns. New messages are sent as usual. See docs/backup.md.

Examples:
  postrider restore /var/backups/postrider --data /var/lib/postrider
  postrider restore --from-copy /srv/replica/postrider.db
  postrider restore held
  postrider restore release --account acct_8f3k2m9x0q1z
  postrider restore drop --all --webhooks --yes`,
    );
  addDefaultCommand(command, 'from [dir]')
    .description('Restore a backup, or the newest one in [dir], into a data directory without a database')
    .option('--data <dir>', 'data directory (default: data.dir of the configuration)')
    .option('--from-copy <file>', 'restore a copy of the database by another program, such as Litestream')
    .option('--json', 'print JSON')
    .action((dir: string | undefined, options: FromOptions) => restore(context, dir, options));
  command
    .command('hold')
    .description('Hold everything unfinished in a copied data directory, or after an interrupted restore')
    .option('--data <dir>', 'data directory (default: data.dir of the configuration)')
    .option('--yes', 'do not ask for confirmation')
    .option('--json', 'print JSON')
    .action((options: HoldOptions) => hold(context, options));
  command
    .command('held')
    .description('List held messages and webhook deliveries, by account and domain')
    .option('--json', 'print JSON')
    .action((options: { json?: boolean }) => listHeld(context, options.json === true));
  for (const action of ACTIONS) {
    command
      .command(`${action.verb} [ids...]`)
      .description(action.description)
      .option('--all', 'everything that is held')
      .option('--account <id>', 'only of this account')
      .option('--domain <id>', 'only from this sending domain (its id)')
      .option('--campaign <id>', 'only of this campaign')
      .option('--webhooks', 'webhook deliveries instead of messages (with --all or --account)')
      .option('--yes', 'do not ask for confirmation')
      .option('--json', 'print JSON')
      .action((ids: string[], options: ActOptions) => act(context, ids, action, options));
  }
  return command;
}

interface FromOptions {
  data?: string;
  fromCopy?: string;
  json?: boolean;
}

interface HoldOptions {
  data?: string;
  yes?: boolean;
  json?: boolean;
}

interface ActOptions {
  all?: boolean;
  account?: string;
  domain?: string;
  campaign?: string;
  webhooks?: boolean;
  yes?: boolean;
  json?: boolean;
}

async function restore(context: CliContext, dir: string | undefined, options: FromOptions): Promise<void> {
  if ((dir === undefined) === (options.fromCopy === undefined))
    return context.usage('Specify a backup, or a copy of the database with --from-copy');
  const json = options.json === true;
  const bar = createByteBar(process.stderr.isTTY && !json);
  const settings: RestoreOptions = {
    ...locationOf(context, options.data),
    onProgress: (done, total) => bar.update('copy', done, total),
    onMigration: ({ step, done, total }) => bar.update(step, done, total),
  };
  try {
    const restored =
      options.fromCopy === undefined
        ? await restoreBackup(dir ?? '', settings)
        : await restoreCopy(options.fromCopy, settings);
    bar.stop();
    report(context, restored, settings.masterKeyFile, json);
  } finally {
    bar.stop();
  }
}

/** With `--data`, a master key file that is not configured belongs in that directory. */
function locationOf(context: CliContext, data: string | undefined): RestoreOptions {
  const { dir, masterKeyFile } = context.config().data;
  const dataDir = data === undefined ? dir : resolve(data);
  const key = masterKeyFile === join(dir, 'master.key') ? join(dataDir, 'master.key') : masterKeyFile;
  return { dataDir, masterKeyFile: key, clock: systemClock };
}

function report(
  context: CliContext,
  { dataDir, manifest, isKeyMissing, held }: Restored,
  masterKeyFile: string,
  json: boolean,
): void {
  const createdAt = manifest?.createdAt ?? null;
  if (json) context.printJson({ dataDir, createdAt, isKeyMissing, ...held });
  else {
    context.print(`Restored ${dataDir}${createdAt === null ? '' : ` from the backup of ${createdAt}`}.`);
    context.print(
      `Held: ${counted(held.messages, 'message')}, ${counted(held.webhookDeliveries, 'webhook delivery', 'webhook deliveries')}. Paused: ${counted(held.campaigns, 'campaign')}.`,
    );
    if (held.messages + held.webhookDeliveries > 0)
      context.print(
        'Next: "postrider restore held", then "postrider restore release" or "postrider restore drop".',
      );
  }
  const config = manifest?.files.filter(({ path }) => path.startsWith('config/')) ?? [];
  if (config.length > 0)
    context.note(
      `Files outside the data directory were not restored: ${config.map(({ path, source }) => `${path} (was ${source})`).join(', ')}`,
    );
  if (isKeyMissing)
    context.note(
      `${masterKeyFile} is missing: restore the master key before you start the daemon. If it is lost, see docs/lost-master-key.md`,
    );
}

async function hold(context: CliContext, options: HoldOptions): Promise<void> {
  const settings = locationOf(context, options.data);
  const question = `Hold all unfinished messages and webhook deliveries in ${settings.dataDir}, and pause its campaigns?`;
  if (options.yes !== true && !(await context.confirm(question))) return;
  const held = await holdUnfinished(settings);
  const restored = { dataDir: settings.dataDir, manifest: null, isKeyMissing: false, held };
  report(context, restored, settings.masterKeyFile, options.json === true);
}

async function listHeld(context: CliContext, json: boolean): Promise<void> {
  const { tables, clock } = await context.open();
  const groups = tables.restoreHolds.groups().map((group) => ({
    accountId: group.account_id,
    domainId: group.domain_id,
    domain: tables.domains.byId(group.domain_id)?.name ?? null,
    messages: group.messages,
    oldestAt: iso(group.oldest),
    newestAt: iso(group.newest),
    firstExpiryAt: iso(group.expires),
  }));
  const webhooks = tables.restoreHolds.webhooks().map((row) => ({
    accountId: row.account_id,
    webhookId: row.webhook_id,
    url: row.url,
    deliveries: row.deliveries,
    oldestAt: iso(row.oldest),
  }));
  if (json) return context.printJson({ messages: groups, webhooks });
  const age = (at: string) => `${Math.floor((clock.now() - Date.parse(at)) / HOUR)} h`;
  const messages = groups.map(
    ({ accountId, domainId, domain, messages: number, oldestAt, newestAt, firstExpiryAt }) => ({
      account: accountId,
      domain: domain ?? domainId,
      messages: number,
      age: `${age(newestAt)} to ${age(oldestAt)}`,
      expires: firstExpiryAt,
    }),
  );
  context.printRows(messages, { json, empty: 'No message is held since a restore' });
  if (webhooks.length > 0) context.printRows(webhooks, { json, empty: '' });
}

interface Action {
  verb: 'release' | 'drop';
  description: string;
  done: string;
  messages(held: HeldMail, which: HeldSelection): Promise<number>;
  webhooks(held: HeldMail, accountId: string | null): Promise<number>;
}

const ACTIONS: readonly Action[] = [
  {
    verb: 'release',
    description: 'Send held messages, by id or filter; those that the original has sent are then sent twice',
    done: 'released',
    messages: (held, which) => held.release(which),
    webhooks: (held, accountId) => held.releaseWebhooks(accountId),
  },
  {
    verb: 'drop',
    description: 'Cancel held messages, by id or filter',
    done: 'dropped',
    messages: (held, which) => held.drop(which),
    webhooks: (held, accountId) => held.dropWebhooks(accountId),
  },
];

async function act(context: CliContext, ids: string[], action: Action, options: ActOptions): Promise<void> {
  const { all, account, domain, campaign } = options;
  const filtered = [account, domain, campaign].some((value) => value !== undefined);
  if ([all === true, filtered, ids.length > 0].filter(Boolean).length !== 1)
    return context.usage('Specify message ids, a filter (--account, --domain, --campaign), or --all');
  const deps = await context.open();
  const held = createHeldMail({ ...deps, recorder: createRecorder(deps) });
  if (account !== undefined && deps.tables.accounts.get(account) === null)
    return context.fail(`There is no account ${account}`);
  if (options.webhooks === true) {
    if (ids.length > 0 || domain !== undefined || campaign !== undefined)
      return context.usage('--webhooks needs --all or --account');
    return actOnWebhooks(context, deps, held, { action, options });
  }
  if (ids.length > 0) return actOnIds(context, deps, held, { action, ids, options });
  const filter: HeldFilter = {
    ...(account === undefined ? {} : { accountId: account }),
    ...(domain === undefined ? {} : { domainId: domain }),
    ...(campaign === undefined ? {} : { campaignId: campaign }),
  };
  const count = deps.tables.restoreHolds.countMatching(filter);
  if (count === 0) return done(context, action, 0, 'message', options);
  const question = `${capitalized(action.verb)} ${counted(count, 'held message')}?`;
  if (options.yes !== true && !(await context.confirm(question))) return;
  done(context, action, await action.messages(held, { filter }), 'message', options);
}

async function actOnIds(
  context: CliContext,
  { tables }: CliDeps,
  held: HeldMail,
  { action, ids, options }: { action: Action; ids: readonly string[]; options: ActOptions },
): Promise<void> {
  const seqs: number[] = [];
  const faults: string[] = [];
  for (const id of ids) {
    const message = tables.messages.byId(id);
    if (message === null) faults.push(`There is no message ${id}`);
    else seqs.push(message.seq);
  }
  const changed = await action.messages(held, { seqs });
  done(context, action, changed, 'message', options);
  if (changed < seqs.length)
    faults.push(`Not held since a restore: ${counted(seqs.length - changed, 'message')}`);
  context.failSome(faults, changed);
}

async function actOnWebhooks(
  context: CliContext,
  { tables }: CliDeps,
  held: HeldMail,
  { action, options }: { action: Action; options: ActOptions },
): Promise<void> {
  const accountId = options.account ?? null;
  const count = tables.restoreHolds
    .webhooks()
    .filter((row) => accountId === null || row.account_id === accountId)
    .reduce((sum, { deliveries }) => sum + deliveries, 0);
  const question = `${capitalized(action.verb)} ${counted(count, 'held webhook delivery', 'held webhook deliveries')}?`;
  if (count > 0 && options.yes !== true && !(await context.confirm(question))) return;
  done(context, action, count === 0 ? 0 : await action.webhooks(held, accountId), 'webhook', options);
}

function done(
  context: CliContext,
  action: Action,
  changed: number,
  what: 'message' | 'webhook',
  { json }: ActOptions,
): void {
  if (json === true) return context.printJson({ [action.done]: changed });
  const text =
    what === 'message'
      ? counted(changed, 'message')
      : counted(changed, 'webhook delivery', 'webhook deliveries');
  context.print(`${text} ${action.done}`);
}
