import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { ProxyAddress } from '../../config/egress-settings.ts';
import type { Config } from '../../config/schema.ts';
import { type Clock, MINUTE } from '../../core/clock.ts';
import { errorText } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { fileFault, OperatorFault } from '../../core/operator-fault.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { EgressEntry } from '../routing/egress.ts';
import type { JobEgress } from '../worker/protocol.ts';

/** The SOCKS5 proxies of source addresses: their passwords, and the addresses of those that are configured by name. */
export interface EgressProxies {
  /** Whether the address of the entry's proxy is known; true without a proxy. */
  isResolved(entry: EgressEntry): boolean;
  /** What a worker needs of an entry whose proxy is resolved. */
  jobEgress(entry: EgressEntry): JobEgress;
  /** Replaces the passwords after a reload. */
  usePasswords(passwords: ProxyPasswords): void;
  /** Resolves the names of proxies. Call periodically. */
  refresh(entries: readonly EgressEntry[]): Promise<void>;
}

/** By name of the entry. */
export type ProxyPasswords = ReadonlyMap<string, string>;

export interface EgressProxiesDeps {
  resolver: Pick<Resolver, 'a' | 'aaaa'>;
  monotonic: Clock;
  log: Log;
}

const RESOLVE_INTERVAL_MS = MINUTE;

export function createEgressProxies(deps: EgressProxiesDeps, passwords: ProxyPasswords): EgressProxies {
  const { resolver, monotonic, log } = deps;
  let current = passwords;
  const resolved = new Map<string, { address: string; at: number }>();

  async function resolve(host: string): Promise<void> {
    try {
      const { records } = await resolver.a(host).catch(() => resolver.aaaa(host));
      const [address] = records;
      if (address !== undefined) resolved.set(host, { address, at: monotonic.now() });
    } catch (error) {
      // The last known address remains in use.
      log.warn({ host, reason: errorText(error) }, 'name of a proxy could not be resolved');
    }
  }

  const hostOf = ({ host }: ProxyAddress) => (isIP(host) === 0 ? resolved.get(host)?.address : host);

  return {
    isResolved: ({ proxy }) => proxy === undefined || hostOf(proxy) !== undefined,
    jobEgress: ({ name, hostname, address, address6, proxy }) => {
      const own = {
        hostname,
        ...(address === undefined ? {} : { address }),
        ...(address6 === undefined ? {} : { address6 }),
      };
      if (proxy === undefined) return own;
      const host = hostOf(proxy);
      if (host === undefined) throw new Error(`the name ${proxy.host} of a proxy is not resolved`);
      const password = name === null ? undefined : current.get(name);
      const login = proxy.user === null || password === undefined ? {} : { user: proxy.user, password };
      return { ...own, proxy: { host, port: proxy.port, ...login } };
    },
    usePasswords: (next) => {
      current = next;
    },
    refresh: async (entries) => {
      const names = new Set(
        entries.flatMap(({ proxy }) => (proxy === undefined || isIP(proxy.host) !== 0 ? [] : [proxy.host])),
      );
      for (const host of resolved.keys()) if (!names.has(host)) resolved.delete(host);
      const stale = [...names].filter((host) => {
        const at = resolved.get(host)?.at ?? Number.NEGATIVE_INFINITY;
        return monotonic.now() - at >= RESOLVE_INTERVAL_MS;
      });
      await Promise.all(stale.map(resolve));
    },
  };
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
