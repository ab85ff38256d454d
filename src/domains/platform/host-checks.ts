import ipaddr from 'ipaddr.js';
import type { Config } from '../../config/schema.ts';
import { type ListenAddress, parseListen } from '../../config/setting-types.ts';
import { addressesOf, type DnsView } from '../../dns/dns-view.ts';
import { reverseName } from '../../dns/names.ts';
import { sourceAddresses } from './egress-addresses.ts';

/** A problem of the configured host on the internet, with its remedy. The daemon logs the warnings at the start. */
export interface HostWarning {
  /** The configuration key. */
  key: string;
  message: string;
}

export type HostConfig = Pick<Config, 'hostname' | 'public' | 'mx' | 'delivery'>;

/** Checks without DNS. */
export function checkHostConfig(config: HostConfig): HostWarning[] {
  const warnings = ehloNames(config)
    .filter(({ name }) => !isFullyQualified(name))
    .map(({ key, name }) => ({
      key,
      message: `"${name}" is not a fully qualified domain name: many servers refuse mail from such a host. Set it to a name that DNS resolves to this server, such as mail.example.com`,
    }));
  const { url } = config.public;
  if (url.startsWith('http:') && !isLocalUrl(url)) {
    warnings.push({
      key: 'public.url',
      message: `${url} is not https: one-click unsubscribe needs it (RFC 8058), so marketing mail has no List-Unsubscribe-Post, which large receivers require. Set public.url to an https address`,
    });
  }
  return warnings;
}

/** Checks with DNS. A failed lookup is a warning, not an error. */
export async function checkHostDns(view: DnsView, config: HostConfig): Promise<HostWarning[]> {
  const names = ehloNames(config).filter(({ name }) => isFullyQualified(name));
  const hosts = await Promise.all(
    names.map(async ({ key, name }) => ({ key, name, found: await addressesOf(view, name) })),
  );
  const unresolved = hosts.flatMap(({ key, name, found }) => {
    if (found.kind === 'records') return [];
    const problem =
      found.kind === 'absent'
        ? 'has no address in DNS. Publish its A and AAAA records'
        : `could not be looked up: ${found.reason}. Check the resolvers (dns.resolvers) with "postrider doctor"`;
    return [{ key, message: `${name} ${problem}` }];
  });
  const own = hosts.find(({ key }) => key === 'hostname')?.found;
  const addresses = own?.kind === 'records' ? own.records : [];
  return [
    ...unresolved,
    ...loopbackWarnings(config, addresses),
    ...(await pointerWarnings(view, config, addresses)),
  ];
}

/** The names in EHLO. */
export function ehloNames({ hostname, delivery }: Pick<HostConfig, 'hostname' | 'delivery'>): {
  key: string;
  name: string;
}[] {
  const names = new Map([[hostname, 'hostname']]);
  for (const entry of delivery.egress) {
    const name = entry.hostname;
    if (name !== undefined && !names.has(name)) names.set(name, `delivery.egress "${entry.name}", hostname`);
  }
  return [...names].map(([name, key]) => ({ key, name }));
}

const LOCAL_NAME = /(?:^|\.)(?:localhost|localdomain|local|lan|internal|home\.arpa)$/;

/** At least two labels, the last one with a letter (RFC 3696 §2), and no suffix of private networks. */
export function isFullyQualified(name: string): boolean {
  return /\.[0-9-]*[a-z][a-z0-9-]*$/.test(name) && !LOCAL_NAME.test(name);
}

/** Listeners that only this machine reaches, although the host name resolves to an address that other machines reach. */
export function loopbackWarnings(
  { hostname, mx, public: pages }: HostConfig,
  addresses: readonly string[],
): HostWarning[] {
  const outside = addresses.filter((address) => !isLoopback(address));
  if (outside.length === 0) return [];
  const leadsTo = `${hostname} resolves to ${outside.join(', ')}`;
  const warnings: HostWarning[] = [];
  // A reverse proxy with the PROXY protocol connects from this machine.
  if (isLoopbackListener(mx.listen) && mx.proxyProtocol.length === 0) {
    warnings.push({
      key: 'mx.listen',
      message: `mx.listen is ${mx.listen}, which only this machine reaches, but ${leadsTo}: bounces and complaints do not arrive. Set mx.listen to "0.0.0.0:25", or redirect port 25 to it`,
    });
  }
  if (isLocalUrl(pages.url)) {
    warnings.push({
      key: 'public.url',
      message: `public.url is ${pages.url}, which only this machine reaches, but ${leadsTo}: unsubscribe and tracking links lead nowhere. Set public.url to an address that recipients reach, such as https://track.${hostname}`,
    });
    return warnings;
  }
  const serving = servingListener(pages);
  if (serving !== null && isLoopbackListener(serving.listen)) {
    warnings.push({
      key: serving.key,
      message: `${serving.key} is ${serving.listen}, which only this machine reaches, but public.url ${pages.url} leads to the same port and ${leadsTo}. Set ${serving.key} to "0.0.0.0:${new URL(pages.url).port || '80'}", or put a reverse proxy in front of it`,
    });
  }
  return warnings;
}

/** The listener that requests to `public.url` reach without a reverse proxy; null when there must be one. */
function servingListener({ url, listen, tls }: HostConfig['public']): { key: string; listen: string } | null {
  const { protocol, port } = new URL(url);
  if (protocol === 'https:')
    return tls.listen === 'off' ? null : { key: 'public.tls.listen', listen: tls.listen };
  return parseListen(listen)?.port === Number(port || 80) ? { key: 'public.listen', listen } : null;
}

/** Source addresses without forward-confirmed reverse DNS (RFC 1912 §2.1): large receivers refuse their mail. */
async function pointerWarnings(
  view: DnsView,
  { hostname, delivery }: HostConfig,
  hostAddresses: readonly string[],
): Promise<HostWarning[]> {
  const sources = sourceAddresses({ hostname, egress: delivery.egress }, hostAddresses);
  const warnings = await Promise.all(
    sources.map(async ({ address, name }): Promise<HostWarning[]> => {
      if (isLocalNetwork(address)) return [];
      const problem = await pointerProblem(view, address);
      if (problem === null) return [];
      const remedy = `Set the PTR record of ${address} to ${name} at the provider of the address, and publish ${name} with that address`;
      return [{ key: 'delivery.egress', message: `${problem}. ${remedy}` }];
    }),
  );
  return warnings.flat();
}

const CONSEQUENCE = 'large receivers refuse mail from it';

/** The problem and its consequence; null when the address is forward-confirmed. */
async function pointerProblem(view: DnsView, address: string): Promise<string | null> {
  const pointers = await view.ptr(reverseName(address));
  if (pointers.kind === 'absent') return `the source address ${address} has no PTR record: ${CONSEQUENCE}`;
  if (pointers.kind === 'unknown')
    return `the PTR record of the source address ${address} could not be looked up (${pointers.reason}); without one, ${CONSEQUENCE}`;
  const forward = await Promise.all(pointers.records.map((name) => addressesOf(view, name)));
  const same = ipaddr.parse(address).toString();
  const confirmed = forward.some(
    (found) =>
      found.kind === 'records' && found.records.some((each) => ipaddr.parse(each).toString() === same),
  );
  if (confirmed) return null;
  const unknown = forward.some(({ kind }) => kind === 'unknown');
  const names = pointers.records.join(', ');
  return unknown
    ? `the name ${names} in the PTR record of the source address ${address} could not be looked up; if it does not lead back to the address, ${CONSEQUENCE}`
    : `the PTR record of the source address ${address} names ${names}, which does not lead back to it: ${CONSEQUENCE}`;
}

/**
 * Whether the host is a loopback address, `localhost` or a name below it. Throws a TypeError for a text that is not a
 * URL; does not use DNS.
 */
export function isLocalUrl(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  return isLoopbackHost(host);
}

/** Whether `listen` has a loopback address or `localhost`. False for `off` and for a wildcard address. */
export function isLoopbackListener(listen: string): boolean {
  const address: ListenAddress | null = parseListen(listen);
  return address !== null && isLoopbackHost(address.host);
}

function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || isLoopback(host);
}

function isLoopback(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
}

const LOCAL_RANGES: ReadonlySet<string> = new Set([
  'loopback',
  'private',
  'uniqueLocal',
  'linkLocal',
  'carrierGradeNat',
]);

/** Whether the address is not public, so that it has no public reverse DNS. */
export function isLocalNetwork(address: string): boolean {
  return LOCAL_RANGES.has(ipaddr.process(address).range());
}
