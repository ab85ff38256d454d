import type { RateLimitOptions, RateLimits } from './accounts/rate-limits.ts';
import { assignLive, type ConfigChanges, changesBetween, reloadedConfig } from './config/reload.ts';
import type { Config } from './config/schema.ts';
import type { Log } from './core/log.ts';
import { readCertificatesFile } from './core/tls-pair.ts';
import type { Delivery } from './delivery/delivery.ts';
import { readPasswords } from './delivery/prepare.ts';
import { readProxyPasswords } from './delivery/proxies.ts';
import { configuredAuthorities } from './delivery/tls-policies.ts';
import type { ConfigurableResolver } from './dns/resolver.ts';
import { parseTrust } from './http/caller-address.ts';
import { certificateFilesOf, verifyCertificateFiles } from './smtp/certificate.ts';

/*
 * Changes of the configuration while the daemon runs. Most parts read their settings from the shared configuration at
 * each use, so that replacing a setting there suffices; the parts below store values derived from it.
 */
interface ReloadedParts {
  /** The configuration in force, which a reload changes. */
  config: Config;
  log: Log;
  /** Null if the resolver was created by the caller of the daemon, which configures it. */
  resolver: ConfigurableResolver | null;
  delivery: Pick<Delivery, 'reload'>;
  rateLimits: Pick<RateLimits, 'configure'>;
}

/** Reloads run one after the other. */
export function createReload(parts: ReloadedParts): (next: Config) => Promise<ConfigChanges> {
  let previous: Promise<unknown> = Promise.resolve();
  return (next) => {
    const reload = previous.then(() => run(parts, next));
    previous = reload.catch(() => {
      // Reported to the caller of that reload.
    });
    return reload;
  };
}

async function run(
  { config, log, resolver, delivery, rateLimits }: ReloadedParts,
  next: Config,
): Promise<ConfigChanges> {
  const changes = changesBetween(config, next);
  // All steps that can fail run before the first change.
  const result = reloadedConfig(config, next);
  const passwords = readPasswords(result);
  const proxyPasswords = readProxyPasswords(result.delivery.egress);
  for (const { verify } of namedParts(result)) await verify();
  // The following steps are synchronous, so that no request sees only a part of the changes.
  assignLive(config, next);
  const isChanged = (prefix: string) => changes.applied.some((name) => name.startsWith(prefix));
  log.level = config.log.level;
  if (isChanged('dns.')) resolver?.configure(config.dns);
  if (RATE_SETTINGS.some(isChanged)) rateLimits.configure(rateLimitsOf(config.limits));
  delivery.reload(passwords, proxyPasswords);
  return changes;
}

/**
 * What the settings name and a start or a reload reads. `verify` throws an OperatorFault when it cannot be used; `key` is the
 * setting, or its section.
 */
export function namedParts(config: Config): { key: string; verify(): unknown }[] {
  const { directoryCaFile, listen } = config.public.tls;
  return [
    ...(['api', 'public', 'console'] as const).map((section) => {
      const key = `${section}.trustedProxies`;
      return { key, verify: () => parseTrust(config[section].trustedProxies, key) };
    }),
    { key: 'delivery.routes', verify: () => readPasswords(config) },
    { key: 'delivery.egress', verify: () => readProxyPasswords(config.delivery.egress) },
    { key: 'delivery.tls.caFile', verify: () => configuredAuthorities(config) },
    ...(directoryCaFile === undefined || listen === 'off'
      ? []
      : [
          {
            key: 'public.tls.directoryCaFile',
            verify: () => readCertificatesFile('public.tls.directoryCaFile', directoryCaFile),
          },
        ]),
    ...certificateFilesOf(config).map(({ files }) => ({
      key: files.section,
      verify: () => verifyCertificateFiles(files),
    })),
  ];
}

const RATE_SETTINGS = [
  'limits.setupPerSecond',
  'limits.setupBurst',
  'limits.sendPerSecond',
  'limits.account.setupPerSecond',
  'limits.account.setupBurst',
];

/** The rates of keys and accounts. */
export function rateLimitsOf(limits: Config['limits']): RateLimitOptions {
  const { setupPerSecond, setupBurst, sendPerSecond, account } = limits;
  return {
    setup: { burst: setupBurst, perSecond: setupPerSecond },
    send: sendPerSecond === undefined ? null : { burst: sendPerSecond, perSecond: sendPerSecond },
    account: {
      setup: {
        burst: account.setupBurst ?? 2 * setupBurst,
        perSecond: account.setupPerSecond ?? 2 * setupPerSecond,
      },
    },
  };
}
