import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { type Clock, DAY, SECOND } from '../../core/clock.ts';
import { abortAfter } from '../../core/concurrency/abort.ts';
import { addressesOf } from '../../dns/dns-view.ts';
import { DATABASE_FILE } from '../../store/database/database.ts';
import { formatBytes } from '../../store/migrate/upgrade.ts';
import type { DoctorContext } from '../context.ts';
import { AS_DAEMON, failure, ok, type Result, unknown, warning } from '../finding.ts';
import { type DiskFacts, diskFacts, type FileFacts, fileFacts, measureFlush } from '../probes/disk.ts';

/** End of life of the Node.js release lines that Postrider supports (https://nodejs.org/en/about/previous-releases). */
const END_OF_LIFE: Readonly<Record<number, string | undefined>> = {
  20: '2026-04-30',
  22: '2027-04-30',
  24: '2028-04-30',
};
const OLDEST = [20, 19] as const;
/** How long before its end a release line is reported. */
const NOTICE_MS = 60 * DAY;
const NODE_FIX = 'Install Node.js 24 (or 22) from https://nodejs.org/en/download, then restart postrider';

/**
 * A version below `OLDEST` is a failure. Warnings: a release line that is not listed, is past its end of life, or
 * reaches it within 60 days.
 */
export async function examineRuntime({ machine, clock }: DoctorContext): Promise<Result> {
  const version = machine.nodeVersion;
  const now = clock.now();
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const subject = `Node.js ${version}`;
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))
    return failure(subject, `Postrider needs Node.js ${OLDEST.join('.')} or newer.`, NODE_FIX);
  const end = END_OF_LIFE[major];
  if (end === undefined)
    return warning(
      subject,
      'Postrider is not tested with this release line; 22 and 24 are supported.',
      NODE_FIX,
    );
  const endsAt = Date.parse(`${end}T23:59:59Z`);
  if (now > endsAt)
    return warning(subject, `Its security support ended on ${end}; 22 and 24 are supported.`, NODE_FIX);
  if (now > endsAt - NOTICE_MS) return warning(subject, `Its security support ends on ${end}.`, NODE_FIX);
  return ok(subject, `Supported until ${end}.`);
}

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

const NTP_PORT = 123;
const NTP_TIMEOUT_MS = 3 * SECOND;
const WARNING_MS = 2 * SECOND;
/** DKIM signatures, certificates, tokens and the expiry of messages depend on the time. */
const FAILURE_MS = 60 * SECOND;

const CLOCK_FIX = 'timedatectl set-ntp true; timedatectl timesync-status';

/**
 * A difference of 2 s or more is a warning, one of 60 s or more a failure; the uncertainty of the measurement is
 * subtracted first. Unknown when no time server answered.
 */
export async function examineClock(context: DoctorContext): Promise<Result> {
  const servers = context.config.doctor.timeServers;
  for (const server of servers) {
    const measured = await measure(server, context);
    if (measured === null) continue;
    const { offsetMs, errorMs } = measured;
    const size = Math.max(0, Math.abs(offsetMs) - errorMs);
    const difference = `The clock is ${(Math.abs(offsetMs) / SECOND).toFixed(1)} s ${offsetMs > 0 ? 'ahead of' : 'behind'} ${server}`;
    if (size >= FAILURE_MS)
      return failure(
        'clock',
        `${difference}: receivers reject signatures from the future, and messages expire too early or too late.`,
        CLOCK_FIX,
      );
    if (size >= WARNING_MS) return warning('clock', `${difference}.`, CLOCK_FIX);
    return ok('clock', `Differs from ${server} by less than ${WARNING_MS / SECOND} s.`);
  }
  const asked = servers.length === 0 ? 'doctor.timeServers is empty' : `no answer from ${servers.join(', ')}`;
  return unknown('clock', `The time could not be compared: ${asked}.`, 'timedatectl status');
}

async function measure(server: string, { view, clock, monotonic, signal }: DoctorContext) {
  const [host = '', port = NTP_PORT] = server.split(':');
  const found = await addressesOf(view, host);
  const [address] = found.kind === 'records' ? found.records : [];
  if (address === undefined) return null;
  return clockOffset({ address, port: Number(port), timeoutMs: NTP_TIMEOUT_MS, signal, clock, monotonic });
}

/** One SNTP request (RFC 4330 §5, §8). */
interface SntpOptions {
  address: string;
  port: number;
  timeoutMs: number;
  signal: AbortSignal;
  clock: Clock;
  /** For the round-trip time: the clock may be set meanwhile. */
  monotonic: Clock;
}

const MESSAGE_BYTES = 48;
/** Leap indicator 0, version 4, mode 3 (client). */
const CLIENT_V4 = 0x23;
const MODE_BITS = 0x07;
const SERVER_MODE = 4;
/** Leap indicator 3: the server's own clock is not synchronized. */
const UNSYNCHRONIZED = 3;
const TRANSMIT_AT = 40;
const RECEIVE_AT = 32;
const ORIGINATE_AT = 24;
/** Seconds from 1900 to 1970. */
const NTP_EPOCH = 2_208_988_800;

/**
 * How many ms the clock is ahead of the server (negative: behind), with half the round trip as the error; null when the
 * server does not answer or its own clock is not synchronized. Never rejects.
 */
async function clockOffset(options: SntpOptions): Promise<{ offsetMs: number; errorMs: number } | null> {
  const { address, port, timeoutMs, signal, clock, monotonic } = options;
  const limit = abortAfter(timeoutMs, signal);
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  const request = Buffer.alloc(MESSAGE_BYTES);
  request[0] = CLIENT_V4;
  try {
    socket.connect(port, address);
    await once(socket, 'connect', { signal: limit });
    const sentAt = clock.now();
    const sentMonotonic = monotonic.now();
    writeTimestamp(request, sentAt, TRANSMIT_AT);
    socket.send(request);
    for (;;) {
      const [response]: Buffer[] = await once(socket, 'message', { signal: limit });
      // The server repeats our timestamp: a response to another request is ignored.
      if (response === undefined || !isAnswerTo(request, response)) continue;
      const roundTrip = monotonic.now() - sentMonotonic;
      const received = readTimestamp(response, RECEIVE_AT);
      const transmitted = readTimestamp(response, TRANSMIT_AT);
      const isUsable = response.readUInt8(0) >> 6 !== UNSYNCHRONIZED && response.readUInt8(1) !== 0;
      const offsetMs = (sentAt - received + (sentAt + roundTrip - transmitted)) / 2;
      return isUsable ? { offsetMs, errorMs: roundTrip / 2 } : null;
    }
  } catch {
    // No answer in time, or the port is closed.
    return null;
  } finally {
    socket.close();
  }
}

function isAnswerTo(request: Buffer, response: Buffer): boolean {
  return (
    response.length >= MESSAGE_BYTES &&
    (response.readUInt8(0) & MODE_BITS) === SERVER_MODE &&
    response.subarray(ORIGINATE_AT, RECEIVE_AT).equals(request.subarray(TRANSMIT_AT, MESSAGE_BYTES))
  );
}

function writeTimestamp(message: Buffer, epochMs: number, at: number): void {
  const seconds = Math.floor(epochMs / 1000);
  message.writeUInt32BE((seconds + NTP_EPOCH) >>> 0, at);
  message.writeUInt32BE(Math.floor(((epochMs - seconds * 1000) / 1000) * 2 ** 32), at + 4);
}

/** Epoch ms. The 32 bits of seconds end in 2036; values below 2^31 are of the next era (RFC 4330 §3). */
function readTimestamp(message: Buffer, at: number): number {
  const seconds = message.readUInt32BE(at);
  const era = seconds < 2 ** 31 ? 2 ** 32 : 0;
  return (seconds + era - NTP_EPOCH) * 1000 + (message.readUInt32BE(at + 4) / 2 ** 32) * 1000;
}
