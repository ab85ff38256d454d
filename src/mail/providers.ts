/**
 * Mailbox providers by the domains of their free addresses, for statistics: people think of "Gmail", not of
 * `googlemail.com`. Delivery does not use them; it identifies a destination by its MX hosts.
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

const PROVIDER_OF = new Map(
  Object.entries(PROVIDERS).flatMap(([provider, domains]) => domains.map((domain) => [domain, provider])),
);

/** The provider of a recipient's domain (lower case), or the domain itself. */
export function providerOf(domain: string): string {
  return PROVIDER_OF.get(domain) ?? domain;
}
