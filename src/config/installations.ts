import { dirname } from 'node:path';

/*
 * Where the package puts things. A machine has one daemon, or several instances by name, which share the program only:
 *
 *                   the only daemon                   the instance "a"
 *   configuration   /etc/postrider/postrider.toml     /etc/postrider-a/postrider.toml
 *   data            /var/lib/postrider                /var/lib/postrider-a
 *   user            postrider                         postrider-a
 *   unit            postrider.service                 postrider@a.service
 *
 * .packaging/postrider.sh and the scripts of the packages know the same names.
 */
export interface Installation {
  /** Null: the only daemon. */
  instance: string | null;
  configFile: string;
  dataDir: string;
  /** Owns the data; its group reads the configuration. */
  user: string;
  /** Without `.service`. */
  unit: string;
}

/** Of the only daemon, or of an instance. */
export function installationOf(instance: string | null): Installation {
  const name = instance === null ? 'postrider' : `postrider-${instance}`;
  return {
    instance,
    configFile: `/etc/${name}/postrider.toml`,
    dataDir: `/var/lib/${name}`,
    user: name,
    unit: instance === null ? 'postrider' : `postrider@${instance}`,
  };
}

/** A user name has at most 31 characters (systemd), and a unit name needs no escapes. */
const INSTANCE = '[a-z](?:[a-z0-9-]{0,18}[a-z0-9])?';
const INSTANCE_NAME = new RegExp(`^${INSTANCE}$`);
const DIRECTORY = new RegExp(`^/etc/postrider(?:-(${INSTANCE}))?$`);

export function isInstanceName(text: string): boolean {
  return INSTANCE_NAME.test(text);
}

/** The installation whose directory contains a configuration file (an absolute path); null: it belongs to none. */
export function installationAt(file: string | null): Installation | null {
  const match = file === null ? null : DIRECTORY.exec(dirname(file));
  return match === null ? null : installationOf(match[1] ?? null);
}

/** The unit that runs a configuration, for commands in advice. */
export function unitOf(file: string | null): string {
  return (installationAt(file) ?? installationOf(null)).unit;
}

/** Commands in a text for the only daemon, such as `systemctl restart postrider`, as those of the daemon of a file. */
export function adviceFor(text: string, file: string | null): string {
  const installation = installationAt(file);
  if (installation === null || installation.instance === null) return text;
  const { instance, unit } = installation;
  return text
    .replaceAll(/\b(systemctl [a-z-]+|journalctl -u) postrider\b/g, `$1 ${unit}`)
    .replaceAll(/(^|[;:] |")postrider (?=[a-z])/g, `$1postrider --instance ${instance} `);
}
