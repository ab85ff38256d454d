import { join } from 'node:path';
import { systemRandom } from '../core/random.ts';
import { createSeal, type MasterKeys } from '../core/seal.ts';
import type { DatabaseContent, SealedSample } from '../store/backup/content.ts';
import { type Copier, createCopier, type TaskKind, type TaskProgress } from '../store/backup/copy.ts';
import { StoreFault } from '../store/database/failure.ts';
import { formerKeyFiles, readMasterKey, unlockKeys } from '../store/master-key.ts';
import { knownMigrations, newestOf } from '../store/migrate/migrations.ts';
import { statIfExists } from './files.ts';
import {
  type BackupFile,
  DATABASE_COPY,
  KEY_COPY,
  type Manifest,
  ManifestFault,
  readManifest,
} from './manifest.ts';

export interface BackupVerifyOptions {
  /** The master key that is tested when the backup does not include one; it need not exist. */
  masterKeyFile: string;
  onProgress?(step: TaskKind, progress: TaskProgress): void;
}

/** `unavailable`: the backup needs a key, and there is none to test. */
export type KeyResult = 'not needed' | 'fits' | 'does not fit' | 'unavailable';

export interface VerifiedBackup {
  path: string;
  /** Null: it cannot be read. */
  manifest: Manifest | null;
  key: KeyResult;
  /** What is wrong; empty: the backup is complete and undamaged. */
  problems: string[];
}

/** Reads at full speed: the operator waits. */
const UNLIMITED = Number.POSITIVE_INFINITY;

/**
 * Checks a backup: every file against its checksum, the integrity of the database, whether this version can restore it,
 * and whether the master key opens what is sealed in it. Changes nothing.
 */
export async function verifyBackup(path: string, options: BackupVerifyOptions): Promise<VerifiedBackup> {
  const problems: string[] = [];
  let manifest: Manifest;
  try {
    manifest = await readManifest(path);
  } catch (error) {
    if (!(error instanceof ManifestFault)) throw error;
    return { path, manifest: null, key: 'unavailable', problems: [error.message] };
  }
  const { onProgress } = options;
  const copier = createCopier({
    bytesPerSecond: UNLIMITED,
    ...(onProgress === undefined ? {} : { onProgress }),
  });
  try {
    const key = await examine({ path, manifest, problems, copier, masterKeyFile: options.masterKeyFile });
    return { path, manifest, key, problems };
  } finally {
    await copier.close();
  }
}

interface Examination {
  path: string;
  manifest: Manifest;
  /** Problems that are found are added. */
  problems: string[];
  copier: Copier;
  masterKeyFile: string;
}

async function examine({ path, manifest, problems, copier, masterKeyFile }: Examination): Promise<KeyResult> {
  for (const file of manifest.files) problems.push(...(await faultsOf(path, file, copier.hash)));
  const newest = newestOf(knownMigrations());
  if (manifest.schema > newest)
    problems.push(
      `The database has schema ${manifest.schema}, this version knows schemas up to ${newest}: install version ${manifest.version} or newer`,
    );
  if (!manifest.files.some((file) => file.path === DATABASE_COPY)) {
    problems.push(`${DATABASE_COPY} is not in the manifest`);
    return 'unavailable';
  }
  let content: DatabaseContent;
  try {
    content = await copier.check(join(path, DATABASE_COPY));
  } catch (error) {
    problems.push(
      `${DATABASE_COPY} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
    return 'unavailable';
  }
  for (const finding of content.damage ?? []) problems.push(`${DATABASE_COPY} is damaged: ${finding}`);
  if (content.schema !== manifest.schema)
    problems.push(`${DATABASE_COPY} has schema ${content.schema}, the manifest ${manifest.schema}`);
  const keyFile = manifest.includesKey ? join(path, KEY_COPY) : masterKeyFile;
  let key = await testKey(keyFile, content);
  // A backup from before the key was replaced needs the former key.
  if (key === 'does not fit' && !manifest.includesKey)
    for (const former of formerKeyFiles(masterKeyFile))
      if ((await testKey(former, content)) === 'fits') key = 'fits';
  if (key === 'does not fit')
    problems.push(
      `${keyFile} is not the master key of this backup: if that key is lost, see docs/lost-master-key.md`,
    );
  return key;
}

async function faultsOf(
  backup: string,
  { path, bytes, sha256 }: BackupFile,
  hash: (file: string) => Promise<string>,
): Promise<string[]> {
  const file = join(backup, path);
  const found = await statIfExists(file);
  if (found === null) return [`${path} is missing`];
  if (found.size !== bytes) return [`${path} has ${found.size} bytes, the manifest ${bytes}`];
  return (await hash(file)) === sha256 ? [] : [`${path} is damaged: its checksum does not match`];
}

async function testKey(
  file: string,
  { keyFingerprint: needed, keyRing, sealed }: DatabaseContent,
): Promise<KeyResult> {
  if (needed === null) return 'not needed';
  if ((await statIfExists(file)) === null) return 'unavailable';
  const key = readIfKey(file);
  const keys = key && unlockKeys({ fingerprint: needed, ring: keyRing }, [key]);
  if (keys === null) return 'does not fit';
  return sealed === null || opens(keys, sealed) ? 'fits' : 'does not fit';
}

/** Null when the file does not contain a key. */
function readIfKey(file: string): Buffer | null {
  try {
    return readMasterKey(file);
  } catch (error) {
    if (error instanceof StoreFault) return null;
    throw error;
  }
}

function opens(keys: MasterKeys, { sealed, context }: SealedSample): boolean {
  try {
    createSeal(() => keys, systemRandom).open(Buffer.from(sealed), context);
    return true;
  } catch {
    // `open` throws for every value that this key does not open.
    return false;
  }
}
