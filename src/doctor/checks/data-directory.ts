import { join } from 'node:path';
import { DATABASE_FILE } from '../../store/database/database.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, type Result, warning } from '../finding.ts';
import { type FileFacts, fileFacts } from '../probes/disk.ts';

/** Where systemd makes credentials available (systemd.exec(5), LoadCredential). */
const CREDENTIALS = '/run/credentials/';
const OTHERS = 0o007;
const GROUP_AND_OTHERS = 0o077;

/**
 * Failures: files that other users may use or that belong to another user, and a missing master key where there is a
 * database, unless the service has it from systemd. A directory that does not exist yet is a warning alone.
 */
export async function examineDataDirectory({ config, machine }: DoctorContext): Promise<Result[]> {
  const { dir, masterKeyFile } = config.data;
  const { uid } = machine;
  const directory = await fileFacts(dir);
  if (directory === null)
    return [
      warning(dir, 'The data directory does not exist yet; the first start creates it.', 'postrider serve'),
    ];
  const owner = directory.uid;
  const results: Result[] = [];
  const shown = (mode: number) => mode.toString(8).padStart(3, '0');
  if ((directory.mode & GROUP_AND_OTHERS) !== 0) {
    const reason = `Other users may enter the directory (mode ${shown(directory.mode)}).`;
    const isOpen = (directory.mode & OTHERS) !== 0;
    results.push((isOpen ? failure : warning)(dir, reason, `chmod 700 ${dir}`));
  }
  if (isOfAnother(directory, uid)) {
    // Its files can usually not be examined, and the owner of the directory is the problem to report.
    results.push(
      failure(
        dir,
        `The directory belongs to user ${owner}, not to user ${uid}, so that this user cannot use its files.`,
        `chown -R ${uid} ${dir}, unless the daemon runs as user ${owner}: then run doctor as that user`,
      ),
    );
    return results;
  }
  const database = join(dir, DATABASE_FILE);
  // Unless systemd provides the key and protects its directory.
  const isKeyChecked = !masterKeyFile.startsWith(CREDENTIALS);
  for (const path of [...(isKeyChecked ? [masterKeyFile] : []), database, `${database}-wal`]) {
    const file = await fileFacts(path);
    if (file === null) {
      const isMissing = path === masterKeyFile && (await fileFacts(database)) !== null;
      if (isMissing && (await fileFacts(machine.serviceKeyFile)) === null) results.push(missingKey(path));
      continue;
    }
    if ((file.mode & GROUP_AND_OTHERS) !== 0)
      results.push(
        failure(path, `Other users may use the file (mode ${shown(file.mode)}).`, `chmod 600 ${path}`),
      );
    if (path.startsWith(`${dir}/`) && file.uid !== owner)
      results.push(
        failure(
          path,
          `The file belongs to user ${file.uid}, the directory to user ${owner}: the daemon cannot use it.`,
          `chown ${owner} ${path}`,
        ),
      );
  }
  return results.length > 0 ? results : [ok(dir, `Only user ${owner} may use it and its files.`)];
}

/** Whether another user owns the directory. The superuser may use directories of all users. */
function isOfAnother({ uid }: FileFacts, self: number | null): boolean {
  return self !== null && self !== 0 && uid !== self;
}

function missingKey(path: string): Result {
  return failure(
    path,
    'The master key is missing: without it the DKIM keys and secrets in the database cannot be read, and the daemon does not start.',
    `Restore ${path} from the copy of the key, unless systemd provides it (LoadCredential): then start the service. If the key is lost, see docs/lost-master-key.md`,
  );
}
