import { signingSecretSealContext } from '../accounts/keys.ts';
import { dkimSealContext } from '../store/domains/domains.ts';
import type { TransferRecord, TransferType } from '../store/transfer/kinds.ts';
import { headerSealContext, mapValues, readHeaders, webhookSealContext } from '../webhooks/secrets.ts';

/** A sealed column of a record, or of the rows in one of its fields, and the context with which it is sealed. */
interface SecretColumn {
  /** The field with the rows; null: the column is in the record itself, and may be null. */
  field: string | null;
  column: string;
  contextOf(record: TransferRecord, row: TransferRecord): string;
}

const SECRETS: Partial<Record<TransferType, SecretColumn>> = {
  api_key: {
    field: null,
    column: 'signing_secret',
    contextOf: (key) => signingSecretSealContext(textOf(key, 'key_id')),
  },
  domain: {
    field: 'dkim_keys',
    column: 'private_key',
    contextOf: (domain, key) => dkimSealContext(textOf(domain, 'domain_id'), textOf(key, 'selector')),
  },
  webhook: {
    field: 'secrets',
    column: 'secret',
    contextOf: (webhook) => webhookSealContext(textOf(webhook, 'webhook_id')),
  },
};

/** The record with its secrets sealed with another key. Throws when `reseal` does. */
export function withSecrets(
  type: TransferType,
  record: TransferRecord,
  reseal: (secret: Buffer, context: string) => Buffer,
): TransferRecord {
  const secret = SECRETS[type];
  if (secret === undefined) return record;
  const { field, column, contextOf } = secret;
  const resealed = (row: TransferRecord): TransferRecord => {
    const context = contextOf(record, row);
    const value = row[column];
    if (!Buffer.isBuffer(value)) throw new Error(`${context} has no secret`);
    return { ...row, [column]: reseal(value, context) };
  };
  if (field === null) return record[column] === null ? record : resealed(record);
  const rows = record[field];
  if (!Array.isArray(rows)) throw new Error(`${type} has no ${field}`);
  const withRows = { ...record, [field]: rows.map(resealed) };
  return type === 'webhook' ? withHeaders(withRows, reseal) : withRows;
}

/** The values of the headers of a webhook are sealed in the JSON of the column. */
function withHeaders(
  webhook: TransferRecord,
  reseal: (secret: Buffer, context: string) => Buffer,
): TransferRecord {
  if (webhook['headers'] === null) return webhook;
  const webhookId = textOf(webhook, 'webhook_id');
  const headers = mapValues(readHeaders(textOf(webhook, 'headers')), (sealed, name) =>
    reseal(Buffer.from(sealed, 'base64'), headerSealContext(webhookId, name)).toString('base64'),
  );
  return { ...webhook, headers: JSON.stringify(headers) };
}

/** Throws when the column is not text. */
export function textOf(record: Readonly<Record<string, unknown>>, column: string): string {
  const value = record[column];
  if (typeof value !== 'string') throw new Error(`${column} is not text`);
  return value;
}
