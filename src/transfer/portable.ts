import type { Seal } from '../core/seal.ts';
import { dkimSealContext } from '../store/domains/domains.ts';
import type { TransferRecord, TransferType, TransferValue } from '../store/transfer/kinds.ts';
import { webhookSealContext } from '../webhooks/secrets.ts';
import type { FileSeal } from './format.ts';

/* Records as they are in the file of an exported account: secrets sealed for the file, bytes as base64. */

/** Opens the secrets of a record and seals them for the file. */
export function withSecrets(
  type: TransferType,
  record: TransferRecord,
  own: Seal,
  seal: FileSeal,
): TransferRecord {
  const resealed = (value: unknown, context: string): Buffer => {
    if (!Buffer.isBuffer(value)) throw new Error(`${context} has no secret`);
    return seal.seal(own.open(value, context), context);
  };
  if (type === 'domain')
    return {
      ...record,
      dkim_keys: childrenOf(record, 'dkim_keys').map((key) => ({
        ...key,
        private_key: resealed(
          key['private_key'],
          dkimSealContext(textOf(record, 'domain_id'), textOf(key, 'selector')),
        ),
      })),
    };
  if (type === 'webhook')
    return {
      ...record,
      secrets: childrenOf(record, 'secrets').map((secret) => ({
        ...secret,
        secret: resealed(secret['secret'], webhookSealContext(textOf(record, 'webhook_id'))),
      })),
    };
  return record;
}

function childrenOf(record: TransferRecord, field: string): TransferRecord[] {
  const rows = record[field];
  return Array.isArray(rows) ? rows : [];
}

/** Converts bytes to base64. */
export function portable(record: TransferRecord): object {
  const entries = Object.entries(record).map(([field, value]): [string, TransferValue | object[]] => {
    if (Array.isArray(value)) return [field, value.map(portable)];
    return [field, Buffer.isBuffer(value) ? value.toString('base64') : value];
  });
  return Object.fromEntries(entries);
}

function textOf(record: TransferRecord, column: string): string {
  const value = record[column];
  if (typeof value !== 'string') throw new Error(`${column} is not text`);
  return value;
}
