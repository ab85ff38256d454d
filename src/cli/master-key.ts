import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import { signingSecretSealContext } from '../accounts/keys.ts';
import { ACCOUNT_KEY, certificateSealContext } from '../certificates/keeper.ts';
import { errorCode } from '../core/errors.ts';
import { fileFault, OperatorFault } from '../core/operator-fault.ts';
import type { MasterKeys, Seal } from '../core/seal.ts';
import { REPORT_KEY } from '../domains/platform/report-key.ts';
import { totpSealContext } from '../people/credentials.ts';
import { dkimSealContext } from '../store/domains/domains.ts';
import { platformSealContext } from '../store/domains/platform-keys.ts';
import { createPortions } from '../store/maintenance/portions.ts';
import {
  addMasterKey,
  completeReplacement,
  isReplacing,
  keyFingerprint,
  keyRecord,
  masterKeysOf,
  readMasterKey,
  replaceKeyFile,
} from '../store/master-key.ts';
import type { SealedColumn, SealedRow } from '../store/sealed-values.ts';
import type { Tables } from '../store/tables.ts';
import { textOf } from '../transfer/secrets.ts';
import { tokenKeySealContext } from '../transfer/token-accounts.ts';
import { headerSealContext, mapValues, readHeaders, webhookSealContext } from '../webhooks/secrets.ts';
import { asJson, createCommand, option } from './command.ts';
import type { CliContext, Opened } from './context.ts';
import { createCountBar } from './output/progress.ts';

/** What is sealed with the master key: `renewed` is the value of a row, sealed with the newest key; null: it is. */
interface Sealed extends SealedColumn {
  renewed(row: SealedRow, seal: Seal): Buffer | string | null;
}

/** `contextOf`: with what the value of a row is sealed. */
function bytes(column: SealedColumn, contextOf: (row: SealedRow) => string): Sealed {
  return { ...column, renewed: (row, seal) => seal.renew(bytesOf(row, column.column), contextOf(row)) };
}

export const SEALED: readonly Sealed[] = [
  bytes({ table: 'dkim_keys', key: 'key_id', column: 'private_key' }, (row) =>
    dkimSealContext(textOf(row, 'domain_id'), textOf(row, 'selector')),
  ),
  bytes({ table: 'platform_keys', key: 'key_id', column: 'private_key' }, (row) =>
    platformSealContext(textOf(row, 'selector')),
  ),
  bytes({ table: 'certificates', key: 'host', column: 'private_key' }, (row) =>
    certificateSealContext(textOf(row, 'host')),
  ),
  bytes(
    {
      table: 'webhook_secrets',
      key: 'secret_id',
      column: 'secret',
      from: '(SELECT secret_id, secret, webhook_id FROM webhook_secrets JOIN webhooks ON webhooks.number = webhook)',
    },
    (row) => webhookSealContext(textOf(row, 'webhook_id')),
  ),
  bytes({ table: 'api_keys', key: 'key_id', column: 'signing_secret' }, (row) =>
    signingSecretSealContext(textOf(row, 'key_id')),
  ),
  bytes({ table: 'token_keys', key: 'tag', column: 'key' }, (row) =>
    tokenKeySealContext(textOf(row, 'account_id')),
  ),
  bytes({ table: 'people', key: 'person_id', column: 'totp' }, (row) =>
    totpSealContext(textOf(row, 'person_id')),
  ),
  { table: 'webhooks', key: 'number', column: 'headers', renewed: renewedHeaders },
  {
    table: 'settings',
    key: 'name',
    column: 'value',
    from: `(SELECT name, value FROM settings WHERE name IN ('${ACCOUNT_KEY}', '${REPORT_KEY}'))`,
    // The name is the context, too.
    renewed: (row, seal) =>
      seal.renew(Buffer.from(textOf(row, 'value'), 'base64'), textOf(row, 'name'))?.toString('base64') ??
      null,
  },
];

function renewedHeaders(row: SealedRow, seal: Seal): string | null {
  const webhookId = textOf(row, 'webhook_id');
  let isRenewed = false;
  const headers = mapValues(readHeaders(textOf(row, 'headers')), (sealed, name) => {
    const renewed = seal.renew(Buffer.from(sealed, 'base64'), headerSealContext(webhookId, name));
    isRenewed ||= renewed !== null;
    return renewed?.toString('base64') ?? sealed;
  });
  return isRenewed ? JSON.stringify(headers) : null;
}

function bytesOf(row: SealedRow, column: string): Buffer {
  const value = row[column];
  if (!Buffer.isBuffer(value)) throw new Error(`${column} is not bytes`);
  return value;
}

/** `postrider key rotate-master`. */
export function rotateMasterCommand(context: CliContext): Command {
  return createCommand(context, {
    usage: 'rotate-master',
    description: 'Replace the master key, and encrypt all secrets again, while the daemon runs',
    options: [
      option(
        '--write <file>',
        'write the new key to this file: for a key that the service manager gives to the service',
      ),
      option('--yes', 'do not ask'),
      asJson,
    ],
    help: `
The new key is in data.masterKeyFile afterwards, and the former one next to it, as <file>.<number>: backups from before
need it. Links in sent mail remain valid. Run the command again after an interruption: it continues.

With --write, data.masterKeyFile stays as it is. Give the new file to the service, restart the service, and run the command
again with the new key: until then both keys open the database.

Examples:
  postrider key rotate-master
  postrider key rotate-master --write /root/postrider.master-key`,
    run: async ({ write, yes }) => {
      const deps = await context.open();
      const file = deps.config.data.masterKeyFile;
      if (write === undefined && dirname(file) === process.env['CREDENTIALS_DIRECTORY'])
        context.usage(
          'The service manager gives the key to the service: name a file for the new one with --write',
        );
      const seal = await deps.openSeal();
      const isInterrupted = isReplacing(keyRecord(deps.tables));
      if (write !== undefined && existsSync(write) && !isInterrupted)
        context.usage(`${write} exists: name another file`);
      if (yes !== true && !isInterrupted && !(await context.confirm('Replace the master key?'))) return;
      await replaceKey(deps, file, write);
      const renewed = await renewAll(deps, seal, context);
      const isComplete = await completeIfInUse(deps, file);
      const number = seal.newest();
      context.show({ number, renewed, complete: isComplete }, () => [
        `Secrets encrypted with master key ${number}: ${renewed}`,
        isComplete
          ? `The key is in ${file}. Copy it elsewhere now.${formerKeyNote(`${file}.${number - 1}`)}`
          : `The key is in ${write ?? file}. Give it to the service, restart the service, and run this command again with the new key`,
      ]);
    },
  });
}

function formerKeyNote(former: string): string {
  return existsSync(former) ? ` The former key is ${former}: backups from before need it` : '';
}

/** Creates a key, unless an interrupted run has, and writes it to `write`, or to `file`, whose former key remains next to it. */
async function replaceKey(
  { tables, writer, random }: Opened,
  file: string,
  write: string | undefined,
): Promise<void> {
  await writer.run((tx) => {
    if (!isReplacing(keyRecord(tx))) addMasterKey(tx, keysOf(tx, file), random);
  });
  const { newest, keys } = keysOf(tables, file);
  const key = keys.get(newest);
  if (key === undefined) throw new Error(`Master key ${newest} is not known`);
  if (write !== undefined) writeNewKey(write, key);
  else if (!readMasterKey(file).equals(key)) replaceKeyFile(file, key, newest - 1);
}

function keysOf(tables: Pick<Tables, 'settings'>, file: string): MasterKeys {
  const credentialsDirectory = process.env['CREDENTIALS_DIRECTORY'];
  const keys = masterKeysOf(tables, { file, credentialsDirectory });
  if (keys === null) throw new OperatorFault(`${file} is not the master key of this database`);
  return keys;
}

/** Throws OperatorFault when the file exists with another content, or cannot be written. */
function writeNewKey(file: string, key: Buffer): void {
  try {
    writeFileSync(file, key, { mode: 0o600, flag: 'wx', flush: true });
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw fileFault('--write', file, error);
    if (!readFileSync(file).equals(key)) throw new OperatorFault(`${file} exists: name another file`);
  }
}

/** Seals every secret with the newest key that has another; returns how many. */
async function renewAll({ writer, tables }: Opened, seal: Seal, context: CliContext): Promise<number> {
  const bar = createCountBar(process.stderr.isTTY && !context.json);
  const total = SEALED.reduce((sum, column) => sum + tables.sealedValues.count(column), 0);
  const portions = createPortions({ writer, share: 'master key' });
  let seen = 0;
  let renewed = 0;
  try {
    for (const sealed of SEALED) {
      let after: unknown = null;
      await portions.run(
        (tx, limit) => {
          const rows = tx.sealedValues.rows(sealed, after, limit);
          let changed = 0;
          for (const row of rows) {
            const value = sealed.renewed(row, seal);
            if (value === null) continue;
            tx.sealedValues.replace(sealed, row[sealed.key], value);
            changed++;
          }
          return { rows: rows.length, changed, last: rows.at(-1)?.[sealed.key], isDone: rows.length < limit };
        },
        ({ rows, changed, last }) => {
          after = last ?? after;
          seen += rows;
          renewed += changed;
          bar.update('encrypt', seen, total);
        },
      );
    }
  } finally {
    bar.stop();
  }
  return renewed;
}

/** False: the key file has the former key. */
async function completeIfInUse({ writer }: Opened, file: string): Promise<boolean> {
  const fingerprint = keyFingerprint(readMasterKey(file));
  return writer.run((tx) => {
    const isInUse = keyRecord(tx).fingerprint === fingerprint;
    if (isInUse) completeReplacement(tx);
    return isInUse;
  });
}
