import { scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import * as z from 'zod';
import { OperatorFault } from '../core/operator-fault.ts';
import type { Random } from '../core/random.ts';
import { recordOf } from '../core/record-of.ts';
import type { Runtime } from '../core/runtime.ts';
import { createSeal, type Seal } from '../core/seal.ts';
import { CHANGE_KINDS } from '../store/transfer/account-moves.ts';
import { TRANSFER_TYPES } from '../store/transfer/kinds.ts';

/*
 * The file of an exported account: gzip of lines of JSON.
 *
 *     {"format":"postrider-account","version":1, …}     header: what the file contains
 *     {"type":"changed","record":{"kind":…,"keys":[…]}} only in a difference: what is removed before its records are imported
 *     {"type":"contact","record":{"email":…}}           records, in the order of store/transfer/kinds
 *     {"end":true,"records":…,"sha256":…,"mac":…}       over all preceding lines
 *
 * Secrets (DKIM keys, secrets of webhooks, the key of the account's tokens) are sealed with a key that scrypt derives from
 * a passphrase; the MAC proves that the writer of the file knew the passphrase. All other data is readable without it.
 */

export const FORMAT = 'postrider-account';
export const VERSION = 1;

/** Size of one line; a record is a few hundred bytes, a template up to some megabytes. */
export const MAX_LINE_BYTES = 32 * 2 ** 20;
/** Records of one file. */
const MAX_RECORDS = 2_000_000_000;

/** scrypt (RFC 7914): 128 MiB of memory and some tenths of a second for each attempt. */
const KDF = { name: 'scrypt', n: 131_072, r: 8, p: 1 } as const;
const SALT_BYTES = 16;
const KEY_BYTES = 32;
const MIN_PASSPHRASE_LENGTH = 16;

export const accountIdSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/);

const count = z.int().min(0).max(MAX_RECORDS);

/**
 * whole: everything. first: everything too, written while the account is in use; a difference follows. difference: what
 * changed after the first file, and everything of which there is little. late: opt-outs and suppressions of an account that has left.
 */
const FILE_PARTS = ['whole', 'first', 'difference', 'late'] as const;

/** Keys in one line of a difference. */
export const CHANGED_KEYS = 20;

export const changedSchema = z.strictObject({
  kind: z.enum(CHANGE_KINDS),
  keys: z.array(z.string().max(4000)).max(CHANGED_KEYS),
});

export const headerSchema = z.strictObject({
  format: z.literal(FORMAT),
  version: z.literal(VERSION),
  /** Version of the program, and of its database schema. */
  program: z.string().max(100),
  schema: z.int().min(1),
  /** ISO 8601: the file contains what was committed before. */
  createdAt: z.iso.datetime(),
  /** Host name and id of the installation that wrote the file. */
  hostname: z.string().max(255),
  instanceId: z.string().max(100).nullable(),
  accountId: accountIdSchema,
  // Absent in files of older versions.
  part: z.enum(FILE_PARTS).default('whole'),
  /** Of a first file and its difference. */
  moveId: z.string().max(100).nullable().default(null),
  /** Since when requests of the account get 503; ISO 8601. */
  movedAt: z.iso.datetime().nullable().default(null),
  kdf: z.strictObject({
    name: z.literal(KDF.name),
    n: z.literal(KDF.n),
    r: z.literal(KDF.r),
    p: z.literal(KDF.p),
    salt: z.base64().length(24),
  }),
  /** The keys of the account's tokens, sealed: at most 255 of 32 bytes. */
  tokenKey: z.base64().max(11_000),
  /** Records by type. */
  counts: z.strictObject(recordOf(TRANSFER_TYPES, () => count)),
});

export type Header = z.output<typeof headerSchema>;

export const endSchema = z.strictObject({
  end: z.literal(true),
  records: count,
  /** Hash of all preceding lines with their line ends; hexadecimal. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  mac: z.string().regex(/^[0-9a-f]{64}$/),
});

export type End = z.output<typeof endSchema>;

/** Seals the secrets of a file. */
export type FileSeal = Seal;

/** The parameters of a new file. */
export function newKdf(random: Random): Header['kdf'] {
  return { ...KDF, salt: random.bytes(SALT_BYTES).toString('base64') };
}

/** Derives a key of KEY_BYTES from a passphrase with the parameters of a file. */
export type DeriveKey = (passphrase: string, kdf: Header['kdf']) => Promise<Buffer>;

/** What reads and writes files: `deriveKey` is scrypt by default. */
export type FileContext = Pick<Runtime, 'random'> & { deriveKey?: DeriveKey };

/** The seal with the key of a file. Throws OperatorFault when the passphrase is too short. */
export async function fileSeal(
  passphrase: string,
  kdf: Header['kdf'],
  { random, deriveKey = scryptKey }: FileContext,
): Promise<FileSeal> {
  if (passphrase.length < MIN_PASSPHRASE_LENGTH)
    throw new OperatorFault(
      `The passphrase must have at least ${MIN_PASSPHRASE_LENGTH} characters: create one with "openssl rand -base64 24"`,
    );
  return createSeal(await deriveKey(passphrase, kdf), random);
}

function scryptKey(passphrase: string, { n: N, r, p, salt }: Header['kdf']): Promise<Buffer> {
  const derive = promisify<
    string,
    Buffer,
    number,
    { N: number; r: number; p: number; maxmem: number },
    Buffer
  >(scrypt);
  const options = { N, r, p, maxmem: 256 * N * r };
  return derive(passphrase, Buffer.from(salt, 'base64'), KEY_BYTES, options);
}

/** The key of the MAC. */
export function macKey(seal: FileSeal): Buffer {
  return seal.derive('account-transfer/mac');
}

/** The number of records that a header announces. */
export function totalOf(counts: Header['counts']): number {
  return Object.values(counts).reduce((sum, number) => sum + number, 0);
}
