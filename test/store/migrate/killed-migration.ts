import { migrateDatabase } from '../../../src/store/migrate/migrate.ts';
import { knownMigrations } from '../../../src/store/migrate/migrations.ts';
import { IN_PLACE, REBUILD } from '../../support/example-migrations.ts';

/** Migrates a database, and kills itself with SIGKILL when the named step has reported progress `killAt` times. */
const [file = '', step = '', killAt = ''] = process.argv.slice(2);
let reports = 0;
migrateDatabase({
  file,
  migrations: [...knownMigrations(), IN_PLACE, REBUILD],
  onProgress: (progress) => {
    if (progress.step === step) reports++;
    if (reports === Number(killAt)) process.kill(process.pid, 'SIGKILL');
  },
});
throw new Error(`the step ${step} did not report progress ${killAt} times`);
