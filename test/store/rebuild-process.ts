import { migrateDatabase } from '../../src/store/migrate.ts';
import { CHANGED, migrationsWith } from './rebuild-fixture.ts';

/** Migrates a database and kills itself with SIGKILL at the progress report of that number. */
const [file = '', killAt = ''] = process.argv.slice(2);
let reports = 0;
migrateDatabase({
  file,
  migrations: migrationsWith(CHANGED),
  chunkRows: 100,
  onProgress: () => {
    reports++;
    if (reports === Number(killAt)) process.kill(process.pid, 'SIGKILL');
  },
});
