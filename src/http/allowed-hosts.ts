import { isIP } from 'node:net';

/**
 * The host names under which the API is served. A web page whose name resolves to this machine (DNS rebinding) sends
 * its own name in `Host` and is refused. Addresses, `localhost` and names without a dot are always allowed: an outsider
 * cannot make them resolve to this machine.
 */
export function createHostCheck(options: {
  hostname: string;
  /** `api.hosts`: names, or `*.` and a domain. */
  hosts: readonly string[];
}): (host: string) => boolean {
  const names = new Set([options.hostname, ...options.hosts].map((name) => name.toLowerCase()));
  const suffixes = [...names].filter((name) => name.startsWith('*.')).map((name) => name.slice(1));
  return (host) => {
    // RFC 9110 §7.2: empty where the target has no authority.
    if (host === '') return true;
    const name = nameOf(host);
    if (name === null) return false;
    if (isIP(name) !== 0 || !name.includes('.') || name.endsWith('.localhost')) return true;
    return names.has(name) || suffixes.some((suffix) => name.endsWith(suffix));
  };
}

/** The name or address in a `Host` field, without port, brackets and final dot; null when there is none. */
function nameOf(host: string): string | null {
  const [, address, name] = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:@/[\]]+))(?::\d{0,5})?$/.exec(host) ?? [];
  return (address ?? name)?.toLowerCase().replace(/\.$/, '') ?? null;
}
