import { formatBytes } from '../../store/migrate/upgrade.ts';
import type { DoctorContext } from '../context.ts';
import { AS_DAEMON, failure, ok, type Result, unknown, warning } from '../finding.ts';
import { type DiskFacts, diskFacts, fileFacts, measureFlush } from '../probes/disk.ts';

/** A disk of a small virtual machine needs 1 to 10 ms. */
const SLOW_FLUSH_MS = 30;
const VERY_SLOW_FLUSH_MS = 200;
const FEW_INODES = 1000;
const LOW_INODE_SHARE = 0.05;

/** Magic numbers of statfs(2). */
const FILE_SYSTEMS: Readonly<Record<number, [name: string, problem: string, report: typeof failure]>> = {
  0x01021994: ['tmpfs', 'it is in memory: all data is lost at a restart', failure],
  0x858458f6: ['ramfs', 'it is in memory: all data is lost at a restart', failure],
  0x6969: ['NFS', 'SQLite databases are not safe on network file systems', failure],
  0xff534d42: ['CIFS', 'SQLite databases are not safe on network file systems', failure],
  0xfe534d42: ['SMB', 'SQLite databases are not safe on network file systems', failure],
  0x01021997: ['9p', 'it does not guarantee that flushed data is on disk', warning],
  0x794c7630: ['overlayfs', 'it belongs to a container, and is deleted with it', warning],
};

/**
 * Results on free space and inodes, the time of a flush and, if it is unsafe, the file system. Less than
 * limits.freeDiskBytes, below which the daemon refuses mail, is a failure, less than twice as much a warning.
 */
export async function examineDisk({ config, signal }: DoctorContext): Promise<Result[]> {
  const { dir } = config.data;
  if ((await fileFacts(dir)) === null) return [unknown(dir, 'The data directory does not exist.')];
  const flushMs = await measureFlush(dir, signal).catch((error: unknown) => codeOf(error));
  const disk = await diskFacts(dir);
  return [
    ...judgeSpace(dir, disk, config.limits.freeDiskBytes),
    judgeFlush(dir, flushMs),
    ...judgeFileSystem(dir, disk),
  ];
}

function judgeSpace(dir: string, { freeBytes, inodes }: DiskFacts, minFreeBytes: number): Result[] {
  const free = `${formatBytes(freeBytes)} are free`;
  const results: Result[] = [];
  const fix = `du -xh --max-depth=1 ${dir} | sort -h`;
  if (freeBytes < minFreeBytes)
    results.push(
      failure(
        `${dir}: free space`,
        `Only ${free}: below limits.freeDiskBytes mail and new data are refused with 503.`,
        fix,
      ),
    );
  else if (freeBytes < 2 * minFreeBytes)
    results.push(
      warning(`${dir}: free space`, `Only ${free}; below ${formatBytes(minFreeBytes)} mail is refused.`, fix),
    );
  else results.push(ok(`${dir}: free space`, `${free}.`));
  if (inodes === null) return results;
  const subject = `${dir}: inodes`;
  const find = `find ${dir} -xdev -type f | wc -l`;
  if (inodes.free < FEW_INODES) results.push(failure(subject, `Only ${inodes.free} inodes are free.`, find));
  else if (inodes.free < inodes.total * LOW_INODE_SHARE)
    results.push(warning(subject, `Only ${inodes.free} of ${inodes.total} inodes are free.`, find));
  return results;
}

/** `flushMs`: median time of a flush, ms; an error code: it failed. */
function judgeFlush(dir: string, flushMs: number | string): Result {
  const subject = `${dir}: fdatasync`;
  if (typeof flushMs === 'string') {
    const isFull = flushMs === 'ENOSPC' || flushMs === 'EDQUOT';
    if (isFull)
      return failure(
        subject,
        `Nothing can be written: the disk is full (${flushMs}).`,
        `df -h ${dir}; df -i ${dir}`,
      );
    const reason = `A test file could not be written (${flushMs}).`;
    return flushMs === 'EACCES' || flushMs === 'EPERM'
      ? unknown(subject, reason, AS_DAEMON)
      : failure(subject, reason, 'dmesg --level=err,warn | tail -n 50');
  }
  const time = `A flush takes ${flushMs < 1 ? flushMs.toFixed(2) : Math.round(flushMs)} ms (median of 4 KiB writes)`;
  if (flushMs >= VERY_SLOW_FLUSH_MS)
    return failure(subject, `${time}: every accepted message waits for one.`, `iostat -x 5 3`);
  if (flushMs >= SLOW_FLUSH_MS)
    return warning(subject, `${time}, which limits how much mail is accepted.`, 'iostat -x 5 3');
  return ok(subject, `${time}.`);
}

function judgeFileSystem(dir: string, { type }: DiskFacts): Result[] {
  const found = FILE_SYSTEMS[type];
  if (found === undefined) return [];
  const [name, problem, report] = found;
  const reason = `The data directory is on ${name}: ${problem}.`;
  const fix =
    'Set data.dir to a directory on a local disk and move the files there while the daemon is stopped';
  return [report(`${dir}: file system`, reason, fix)];
}

function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  throw error;
}
