import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { OperatorFault } from '../core/operator-fault.ts';

/*
 * The manifest of a backup, written last. `DIR/NAME` is a backup:
 *
 *     manifest.json       this manifest
 *     postrider.db        the database, one file
 *     data/…              other files of the data directory
 *     config/…            the configuration file and the files that it names
 *     master.key          the master key, only if requested
 *
 * A backup is written under a hidden name that ends in `.partial` and renamed when every file is on disk: a directory with
 * the name of a backup and a manifest is complete.
 */

/** Names in a backup. */
export const MANIFEST_FILE = 'manifest.json';
export const DATABASE_COPY = 'postrider.db';
export const KEY_COPY = 'master.key';
export const DATA_FOLDER = 'data';
export const CONFIG_FOLDER = 'config';
/** 1: backups of versions before 0.2.0, whose schemas had other numbers. */
export const FORMAT = 2;

const fileSchema = z.object({
  /** Relative to the backup, with `/`. */
  path: z.string().regex(/^(?!\/)(?!.*(^|\/)\.\.(\/|$)).+$/),
  bytes: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** Permission bits. */
  mode: z.int().min(0).max(0o777),
  /** Absolute path of the original. */
  source: z.string(),
});

const manifestSchema = z.object({
  format: z.literal(FORMAT),
  /** Version of the program that wrote the backup. */
  version: z.string(),
  /** Schema of the database. */
  schema: z.int().min(1),
  /** ISO 8601: the backup contains what was committed before. */
  createdAt: z.iso.datetime(),
  hostname: z.string(),
  instanceId: z.string().nullable(),
  generation: z.int().min(0),
  includesKey: z.boolean(),
  /** Fingerprint of the master key that the secrets need; null: there are none. */
  keyFingerprint: z.string().nullable(),
  /** Null: the program that wrote the backup could not read the schema of the database. */
  counts: z
    .object({
      accounts: z.int(),
      domains: z.int(),
      contacts: z.int(),
      messages: z.record(z.string(), z.int()),
      queued: z.int(),
      webhookDeliveries: z.int(),
    })
    .nullable(),
  files: z.array(fileSchema),
  /** Sum of all files. */
  bytes: z.int().min(0),
});

export type Manifest = z.output<typeof manifestSchema>;
export type BackupFile = z.output<typeof fileSchema>;

/** The manifest is damaged, missing or of another format. */
export class ManifestFault extends OperatorFault {}

/** The text of `manifest.json`: the fields and, last, the SHA-256 of the text without it. */
export function formatManifest(manifest: Manifest): string {
  return `${JSON.stringify({ ...manifest, sha256: digestOf(manifest) }, null, 2)}\n`;
}

/** Throws ManifestFault. */
export async function readManifest(backup: string): Promise<Manifest> {
  const file = join(backup, MANIFEST_FILE);
  let parsed: unknown;
  try {
    parsed = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) throw new ManifestFault(`${file} is damaged: it is not JSON`);
    const detail = error instanceof Error ? error.message : String(error);
    throw new ManifestFault(
      `${backup} is not a complete backup: ${MANIFEST_FILE} cannot be read (${detail})`,
    );
  }
  if (typeof parsed !== 'object' || parsed === null) throw new ManifestFault(`${file} is damaged`);
  const { sha256, ...rest }: { sha256?: unknown; format?: unknown } = parsed;
  if (typeof rest.format === 'number' && rest.format > FORMAT)
    throw new ManifestFault(`${backup} was written by a newer version of postrider: install that version`);
  if (rest.format === 1)
    throw new ManifestFault(
      `${backup} was written by a development version of postrider before 0.2.0, whose databases cannot be migrated: restore it with that version, and move its accounts with "postrider account export"`,
    );
  // The order of the fields is that of the file: the digest is over the text as it was written.
  if (sha256 !== digestOf(rest)) throw new ManifestFault(`${file} is damaged: its checksum does not match`);
  const result = manifestSchema.safeParse(rest);
  if (!result.success) {
    const [issue] = result.error.issues;
    throw new ManifestFault(`${file} is invalid: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`);
  }
  return result.data;
}

function digestOf(fields: object): string {
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex');
}
