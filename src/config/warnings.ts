import { accessSync, constants, statSync } from 'node:fs';
import ipaddr from 'ipaddr.js';
import { errorCode, errorText } from '../core/errors.ts';
import type { ConfigIssue, ConfigSources } from './load.ts';
import type { Config } from './schema.ts';
import { isAnyAddress, parseListen } from './setting-types.ts';
import { allSettings, namedFiles, valueAt } from './settings.ts';

/**
 * Valid settings that are probably mistakes: missing files, secrets that others can read, listeners that the internet
 * reaches without TLS, contradictory values. Reads files; uses no DNS and opens no listener.
 */
export function configWarnings(sources: ConfigSources, config: Config): ConfigIssue[] {
  return [
    ...secretWarnings(sources),
    ...fileWarnings(config),
    ...listenerWarnings(config),
    ...sameListeners(config).filter(({ key }) => key === CONSOLE),
    ...nameServerWarnings(config),
    ...poolWarnings(config),
    ...valueWarnings(config),
  ];
}

/** Secrets in the environment, which child processes and /proc show, or in the configuration file. */
export function secretWarnings({ tree, variables }: ConfigSources): ConfigIssue[] {
  return allSettings().flatMap(({ name, path, isSecret }) => {
    if (!isSecret || valueAt(tree, path) === undefined) return [];
    const variable = variables.get(name);
    const place = variable === undefined ? 'the configuration file' : `the environment variable ${variable}`;
    return [{ key: name, message: `is a secret in ${place}: put it in a file and name it in ${name}File` }];
  });
}

/** The master key is examined separately. */
function fileWarnings(config: Config): ConfigIssue[] {
  const named = namedFiles(config).filter(({ name }) => name !== 'data.masterKeyFile');
  return [
    ...named.flatMap(({ name, key, file }) => problemOfFile(name, file, !PUBLIC_FILES.has(key))),
    ...masterKeyWarnings(config),
  ];
}

/** All other files contain a secret. */
const PUBLIC_FILES: ReadonlySet<string> = new Set(['certificateFile', 'directoryCaFile', 'caFile']);
const OTHERS_CAN_READ = 0o004;

function problemOfFile(key: string, file: string, isPrivate: boolean): ConfigIssue[] {
  try {
    accessSync(file, constants.R_OK);
    const stats = statSync(file);
    if (!stats.isFile() && !stats.isFIFO()) return [{ key, message: `${file} is not a file` }];
    if (isPrivate && (stats.mode & OTHERS_CAN_READ) !== 0)
      return [
        {
          key,
          message: `${file} is a secret that every user of this machine can read: run "chmod o= ${file}"`,
        },
      ];
    return [];
  } catch (error) {
    const problem = errorCode(error) === 'ENOENT' ? 'does not exist' : `cannot be read: ${errorText(error)}`;
    return [{ key, message: `${file} ${problem}` }];
  }
}

function masterKeyWarnings({ data }: Config): ConfigIssue[] {
  try {
    const { mode } = statSync(data.masterKeyFile);
    return (mode & OTHERS_CAN_READ) === 0
      ? []
      : [
          {
            key: 'data.masterKeyFile',
            message: `${data.masterKeyFile} is a secret that every user of this machine can read: run "chmod 600 ${data.masterKeyFile}"`,
          },
        ];
  } catch {
    // The first start creates the file; only the daemon's user can examine its directory.
    return [];
  }
}

/** A UDP response of a wildcard socket may have another source address than the query was sent to. */
function nameServerWarnings({ dns: { server } }: Config): ConfigIssue[] {
  const addresses = typeof server.listen === 'string' ? [server.listen] : server.listen;
  return addresses
    .filter((listen) => ['0.0.0.0', '::'].includes(parseListen(listen)?.host ?? ''))
    .map((listen) => ({
      key: 'dns.server.listen',
      message: `${listen} is every address of this machine, so a UDP response may have another source address than the query was sent to: name the addresses, such as ["192.0.2.1:53"]`,
    }));
}

function listenerWarnings({ api, mx, submission }: Config): ConfigIssue[] {
  const warnings: ConfigIssue[] = [];
  if (isPublicListener(api.listen))
    warnings.push({
      key: 'api.listen',
      message: `${api.listen} serves the API without TLS to other machines, so that keys can be read on the way: listen on 127.0.0.1 behind a reverse proxy, or on an address of a private network`,
    });
  if (submission.listen !== 'off' && isPublicListener(submission.listen)) {
    if (submission.tls.certificateFile === undefined && mx.tls.certificateFile === undefined)
      warnings.push({
        key: 'submission.tls',
        message:
          'there is no certificate, so a self-signed one is generated, which mail programs reject: set certificateFile and keyFile',
      });
  }
  return warnings;
}

const CONSOLE = 'console.listen';

/** Listeners with the address of another one, except the console, which is then off: the start fails. */
export function listenerConflicts(config: Config): ConfigIssue[] {
  return sameListeners(config).filter(({ key }) => key !== CONSOLE);
}

/** The TCP listeners by setting; their values may be "off". */
export function listenersOf({ api, public: pages, console: webConsole, mx, submission }: Config) {
  return [
    ['api.listen', api.listen],
    ['public.listen', pages.listen],
    ['public.tls.listen', pages.tls.listen],
    ['mx.listen', mx.listen],
    ['submission.listen', submission.listen],
    [CONSOLE, webConsole.listen],
  ] as const;
}

function sameListeners(config: Config): ConfigIssue[] {
  const listeners = listenersOf(config);
  return listeners.flatMap(([key, listen], index) => {
    const other = listeners.slice(0, index).find(([, earlier]) => isSameListener(earlier, listen));
    return other === undefined
      ? []
      : [{ key, message: `${listen} is also used by ${other[0]}: only one of them can listen` }];
  });
}

const NOT_PUBLIC = new Set(['loopback', 'private', 'uniqueLocal', 'linkLocal', 'carrierGradeNat']);

/** Whether other networks may reach the listener: all addresses, or a public one. */
function isPublicListener(listen: string): boolean {
  const host = parseListen(listen)?.host ?? '';
  if (!ipaddr.isValid(host)) return host !== 'localhost';
  return !NOT_PUBLIC.has(ipaddr.process(host).range());
}

/** Whether only one of two listeners can be bound: their ports are the same, and their addresses overlap. */
export function isSameListener(one: string, other: string): boolean {
  const [a, b] = [parseListen(one), parseListen(other)];
  if (a === null || b === null || a.port !== b.port || a.port === 0) return false;
  return a.host === b.host || isAnyAddress(a) || isAnyAddress(b);
}

/** Pools without a source address use those of "default". */
function poolWarnings({ regions, delivery, secondary }: Config): ConfigIssue[] {
  if (delivery.egress.length === 0) return [];
  const pools = new Set(['default', ...delivery.egress.flatMap((entry) => entry.pools)]);
  const used = [
    ...regions.flatMap(({ pools: { tx, mk } }, index) => [
      { key: `regions[${index}].pools.tx`, pool: tx },
      { key: `regions[${index}].pools.mk`, pool: mk },
    ]),
    // The name of the default is used without separate addresses.
    ...(secondary.type === 'builtin' && secondary.pool !== 'secondary'
      ? [{ key: 'secondary.pool', pool: secondary.pool }]
      : []),
  ];
  return used
    .filter(({ pool }) => !pools.has(pool))
    .map(({ key, pool }) => ({
      key,
      message: `no entry of delivery.egress is in the pool "${pool}": the pool "default" is used`,
    }));
}

function valueWarnings({ delivery, limits }: Config): ConfigIssue[] {
  const { retry } = delivery;
  const warnings: ConfigIssue[] = [];
  if (retry.first > retry.max)
    warnings.push({ key: 'delivery.retry.first', message: 'is longer than delivery.retry.max' });
  for (const key of ['expireTransactional', 'expireMarketing'] as const)
    if (retry[key] <= retry.first)
      warnings.push({
        key: `delivery.retry.${key}`,
        message: 'is not longer than delivery.retry.first: deferred messages expire without a second attempt',
      });
  if (delivery.allowPrivateNetworks)
    warnings.push({
      key: 'delivery.allowPrivateNetworks',
      message:
        'is true: a domain whose MX record names an internal address makes Postrider connect to it. Use delivery.routes for internal servers',
    });
  if (limits.bodyDays > limits.eventDays)
    warnings.push({
      key: 'limits.bodyDays',
      message: 'is longer than limits.eventDays: bodies are deleted with their messages',
    });
  return warnings;
}
