import { join } from 'node:path';
import { DATABASE_FILE } from '../../store/database/database.ts';
import { checkIntegrity, type IntegrityResult } from '../../store/maintenance/integrity.ts';
import { formatBytes } from '../../store/migrate/upgrade.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, quoted, type Result, unknown, warning } from '../finding.ts';
import { fileFacts } from '../probes/disk.ts';

/**
 * Damage is a failure; unknown when there is no database, or the check did not end or could not run. A fault on opening
 * is a result in addition.
 */
export async function examineIntegrity(context: DoctorContext): Promise<Result[]> {
  const { config, database, integrityMs, signal } = context;
  const file = join(config.data.dir, DATABASE_FILE);
  const results = database.kind === 'closed' ? [database.finding] : [];
  if ((await fileFacts(file)) === null)
    return results.length > 0 ? results : [unknown(file, 'There is no database.')];
  const result = await checkIntegrity(file, { timeoutMs: integrityMs, signal });
  return [...results, judgeResult(file, result)];
}

function judgeResult(file: string, { outcome, tables, examined, problems }: IntegrityResult): Result {
  const first = problems
    .slice(0, 3)
    .map((problem) => quoted(problem))
    .join(' | ');
  switch (outcome) {
    case 'intact':
      return ok(file, `${tables} tables with their indexes are intact.`);
    case 'damaged':
      return failure(
        file,
        `The database is damaged: ${first}`,
        `Stop the daemon, copy the files, then restore a backup or run: sqlite3 ${file} .recover | sqlite3 recovered.db`,
      );
    case 'incomplete':
      return unknown(
        file,
        `The check did not end in time: ${examined} of ${tables} tables are intact.`,
        'postrider doctor --integrity-timeout 3600',
      );
    default:
      return unknown(file, `The check could not run: ${first}`);
  }
}

/** The daemon copies the log at 16 MB; it grows beyond that only while a reader needs it or the disk is too slow. */
const LARGE_LOG_BYTES = 128 * 2 ** 20;
const HUGE_LOG_BYTES = 2 ** 30;

/**
 * From 128 MiB on the log is a warning, from 1 GiB on a failure: the daemon copies it at 16 MB unless a reader or a
 * slow disk prevents that.
 */
export async function examineWriteAheadLog({ config }: DoctorContext): Promise<Result> {
  const file = join(config.data.dir, `${DATABASE_FILE}-wal`);
  const bytes = (await fileFacts(file))?.bytes ?? 0;
  const size = `The log has ${formatBytes(bytes)}`;
  const fix = `fuser -v ${file}; end the process that reads the database for a long time`;
  if (bytes >= HUGE_LOG_BYTES)
    return failure(
      file,
      `${size}: a reader or a slow disk keeps it from being emptied, and it fills the disk.`,
      fix,
    );
  if (bytes >= LARGE_LOG_BYTES) return warning(file, `${size}: a reader keeps it from being emptied.`, fix);
  return ok(file, `${size}.`);
}
