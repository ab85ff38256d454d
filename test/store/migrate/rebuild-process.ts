import { migrateDatabase } from '../../../src/store/migrate/migrate.ts';
import { migrationsFor } from './rebuild-fixture.ts';

/** Migrates a database with a rebuild or in place, and kills itself with SIGKILL at the progress report of that number. */
const [file = '', kind = '', killAt = ''] = process.argv.slice(2);
let reports = 0;
migrateDatabase({
  file,
  migrations: migrationsFor(kind),
  chunkRows: 100,
  onProgress: () => {
    reports++;
    if (reports === Number(killAt)) process.kill(process.pid, 'SIGKILL');
  },
});
