import { getDomain } from 'tldts';
import { readProgramFile } from '../config/program-file.ts';

/*
 * Mailbox providers by the domains of their free addresses, for statistics: people think of "Gmail", not of
 * `googlemail.com`. Delivery identifies a destination by its MX hosts; the warm-up and the health of source addresses
 * belong to the provider behind them (`providerOfHosts`).
 */

/** By name. Sound: the file is a part of the program, and a test checks its form. */
const PROVIDERS = readProgramFile('providers.toml') as Record<
  string,
  {
    /** Domains of free addresses. */
    domains?: string[];
    /** Domains of MX hosts, where these differ from the registered domain's name. */
    hosts?: string[];
  }
>;

/** The names of the providers, of which there are few. */
export const KNOWN_PROVIDERS: ReadonlySet<string> = new Set(Object.keys(PROVIDERS));

const PROVIDER_OF = byName('domains');
const PROVIDER_OF_HOSTS = byName('hosts');

function byName(kind: 'domains' | 'hosts'): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(PROVIDERS).flatMap(([provider, names]) =>
      (names[kind] ?? []).map((name) => [name, provider]),
    ),
  );
}

/** The provider of a recipient's domain (lower case), or the domain itself. */
export function providerOf(domain: string): string {
  return PROVIDER_OF.get(domain) ?? domain;
}

/**
 * The provider that receives a domain's mail: that of the domain (lower case), else that of its MX hosts, else their registered
 * domain. Domains that one company hosts share its opinion of a sender. With hosts of several providers it is the domain itself:
 * anyone can name a provider's host in an MX record next to another one, whose replies must not count for the provider.
 */
export function providerOfHosts(domain: string, hosts: readonly { name: string }[]): string {
  const known = PROVIDER_OF.get(domain);
  if (known !== undefined) return known;
  const [provider, ...others] = new Set(hosts.map(({ name }) => providerOfHost(name)));
  return others.length === 0 ? (provider ?? domain) : domain;
}

/**
 * The known provider of the host, else the domain that the host is directly below: internet providers name their subscribers'
 * connections several labels below their domain (`82-64-1-2.subs.example.net`), and a subscriber's host must not count
 * as an MX host of the provider. Null: the host has no registered domain.
 */
function providerOfHost(host: string): string | null {
  const full = host.toLowerCase().replace(/\.$/, '');
  for (let name = full; name.includes('.'); name = name.slice(name.indexOf('.') + 1)) {
    const provider = PROVIDER_OF_HOSTS.get(name);
    if (provider !== undefined) return provider;
  }
  const registered = getDomain(full);
  return registered === null || registered === full ? registered : full.slice(full.indexOf('.') + 1);
}
