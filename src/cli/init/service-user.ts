import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Installation, installationOf } from '../../config/installations.ts';
import { errorText } from '../../core/errors.ts';
import { OperatorFault } from '../../core/operator-fault.ts';

/** Ids of the user and the group that the package runs the daemon as. */
export interface ServiceUser {
  uid: number;
  gid: number;
}

/** Null when there is no such user. */
export function findUser(name: string, passwd = '/etc/passwd'): ServiceUser | null {
  let text: string;
  try {
    text = readFileSync(passwd, 'utf8');
  } catch {
    // Other sources of users are irrelevant: the package creates a local user.
    return null;
  }
  const fields = text
    .split('\n')
    .map((line) => line.split(':'))
    .find(([user]) => user === name);
  const [uid, gid] = [Number(fields?.[2]), Number(fields?.[3])];
  return Number.isInteger(uid) && Number.isInteger(gid) && uid > 0 ? { uid, gid } : null;
}

/** Whether this process is root on a machine with the package: its directory and its user exist. */
export function isPackaged(): boolean {
  const { configFile, user } = installationOf(null);
  return process.getuid?.() === 0 && existsSync(dirname(configFile)) && findUser(user) !== null;
}

/**
 * The user of an installation. That of an instance is created unless it exists (sysusers.d(5)), and removed again by `remove`;
 * the package has created the other one. Throws an OperatorFault.
 */
export function userOf({ instance, user, dataDir }: Installation): {
  owner: ServiceUser | null;
  remove(): void;
} {
  const found = findUser(user);
  if (found !== null || instance === null) return { owner: found, remove: () => {} };
  const line = `u ${user} - "Postrider mail platform, ${instance}" ${dataDir} /usr/sbin/nologin`;
  try {
    execFileSync('systemd-sysusers', ['--inline', line], { stdio: ['ignore', 'ignore', 'pipe'] });
  } catch (error) {
    throw new OperatorFault(`The user ${user} cannot be created: ${errorText(error)}`, { cause: error });
  }
  return {
    owner: findUser(user),
    // A failure would hide why the installation failed; the next attempt uses the user that remains.
    remove: () => void spawnSync('userdel', [user], { stdio: 'ignore' }),
  };
}
