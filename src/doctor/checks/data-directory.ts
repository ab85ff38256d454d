import { join } from 'node:path';
import { DATABASE_FILE } from '../../store/database/database.ts';
import { check } from '../context.ts';
import { failure, ok, type Result, warning } from '../finding.ts';
import { type FileFacts, fileFacts } from '../probes/disk.ts';

interface OwnerFacts {
  dir: { path: string; facts: FileFacts | null };
  /** `isInside`: it must belong to the owner of the directory. */
  files: { path: string; facts: FileFacts | null; isInside: boolean }[];
  /** The master key, unless systemd provides it and protects its directory. */
  masterKeyFile: string | null;
  hasDatabase: boolean;
  /** Whether the service runs with a key that systemd gave to it. */
  hasCredential: boolean;
  /** The user of the daemon, or of this process. */
  uid: number | null;
}

/** Where systemd makes credentials available (systemd.exec(5), LoadCredential). */
const CREDENTIALS = '/run/credentials/';

export const dataDirectoryCheck = check<OwnerFacts>({
  id: 'data-directory',
  title: 'Data directory',
  group: 'Machine',
  gather: async ({ config, machine }) => {
    const { dir, masterKeyFile } = config.data;
    const database = join(dir, DATABASE_FILE);
    const isChecked = !masterKeyFile.startsWith(CREDENTIALS);
    const directory = await fileFacts(dir);
    // Its files can usually not be examined, and the owner of the directory is the problem to report.
    const isForeign = directory !== null && isOfAnother(directory, machine.uid);
    const paths = isForeign ? [] : [...(isChecked ? [masterKeyFile] : []), database, `${database}-wal`];
    return {
      dir: { path: dir, facts: directory },
      files: await Promise.all(
        paths.map(async (path) => ({
          path,
          facts: await fileFacts(path),
          isInside: path.startsWith(`${dir}/`),
        })),
      ),
      masterKeyFile: isChecked ? masterKeyFile : null,
      hasDatabase: !isForeign && (await fileFacts(database)) !== null,
      hasCredential: !isForeign && (await fileFacts(machine.serviceKeyFile)) !== null,
      uid: machine.uid,
    };
  },
  judge: judgeOwners,
});

const OTHERS = 0o007;
const GROUP_AND_OTHERS = 0o077;

/**
 * Failures: files that other users may use or that belong to another user, and a missing master key where there is a
 * database, unless the service has it from systemd. A directory that does not exist yet is a warning alone.
 */
export function judgeOwners(facts: OwnerFacts): Result[] {
  const { dir, files, masterKeyFile, hasDatabase, hasCredential, uid } = facts;
  if (dir.facts === null)
    return [
      warning(
        dir.path,
        'The data directory does not exist yet; the first start creates it.',
        'postrider serve',
      ),
    ];
  const owner = dir.facts.uid;
  const results: Result[] = [];
  const shown = (mode: number) => mode.toString(8).padStart(3, '0');
  if ((dir.facts.mode & GROUP_AND_OTHERS) !== 0) {
    const reason = `Other users may enter the directory (mode ${shown(dir.facts.mode)}).`;
    const isOpen = (dir.facts.mode & OTHERS) !== 0;
    results.push((isOpen ? failure : warning)(dir.path, reason, `chmod 700 ${dir.path}`));
  }
  if (isOfAnother(dir.facts, uid))
    results.push(
      failure(
        dir.path,
        `The directory belongs to user ${owner}, not to user ${uid}, so that this user cannot use its files.`,
        `chown -R ${uid} ${dir.path}, unless the daemon runs as user ${owner}: then run doctor as that user`,
      ),
    );
  for (const { path, facts: file, isInside } of files) {
    if (file === null) {
      if (path === masterKeyFile && hasDatabase && !hasCredential) results.push(missingKey(path));
      continue;
    }
    if ((file.mode & GROUP_AND_OTHERS) !== 0)
      results.push(
        failure(path, `Other users may use the file (mode ${shown(file.mode)}).`, `chmod 600 ${path}`),
      );
    if (isInside && file.uid !== owner)
      results.push(
        failure(
          path,
          `The file belongs to user ${file.uid}, the directory to user ${owner}: the daemon cannot use it.`,
          `chown ${owner} ${path}`,
        ),
      );
  }
  return results.length > 0 ? results : [ok(dir.path, `Only user ${owner} may use it and its files.`)];
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
