import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { createHeldMail } from '../backup/held.ts';
import {
  holdUnfinished,
  type Restored,
  type RestoreOptions,
  restoreBackup,
  restoreCopy,
} from '../backup/restore.ts';
import { HOUR, iso, systemClock } from '../core/clock.ts';
import { createRecorder } from '../events/record.ts';
import { definedFields } from '../http/api/fields.ts';
import type { HeldFilter } from '../store/backup/restore-holds.ts';
import { asJson, createCommand, createGroup, type OptionValues, option, withoutAsking } from './command.ts';
import type { CliContext } from './context.ts';
import { createByteBar } from './output/progress.ts';
import { capitalized, counted } from './output/table.ts';

const dataDir = option('--data <dir>', 'data directory (default: data.dir of the configuration)');

const actOptions = [
  option('--all', 'everything that is held'),
  option('--account <id>', 'only of this account'),
  option('--domain <id>', 'only from this sending domain (its id)'),
  option('--campaign <id>', 'only of this campaign'),
  option('--webhooks', 'webhook deliveries instead of messages (with --all or --account)'),
  withoutAsking,
  asJson,
] as const;

/** `postrider restore`, and the commands for held messages and webhook deliveries. */
export function restoreCommand(context: CliContext): Command {
  return createGroup('restore', 'Restore a backup; release or drop held messages', {
    help: `
A restore holds every message and webhook delivery that was not finished at the time of the backup, because the original
may have sent it afterwards, and pauses campaigns. New messages are sent as usual. See docs/backup.md.

Examples:
  postrider restore /var/backups/postrider --data /var/lib/postrider
  postrider restore --from-copy /srv/replica/postrider.db
  postrider restore held
  postrider restore release --account acct_8f3k2m9x0q1z
  postrider restore drop --all --webhooks --yes`,
    commands: [
      createCommand(context, {
        usage: 'from [dir]',
        isDefault: true,
        description: 'Restore a backup, or the newest one in [dir], into a data directory without a database',
        options: [
          dataDir,
          option(
            '--from-copy <file>',
            'restore a copy of the database by another program, such as Litestream',
          ),
          asJson,
        ],
        run: async (dir, { data, fromCopy }) => {
          const restore =
            dir !== undefined && fromCopy === undefined
              ? (settings: RestoreOptions) => restoreBackup(dir, settings)
              : dir === undefined && fromCopy !== undefined
                ? (settings: RestoreOptions) => restoreCopy(fromCopy, settings)
                : context.usage('Specify a backup, or a copy of the database with --from-copy');
          const bar = createByteBar(process.stderr.isTTY && !context.json);
          const settings: RestoreOptions = {
            ...locationOf(context, data),
            onProgress: (done, total) => bar.update('copy', done, total),
            onMigration: ({ step, done, total }) => bar.update(step, done, total),
          };
          report(context, await restore(settings).finally(bar.stop), settings.masterKeyFile);
        },
      }),
      createCommand(context, {
        usage: 'hold',
        description: 'Hold everything unfinished in a copied data directory, or after an interrupted restore',
        options: [dataDir, withoutAsking, asJson],
        run: async ({ data, yes }) => {
          const settings = locationOf(context, data);
          const question = `Hold all unfinished messages and webhook deliveries in ${settings.dataDir}, and pause its campaigns?`;
          if (yes !== true && !(await context.confirm(question))) return;
          const held = await holdUnfinished(settings);
          const restored = { dataDir: settings.dataDir, manifest: null, isKeyMissing: false, held };
          report(context, restored, settings.masterKeyFile);
        },
      }),
      createCommand(context, {
        usage: 'held',
        description: 'List held messages and webhook deliveries, by account and domain',
        options: [asJson],
        run: () => listHeld(context),
      }),
      ...ACTIONS.map((action) =>
        createCommand(context, {
          usage: `${action.verb} [ids...]`,
          description: action.description,
          options: actOptions,
          run: (ids, options) => act(context, ids, action, options),
        }),
      ),
    ],
  });
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
  { dataDir: dir, manifest, isKeyMissing, held }: Restored,
  masterKeyFile: string,
): void {
  const createdAt = manifest?.createdAt ?? null;
  // The commands read the configured directory.
  const place = dir === context.config().data.dir ? '' : `POSTRIDER_DATA__DIR=${dir} `;
  context.show({ dataDir: dir, createdAt, isKeyMissing, ...held }, () => [
    `Restored ${dir}${createdAt === null ? '' : ` from the backup of ${createdAt}`}.`,
    `Held: ${counted(held.messages, 'message')}, ${webhookDeliveries(held.webhookDeliveries)}. Paused: ${counted(held.campaigns, 'campaign')}.`,
    ...(held.messages + held.webhookDeliveries > 0
      ? [
          `Next: "${place}postrider restore held", then "${place}postrider restore release" or "${place}postrider restore drop".`,
        ]
      : []),
  ]);
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

async function listHeld(context: CliContext): Promise<void> {
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
  if (context.json) return context.printJson({ messages: groups, webhooks });
  const age = (at: string) => `${Math.floor((clock.now() - Date.parse(at)) / HOUR)} h`;
  context.printRows(groups, 'No message is held since a restore', (group) => ({
    account: group.accountId,
    domain: group.domain ?? group.domainId,
    messages: group.messages,
    age: `${age(group.newestAt)} to ${age(group.oldestAt)}`,
    expires: group.firstExpiryAt,
  }));
  if (webhooks.length > 0) context.printRows(webhooks, '');
}

function webhookDeliveries(count: number): string {
  return counted(count, 'webhook delivery', 'webhook deliveries');
}

const ACTIONS = [
  {
    verb: 'release',
    description: 'Send held messages, by id or filter; those that the original has sent are then sent twice',
    done: 'released',
    webhooks: 'releaseWebhooks',
  },
  {
    verb: 'drop',
    description: 'Cancel held messages, by id or filter',
    done: 'dropped',
    webhooks: 'dropWebhooks',
  },
] as const;

async function act(
  context: CliContext,
  ids: string[],
  action: (typeof ACTIONS)[number],
  options: OptionValues<typeof actOptions>,
): Promise<void> {
  const { all, account, domain, campaign } = options;
  const filtered = [account, domain, campaign].some((value) => value !== undefined);
  if ([all === true, filtered, ids.length > 0].filter(Boolean).length !== 1)
    context.usage('Specify message ids, a filter (--account, --domain, --campaign), or --all');
  const deps = await context.open({ account });
  const { messages, restoreHolds } = deps.tables;
  const held = createHeldMail(deps, createRecorder(deps));
  const printDone = (changed: number, what: string) =>
    context.show({ [action.done]: changed }, () => `${what} ${action.done}`);
  /** Asks whether to apply the action to `count` rows, `what` as text, unless there is none. */
  const confirmed = async (count: number, what: string) =>
    count === 0 ||
    options.yes === true ||
    (await context.confirm(`${capitalized(action.verb)} ${what.replace(' ', ' held ')}?`));

  if (options.webhooks === true) {
    if (ids.length > 0 || domain !== undefined || campaign !== undefined)
      context.usage('--webhooks needs --all or --account');
    const count = restoreHolds
      .webhooks()
      .filter((row) => account === undefined || row.account_id === account)
      .reduce((sum, { deliveries }) => sum + deliveries, 0);
    if (!(await confirmed(count, webhookDeliveries(count)))) return;
    const changed = count === 0 ? 0 : await held[action.webhooks](account ?? null);
    return printDone(changed, webhookDeliveries(changed));
  }
  if (ids.length > 0) {
    const found = ids.map((id) => ({ id, seq: messages.byId(id)?.seq }));
    const seqs = found.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
    const faults = found.flatMap(({ id, seq }) => (seq === undefined ? [`There is no message ${id}`] : []));
    const changed = await held[action.verb]({ seqs });
    printDone(changed, counted(changed, 'message'));
    if (changed < seqs.length)
      faults.push(`Not held since a restore: ${counted(seqs.length - changed, 'message')}`);
    return context.failSome(faults, changed);
  }
  const filter: HeldFilter = definedFields({ accountId: account, domainId: domain, campaignId: campaign });
  const count = restoreHolds.countMatching(filter);
  if (!(await confirmed(count, counted(count, 'message')))) return;
  const changed = count === 0 ? 0 : await held[action.verb]({ filter });
  printDone(changed, counted(changed, 'message'));
}
