import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import * as z from 'zod';

/* The types of settings: primitive values, and the entries of lists and tables. `schema.ts` lists the settings. */

/** How a changed setting takes effect: with SIGHUP, or with a restart of the daemon. */
export type AppliedBy = 'reload' | 'restart';

/** What documents a setting. `shown`: its default in words or TOML, if the schema's value does not show it. */
export type SettingMeta = {
  description: string;
  shown?: string;
  appliedBy: AppliedBy;
  isSecret?: boolean;
};

function described<Type extends z.ZodType>(
  type: Type,
  meta: Omit<SettingMeta, 'shown'>,
  shown: string | undefined,
): Type {
  return type.meta({ ...meta, ...(shown === undefined ? {} : { shown }) });
}

/** A setting that SIGHUP applies. */
export function live<Type extends z.ZodType>(type: Type, description: string, shown?: string): Type {
  return described(type, { description, appliedBy: 'reload' }, shown);
}

/** A live setting whose value is never printed. */
export function secret<Type extends z.ZodType>(type: Type, description: string, shown?: string): Type {
  return described(type, { description, appliedBy: 'reload', isSecret: true }, shown);
}

/** A setting that needs a restart. */
export function restart<Type extends z.ZodType>(type: Type, description: string, shown?: string): Type {
  return described(type, { description, appliedBy: 'restart' }, shown);
}

export const path = z.string().min(1);
export const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http or https address' });

/** A setting of each HTTP listener. */
export const trustedProxies = live(
  z.array(z.string()).default([]),
  'Proxies (address or CIDR) whose X-Forwarded-For is trusted.',
);

/** `host:port`, `[v6]:port`. */
export interface ListenAddress {
  host: string;
  port: number;
}

const LISTEN_FORM = 'must be "address:port" such as "127.0.0.1:8080" or "[::1]:8080"';

/** Null when the text is not an address and a port. */
export function parseListen(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > 65535 ? null : { host, port };
}

/** Whether a listener accepts connections at every address of the machine. */
export function isAnyAddress({ host }: Pick<ListenAddress, 'host'>): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** Formats an address for `parseListen`. */
export function formatListen({ host, port: at }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${at}` : `${host}:${at}`;
}

/** Whether paths can be appended to a URL: it has no user name, query or fragment. True for a text that is not a URL. */
export function isBaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return true;
  const { username, password } = new URL(text);
  return username === '' && password === '' && !/[?#]/.test(text);
}

/** The URL in ASCII, with the A-labels of its host, and without a slash at the end. */
export function baseUrl(text: string): string {
  const { origin, pathname } = new URL(text);
  return `${origin}${pathname}`.replace(/(?<!\/)\/+$/, '');
}

export const listen = z.string().refine((text) => parseListen(text) !== null, LISTEN_FORM);
export const listenOrOff = z
  .string()
  .refine((text) => text === 'off' || parseListen(text) !== null, `${LISTEN_FORM}, or "off"`);
const HOST_NAME =
  /^(?=.{1,253}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/i;
export const TIME_SERVER = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*(:\d{1,5})?$/i;
export const HOST_PATTERN = /^(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i;
/** In lower case, so that host names can be compared. */
export const hostName = z
  .string()
  .regex(HOST_NAME, 'must be a host name such as "mail.example.com"')
  .toLowerCase();

/** Whether mail can be sent to `host`: a host name, or an IP address without brackets. */
export function isNextHopHost(host: string): boolean {
  if (isIP(host) !== 0) return true;
  const name = host.replace(/\.$/, '');
  // A last label of digits alone is part of an address that is not valid (RFC 3696 §2).
  return HOST_NAME.test(name) && !/(^|\.)\d+$/.test(name);
}

const nextHopHost = z
  .string()
  .refine(
    isNextHopHost,
    'must be a host name such as "relay.example.com", or an IP address without brackets',
  );
const wholeNumber = z.int('must be a whole number');
const positive = wholeNumber.min(1, 'must be at least 1');
export const port = positive.max(65535, 'must be at most 65535');
export const ms = positive;
export const count = positive;
export const quota = wholeNumber.min(0, 'must not be negative');
/** A DNS server. Accepts what `parseServer` in dns/transport.ts parses. */
export const dnsServerAddress = z
  .string()
  .refine(isDnsServerAddress, 'must be "ip", "ip:port" or "[ip6]:port"');
const DURATION_FORM = 'must be a number of seconds or a string such as "500ms", "30s", "5m", "4h", "2d"';
/** `500ms`, `90s`, `5m`, `4h`, `2d`, or a number of seconds; parsed to ms. */
export const duration = z
  .union(
    [z.int(DURATION_FORM).min(0, DURATION_FORM), z.string().regex(/^\d+(ms|s|m|h|d)$/, DURATION_FORM)],
    DURATION_FORM,
  )
  .transform((value) => (typeof value === 'number' ? value * 1000 : parseDuration(value)));

function isDnsServerAddress(text: string): boolean {
  const [, host = text, digits = '53'] =
    /^\[([^\]]+)\](?::(\d+))?$/.exec(text) ?? /^([\d.]+)(?::(\d+))?$/.exec(text) ?? [];
  return isIP(host) !== 0 && Number(digits) >= 1 && Number(digits) <= 65_535;
}

function parseDuration(text: string): number {
  const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
  const match = /^(\d+)(ms|s|m|h|d)$/.exec(text);
  return match ? Number(match[1]) * units[match[2] as keyof typeof units] : 0; // the alternatives of the expression
}

/** How a session uses TLS, from the least to the most secure; see `TlsMode` in delivery/worker/protocol.ts. */
export const TLS_MODES = ['none', 'opportunistic', 'required', 'verified'] as const;
export const tlsMode = z.enum(TLS_MODES);
export const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,30}$/, 'must be 1 to 31 characters a-z, 0-9 and "-", the first not "-"');

/** Authentication at the next hop of a route, or at the relay of the secondary lane. */
const login = {
  user: path.optional(),
  passwordFile: path.optional(),
  allowUnverifiedAuth: z.boolean().default(false),
};

interface NextHop {
  host: string;
  tls?: z.output<typeof tlsMode> | undefined;
  user?: string | undefined;
  passwordFile?: string | undefined;
  allowUnverifiedAuth: boolean;
}

/**
 * A password is sent only to a server with a valid certificate for its name, unless the operator allows other servers.
 * It is never sent unencrypted to another machine.
 */
function checkLogin(hop: NextHop, context: z.RefinementCtx): void {
  const fault = (path: string, message: string) =>
    context.addIssue({ code: 'custom', path: [path], message });
  if (hop.user === undefined && hop.passwordFile !== undefined)
    fault('user', 'is missing: passwordFile needs it');
  if (hop.user !== undefined && hop.passwordFile === undefined)
    fault('passwordFile', 'is missing: user needs it');
  if (hop.user === undefined || hop.tls === undefined || hop.tls === 'verified') return;
  if (!hop.allowUnverifiedAuth) {
    fault(
      'tls',
      `"${hop.tls}" would send the password to a server whose name is not verified: use tls = "verified", or set allowUnverifiedAuth = true`,
    );
  } else if (hop.tls === 'none' && !LOOPBACK.test(hop.host)) {
    fault('tls', `"none" would send the password unencrypted to ${hop.host}: use "verified" or "required"`);
  }
}

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/i;

export const deliveryRoute = z
  .strictObject({
    match: z.string().min(1),
    host: nextHopHost,
    port: port.default(25),
    tls: tlsMode.optional(),
    ...login,
  })
  .superRefine(checkLogin)
  .transform((given) => ({
    ...given,
    tls: given.tls ?? (given.user === undefined ? ('opportunistic' as const) : ('verified' as const)),
  }));

export const blocklist = z.strictObject({
  zone: hostName,
  families: z
    .array(z.enum(['ipv4', 'ipv6']))
    .min(1)
    .default(['ipv4']),
});

/** Lists that large receivers use, answer their test entries, and need no registration at low volume. */
export const DEFAULT_BLOCKLISTS: z.output<typeof blocklist>[] = [
  { zone: 'zen.spamhaus.org', families: ['ipv4', 'ipv6'] },
  { zone: 'bl.spamcop.net', families: ['ipv4'] },
  { zone: 'bl.mailspike.net', families: ['ipv4'] },
  { zone: 'psbl.surriel.com', families: ['ipv4'] },
];

/** How many messages change to the secondary lane: a share of an account's attempts, and all accounts per hour. */
const failoverLimits = {
  share: z.number().min(0).max(1).default(0.1),
  perHour: count.default(1000),
};

export const secondary = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('builtin'), pool: name.default('secondary'), ...failoverLimits }),
  z
    .strictObject({
      type: z.literal('relay'),
      host: nextHopHost,
      port: port.default(587),
      tls: tlsMode.default('verified'),
      ...login,
      spfInclude: hostName.optional(),
      ...failoverLimits,
    })
    .superRefine(checkLogin),
]);

export const region = z.strictObject({
  code: name,
  name: z.string().min(1).max(100),
  pools: z.strictObject({ tx: name.default('default'), mk: name.default('default') }).prefault({}),
});

/** Rejects a list in which two entries have the same `key`. */
export function uniqueBy<Key extends string>(key: Key) {
  return (list: readonly Record<Key, string>[], context: z.RefinementCtx) => {
    const seen = new Set<string>();
    for (const [index, entry] of list.entries()) {
      const path = [index, key];
      if (seen.has(entry[key]))
        context.addIssue({ code: 'custom', path, message: `"${entry[key]}" is used twice` });
      seen.add(entry[key]);
    }
  };
}

/** A table of settings; all of them have their defaults when it is missing. */
export function section<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape).prefault({} as never); // each setting of a section is optional or has a default
}

/** Certificate and key of an SMTP listener. */
export const tlsFiles = (without: string) =>
  section({
    certificateFile: live(
      path.optional(),
      'PEM file of the certificate with its chain, for STARTTLS; reloaded when it changes.',
      without,
    ),
    keyFile: live(z.string().min(1).optional(), 'PEM file of its private key.', 'none'),
  }).refine(
    ({ certificateFile, keyFile }) => (certificateFile === undefined) === (keyFile === undefined),
    'must name both, certificateFile and keyFile, or neither',
  );

/** TLS policies that recipient domains and mail servers publish. */
export const deliveryTls = section({
  mtaSts: live(z.boolean().default(true), 'Whether MTA-STS policies of recipient domains apply (RFC 8461).'),
  dane: live(
    z.boolean().default(true),
    'Whether TLSA records of mail servers apply (DANE, RFC 7672); without a validating resolver (dns.trustAd) there are none.',
  ),
  caFile: restart(
    path.optional(),
    'PEM file of certificate authorities that are trusted in addition to the built-in ones: for mail servers whose certificate is verified, and for hosts of MTA-STS policies.',
    'none',
  ),
});

/** Reports to recipient domains about TLS (RFC 8460). */
export const tlsReports = section({
  send: live(
    z.boolean().default(true),
    'Whether TLS reports are sent daily to the recipient domains that ask for them (RFC 8460).',
  ),
  organization: live(
    z
      .string()
      .min(1)
      .max(100)
      .regex(/^[\x20-\x7e]*$/, 'must be ASCII')
      .optional(),
    'Name of the sending organization in these reports.',
    '<hostname>',
  ),
  contact: live(
    z.email().optional(),
    'Contact address in these reports, also their sender.',
    'postmaster@<hostname>',
  ),
});

/** HTTPS of the public pages. */
export const publicTls = section({
  listen: restart(
    listenOrOff.default('off'),
    'HTTPS listener for the same pages with certificates from an ACME authority, or "off".',
  ),
  agreeToTerms: restart(
    z.boolean().default(false),
    "Whether you agree to the certificate authority's terms of service; required for listen.",
  ),
  email: restart(z.email().optional(), 'Contact address for notices of the certificate authority.', 'none'),
  directory: restart(
    z
      .url({ protocol: /^https$/, error: 'must be an https address' })
      .default('https://acme-v02.api.letsencrypt.org/directory'),
    "The certificate authority's ACME directory.",
  ),
  directoryCaFile: restart(
    path.optional(),
    'PEM file of the root certificates of a private ACME directory.',
    'the built-in authorities',
  ),
}).refine(
  ({ listen: at, agreeToTerms }) => at === 'off' || agreeToTerms,
  "needs agreeToTerms = true: read the certificate authority's terms of service first",
);

export type DeliveryRoute = z.output<typeof deliveryRoute>;

/** Only AEAD suites with forward secrecy (RFC 9325 §4.2), for TLS 1.3 and 1.2. */
export const AEAD_CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/** A list of TLS suites in the form of OpenSSL, of which at least one is known. */
export const cipherList = z.string().refine((text) => {
  try {
    createSecureContext({ ciphers: text });
    return true;
  } catch {
    return false;
  }
}, 'must be a list of TLS cipher suites as in openssl-ciphers(1)');
