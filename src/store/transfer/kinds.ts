import { RECIPIENT_KINDS } from './recipient-kinds.ts';
import { RESOURCE_KINDS } from './resource-kinds.ts';
import type { TransferKind } from './transfer-kind.ts';

/**
 * The records of an exported account in their order in the file: which columns of which table each has, and the rows that
 * belong to it. A record never contains a number that is valid in one database only: references are public ids.
 * Secrets are columns, too: the caller opens and seals them.
 *
 * `policies.ts` states for every table of the schema whether it is exported; a test compares columns with both.
 */
export const TRANSFER_KINDS = { ...RESOURCE_KINDS, ...RECIPIENT_KINDS } as const;

export type TransferType = keyof typeof TRANSFER_KINDS;
export const TRANSFER_TYPES = Object.keys(TRANSFER_KINDS) as readonly TransferType[]; // the keys of a constant

export type TransferValue = string | number | Buffer | null;
/** A record: its columns, and the rows that belong to it by field. */
export interface TransferRecord {
  [field: string]: TransferValue | TransferRecord[];
}

/** The kind of a type, in its general form. */
export function transferKind(type: TransferType): TransferKind {
  return TRANSFER_KINDS[type];
}
