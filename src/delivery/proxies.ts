import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { ProxyAddress } from '../config/egress-settings.ts';
import type { Config } from '../config/schema.ts';
import { MINUTE, SECOND } from '../core/clock.ts';
import { errorText } from '../core/errors.ts';
import { fileFault, OperatorFault } from '../core/operator-fault.ts';
import type { Runtime } from '../core/runtime.ts';
import { oneAddressOf, type Resolver } from '../dns/resolver.ts';
import type { EgressEntry } from './egress-pools.ts';
import type { JobEgress } from './worker/protocol.ts';

/** Passwords of the proxies, by name of the entry. */
export type ProxyPasswords = ReadonlyMap<string, string>;

const RESOLVE_INTERVAL_MS = MINUTE;
const RETRY_INTERVAL_MS = 10 * SECOND;

export type EgressProxies = ReturnType<typeof createEgressProxies>;

/**
 * The SOCKS5 proxies of source addresses: their passwords, and the addresses of those that are configured by name. Resolves
 * nothing until the first `refresh`, which looks a name up every minute, after a failure every 10 s; its last known address
 * remains in use.
 */
export function createEgressProxies(
  { monotonic, log }: Pick<Runtime, 'monotonic' | 'log'>,
  { resolver, passwords }: { resolver: Pick<Resolver, 'a' | 'aaaa'>; passwords: ProxyPasswords },
) {
  let current = passwords;
  const names = new Map<string, ProxyName>();

  async function resolve(host: string, name: ProxyName): Promise<void> {
    // Until the lookup ends, `refresh` starts no other one for the name.
    name.dueAt = Number.POSITIVE_INFINITY;
    try {
      name.address = await oneAddressOf(resolver, host);
      name.isFailing = false;
    } catch (error) {
      // The last known address remains in use.
      if (!name.isFailing)
        log.warn({ host, reason: errorText(error) }, 'name of a proxy cannot be resolved; trying again');
      name.isFailing = true;
    }
    name.dueAt = monotonic.now() + (name.isFailing ? RETRY_INTERVAL_MS : RESOLVE_INTERVAL_MS);
  }

  const hostOf = ({ host }: ProxyAddress) => (isIP(host) === 0 ? names.get(host)?.address : host);

  /** Whether the address of the entry's proxy is known; true without a proxy. */
  function isResolved({ proxy }: EgressEntry): boolean {
    return proxy === undefined || hostOf(proxy) !== undefined;
  }

  /** What a worker needs of an entry. Throws for a proxy that was never resolved. */
  function jobEgress({ name, hostname, address, address6, proxy }: EgressEntry): JobEgress {
    const own = { hostname, address, address6 };
    if (proxy === undefined) return own;
    const host = hostOf(proxy);
    if (host === undefined) throw new Error(`the name ${proxy.host} of a proxy is not resolved`);
    const password = name === null ? undefined : current.get(name);
    const login = proxy.user === null || password === undefined ? {} : { user: proxy.user, password };
    return { ...own, proxy: { host, port: proxy.port, ...login } };
  }

  /** Resolves the names of proxies that are due. Call about once per second. Never rejects. */
  async function refresh(entries: readonly EgressEntry[]): Promise<void> {
    const hosts = entries.flatMap(({ proxy }) => proxy?.host ?? []);
    const used = new Set(hosts.filter((host) => isIP(host) === 0));
    for (const host of names.keys()) if (!used.has(host)) names.delete(host);
    for (const host of used)
      if (!names.has(host))
        names.set(host, { address: undefined, isFailing: false, dueAt: Number.NEGATIVE_INFINITY });
    const due = [...names].filter(([, { dueAt }]) => dueAt <= monotonic.now());
    await Promise.all(due.map(([host, name]) => resolve(host, name)));
  }

  return {
    isResolved,
    jobEgress,
    refresh,
    /** Replaces the passwords after a reload. */
    usePasswords: (next: ProxyPasswords): void => {
      current = next;
    },
  };
}

interface ProxyName {
  /** Undefined: it was never resolved. */
  address: string | undefined;
  /** The last lookup failed, which was logged. */
  isFailing: boolean;
  /** When it is looked up again (monotonic). */
  dueAt: number;
}

/** RFC 1929 §2: the length is one byte. */
const MAX_PASSWORD_BYTES = 255;

/** Reads the password files of proxies. Throws an `OperatorFault` when one cannot be used. */
export function readProxyPasswords(settings: Config['delivery']['egress']): ProxyPasswords {
  return new Map(
    settings.flatMap(({ name, proxyPasswordFile: file }) =>
      file === undefined ? [] : [[name, readPassword(name, file)] as const],
    ),
  );
}

function readPassword(name: string, file: string): string {
  let password: string;
  try {
    password = readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw fileFault(`delivery.egress, proxyPasswordFile of "${name}"`, file, error);
  }
  const bytes = Buffer.byteLength(password);
  if (bytes === 0 || bytes > MAX_PASSWORD_BYTES)
    throw new OperatorFault(
      `delivery.egress, proxyPasswordFile of "${name}": the password in ${file} has ${bytes} bytes, 1 to ${MAX_PASSWORD_BYTES} are allowed`,
    );
  return password;
}
