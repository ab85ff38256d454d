import { dkimSealContext } from '../store/domains/domains.ts';
import type { TransferRecord, TransferType } from '../store/transfer/kinds.ts';
import { webhookSealContext } from '../webhooks/secrets.ts';

/** The sealed column in the rows of a field, and the context with which it is sealed. */
interface SecretColumn {
  field: string;
  column: string;
  contextOf(record: TransferRecord, row: TransferRecord): string;
}

const SECRETS: Partial<Record<TransferType, SecretColumn>> = {
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
  const rows = record[field];
  if (!Array.isArray(rows)) throw new Error(`${type} has no ${field}`);
  const resealed = rows.map((row) => {
    const context = contextOf(record, row);
    const value = row[column];
    if (!Buffer.isBuffer(value)) throw new Error(`${context} has no secret`);
    return { ...row, [column]: reseal(value, context) };
  });
  return { ...record, [field]: resealed };
}

function textOf(record: TransferRecord, column: string): string {
  const value = record[column];
  if (typeof value !== 'string') throw new Error(`${column} is not text`);
  return value;
}
