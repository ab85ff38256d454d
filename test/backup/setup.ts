import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type CreateOptions, createBackup } from '../../src/backup/create.ts';
import type { RestoreOptions } from '../../src/backup/restore.ts';
import { loadConfig } from '../../src/config/load.ts';
import { systemRandom } from '../../src/core/random.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { loadMasterKey, openSeal } from '../../src/store/master-key.ts';
import { createTables } from '../../src/store/tables.ts';
import { startStore, temporaryDir } from '../support/store.ts';

/** A data directory in use, with a master key and a configuration file, and functions that create backups of it. */
export async function startInstallation() {
  const store = startStore();
  const { dir, tables, writer, clock } = store;
  const file = join(temporaryDir(), 'postrider.toml');
  writeFileSync(file, `hostname = "mail.postrider.test"\n[data]\ndir = ${JSON.stringify(dir)}\n`);
  const config = loadConfig({ file, env: {} });
  const seal = await openSeal({ random: systemRandom, tables, writer }, { file: config.data.masterKeyFile });
  const backups = temporaryDir();
  return {
    ...store,
    config,
    seal,
    backups,
    backup: (options: Partial<CreateOptions> = {}) =>
      createBackup({ config, dir: backups, includeKey: false, clock, ...options }),
    /** Options of a restore into a new directory that has the master key. */
    target: ({ withKey = true } = {}): RestoreOptions => {
      const dataDir = temporaryDir();
      const masterKeyFile = join(dataDir, 'master.key');
      if (withKey) writeFileSync(masterKeyFile, readFileSync(config.data.masterKeyFile), { mode: 0o600 });
      return { dataDir, masterKeyFile, clock };
    },
    otherKey: () => {
      const key = join(temporaryDir(), 'other.key');
      loadMasterKey(key, systemRandom);
      return key;
    },
  };
}

/** Opens a data directory until the test has finished. */
export function openStore(dir: string) {
  const db = openDatabase(dir);
  const tables = createTables(db);
  const writer = createWriter(db, tables);
  onTestFinished(async () => {
    await writer.close();
    db.close();
  });
  return { db, tables, writer };
}
