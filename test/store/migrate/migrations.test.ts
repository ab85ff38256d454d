import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { programVersion } from '../../../src/config/version.ts';
import { openConnection } from '../../../src/store/database/connection.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { type MigrationProgress, migrateDatabase, schemaOf } from '../../../src/store/migrate/migrate.ts';
import { knownMigrations, newestOf, statementsOf } from '../../../src/store/migrate/migrations.ts';
import { schemaState, upgradeDatabase } from '../../../src/store/migrate/upgrade.ts';
import { IN_PLACE, REBUILD } from '../../support/example-migrations.ts';
import { createOldDatabase, PROGRAM } from '../../support/old-database.ts';
import { temporaryDir } from '../../support/store.ts';

describe('the statements of a migration', () => {
  it('are complete, with the triggers in one piece', () => {
    const db = openConnection(':memory:', {});
    for (const migration of knownMigrations()) {
      const statements = statementsOf(migration);
      expect(statements.join('\n').trim()).toBe(migration.sql.trim());
      for (const statement of statements) expect(() => db.exec(statement), statement).not.toThrow();
    }
    db.close();
  });

  it('are reported before each one runs', () => {
    const file = createOldDatabase(temporaryDir());
    const reports: MigrationProgress[] = [];
    migrateDatabase({
      file,
      migrations: [...PROGRAM, IN_PLACE, REBUILD],
      onProgress: (progress) => progress.step === 'migrate' && reports.push(progress),
    });
    expect(reports.map(({ item, done, total }) => `${item} ${done}/${total}`)).toEqual([
      '8001-in-place: ALTER TABLE accounts 0/8',
      '8001-in-place: UPDATE accounts SET 1/8',
      '8001-in-place: CREATE INDEX accounts_by_color 2/8',
      '8002-rebuild: CREATE TABLE strikes_next 3/8',
      '8002-rebuild: INSERT INTO strikes_next 4/8',
      '8002-rebuild: DROP TABLE strikes 5/8',
      '8002-rebuild: ALTER TABLE strikes_next 6/8',
      '8002-rebuild: CREATE INDEX strikes_by_time 7/8',
    ]);
  });
});

describe('a database of a newer program', () => {
  it('is refused with the version to install and the copy to return to, and not changed', () => {
    const dir = temporaryDir();
    openDatabase(dir).close();
    const file = join(dir, 'postrider.db');
    const db = openConnection(file, {});
    db.exec('PRAGMA user_version = 9000');
    db.prepare("UPDATE settings SET value = '9.8.7' WHERE name = 'migrated-by'").run();
    db.close();
    writeFileSync(`${file}.before-9000-1`, 'x');
    for (const open of [openDatabase, schemaState, upgradeDatabase])
      expect(() => open(dir)).toThrow(
        `has schema 9000, this program (Postrider ${programVersion()}) knows schemas up to ${newestOf(knownMigrations())}: Postrider 9.8.7 migrated it. Install that version, or stop postrider and rename postrider.db.before-9000-1 to postrider.db, which loses everything since then`,
      );
    expect(schemaOf(file)).toBe(9000);
  });
});
