import { statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { errorCode, errorText } from './errors.ts';

/** An error that the operator can fix: its message names the setting or file and the remedy, on one line. */
export class OperatorFault extends Error {}

/** First port that needs no privilege on a default Linux system (net.ipv4.ip_unprivileged_port_start). */
const FIRST_UNPRIVILEGED_PORT = 1024;

/**
 * The error of binding the address of a setting as an OperatorFault. Errors without a known cause are returned
 * unchanged.
 */
export function listenFault(
  setting: string,
  address: { host: string; port: number },
  error: unknown,
): unknown {
  const { host, port } = address;
  const message = LISTEN_FAULTS[errorCode(error)]?.(setting, host, port);
  return message === undefined ? error : new OperatorFault(message, { cause: error });
}

const LISTEN_FAULTS: Readonly<
  Record<string, ((setting: string, host: string, port: number) => string) | undefined>
> = {
  EADDRINUSE: (setting, host, port) =>
    `${setting}: port ${port} of ${host} is in use by another program. Stop that program (ss -ltnp 'sport = :${port}' shows it) or set ${setting} to another port`,
  EACCES: (setting, host, port) =>
    port < FIRST_UNPRIVILEGED_PORT
      ? `${setting}: no permission to listen on port ${port} of ${host}. Grant CAP_NET_BIND_SERVICE (AmbientCapabilities=CAP_NET_BIND_SERVICE in the systemd unit), or set ${setting} to port ${FIRST_UNPRIVILEGED_PORT} or higher and redirect port ${port} to it`
      : `${setting}: no permission to listen on port ${port} of ${host}. Set ${setting} to another port`,
  EADDRNOTAVAIL: (setting, host) =>
    `${setting}: this machine has no address ${host}. Set ${setting} to one of its addresses ("ip address" lists them), or to 0.0.0.0 for all IPv4 addresses`,
  ENOTFOUND: unknownHost,
  EAI_AGAIN: unknownHost,
  EAFNOSUPPORT: (setting, host) =>
    `${setting}: this system has no support for the address ${host}. Set ${setting} to an address of another family`,
};

function unknownHost(setting: string, host: string): string {
  return `${setting}: the host name ${host} cannot be resolved to an address. Set ${setting} to an IP address and port`;
}

/** Whether a listener could not be bound because its port is in use. */
export function isPortInUse(error: unknown): boolean {
  return errorCode(error) === 'EADDRINUSE' || (error instanceof OperatorFault && isPortInUse(error.cause));
}

/**
 * The error of reading a file as an OperatorFault. `setting`: the setting or option that names the file; null: an argument of
 * the command. `alternative`: what to do without the file.
 */
export function fileFault(
  setting: string | null,
  file: string,
  error: unknown,
  alternative?: string,
): OperatorFault {
  const fault = FILE_FAULTS[errorCode(error)];
  const [problem, remedy] = fault ?? [`cannot be read: ${errorText(error)}`, 'Correct the path'];
  const or = alternative === undefined ? '' : `, or ${alternative}`;
  const source = setting === null ? '' : `${setting}: `;
  return new OperatorFault(`${source}${file} ${problem}. ${remedy}${or}`, { cause: error });
}

/**
 * Whether the file exists. Throws an OperatorFault if this user may not read a directory of its path, where existsSync()
 * returns false. `remedy`: what to do then.
 */
export function isPresent(file: string, remedy: string): boolean {
  try {
    statSync(file);
    return true;
  } catch (error) {
    if (MISSING.has(errorCode(error))) return false;
    if (!isDenied(error)) throw error;
    throw new OperatorFault(`${file} cannot be accessed: permission denied for ${thisUser()}. ${remedy}`, {
      cause: error,
    });
  }
}

const MISSING: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);

/** Whether the system refused the access to a file. */
export function isDenied(error: unknown): boolean {
  return errorCode(error) === 'EACCES' || errorCode(error) === 'EPERM';
}

/** The user of this process for messages, such as "user postrider" or "user 990". */
export function thisUser(): string {
  const uid = process.geteuid?.() ?? null;
  try {
    return `user ${userInfo().username}`;
  } catch {
    // The user has no entry in the system's database.
    return `user ${uid ?? 'unknown'}`;
  }
}

const FILE_FAULTS: Readonly<Record<string, readonly [problem: string, remedy: string] | undefined>> = {
  ENOENT: ['does not exist', 'Create the file or correct the path'],
  ENOTDIR: ['does not exist', 'Create the file or correct the path'],
  EACCES: ['cannot be read: permission denied', 'Make it readable for the user that runs postrider'],
  EPERM: ['cannot be read: permission denied', 'Make it readable for the user that runs postrider'],
  EISDIR: ['is a directory', 'Name the file itself'],
};
