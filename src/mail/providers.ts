import { getDomain } from 'tldts';

/*
 * Mailbox providers by the domains of their free addresses, for statistics: people think of "Gmail", not of
 * `googlemail.com`. Delivery identifies a destination by its MX hosts; the warm-up and the health of source addresses
 * belong to the provider behind them (`providerOfHosts`).
 */

const PROVIDERS: Readonly<Record<string, readonly string[]>> = {
  Google: ['gmail.com', 'googlemail.com'],
  Microsoft: [
    ...['com', 'de', 'fr', 'it', 'es', 'be', 'at', 'ie', 'jp', 'dk', 'com.br', 'com.au'].map(
      (tld) => `outlook.${tld}`,
    ),
    ...['com', 'co.uk', 'fr', 'de', 'it', 'es', 'be', 'nl', 'se'].map((tld) => `hotmail.${tld}`),
    ...['com', 'co.uk', 'fr', 'de', 'it', 'nl', 'be', 'se', 'dk', 'at', 'ca'].map((tld) => `live.${tld}`),
    'msn.com',
  ],
  Yahoo: [
    ...['com', 'co.uk', 'fr', 'de', 'it', 'es', 'ca', 'in', 'co.in', 'com.br', 'com.au'].map(
      (tld) => `yahoo.${tld}`,
    ),
    'ymail.com',
    'rocketmail.com',
    'aol.com',
    'aol.de',
    'aol.co.uk',
  ],
  Apple: ['icloud.com', 'me.com', 'mac.com'],
  'United Internet': ['gmx.de', 'gmx.net', 'gmx.at', 'gmx.ch', 'gmx.com', 'web.de', 'mail.com'],
  Telekom: ['t-online.de', 'magenta.de'],
  Proton: ['proton.me', 'protonmail.com', 'protonmail.ch', 'pm.me'],
  Orange: ['orange.fr', 'wanadoo.fr'],
  Comcast: ['comcast.net'],
  'Mail.ru': ['mail.ru', 'inbox.ru', 'list.ru', 'bk.ru'],
  Yandex: ['yandex.ru', 'yandex.com', 'ya.ru'],
  NetEase: ['163.com', '126.com', 'yeah.net'],
  Tencent: ['qq.com', 'foxmail.com'],
};

/** Providers and mail filters by the domains of their MX hosts, where these differ from the registered domain's name. */
const PROVIDER_OF_HOSTS: Readonly<Record<string, string>> = {
  'google.com': 'Google',
  'googlemail.com': 'Google',
  'outlook.com': 'Microsoft',
  'mx.microsoft': 'Microsoft',
  'yahoodns.net': 'Yahoo',
  'icloud.com': 'Apple',
  'gmx.net': 'United Internet',
  'web.de': 'United Internet',
  'kundenserver.de': 'IONOS',
  'ionos.com': 'IONOS',
  't-online.de': 'Telekom',
  'protonmail.ch': 'Proton',
  'smtp-in.orange.fr': 'Orange',
  'mxge.comcast.net': 'Comcast',
  'mail.ru': 'Mail.ru',
  'yandex.net': 'Yandex',
  'yandex.ru': 'Yandex',
  'netease.com': 'NetEase',
  'qq.com': 'Tencent',
  'pphosted.com': 'Proofpoint',
  'ppe-hosted.com': 'Proofpoint',
  'mimecast.com': 'Mimecast',
  'barracudanetworks.com': 'Barracuda',
  'iphmx.com': 'Cisco',
  'messagelabs.com': 'Broadcom',
  'trendmicro.com': 'Trend Micro',
  'mailcontrol.com': 'Forcepoint',
  'hornetsecurity.com': 'Hornetsecurity',
  'antispameurope.com': 'Hornetsecurity',
};

/** The names of the providers above, of which there are few. */
export const KNOWN_PROVIDERS: ReadonlySet<string> = new Set([
  ...Object.keys(PROVIDERS),
  ...Object.values(PROVIDER_OF_HOSTS),
]);

const PROVIDER_OF = new Map(
  Object.entries(PROVIDERS).flatMap(([provider, domains]) => domains.map((domain) => [domain, provider])),
);

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
    const provider = PROVIDER_OF_HOSTS[name];
    if (provider !== undefined) return provider;
  }
  const registered = getDomain(full);
  return registered === null || registered === full ? registered : full.slice(full.indexOf('.') + 1);
}
