import { availableParallelism, hostname as machineName } from 'node:os';
import { z } from 'zod';

/**
 * Every setting, once: its type, its default and the one comment that the generated example shows. A setting
 * whose default is worked out from others is optional here and filled in by `load.ts`.
 */

/** `host:port`, `[v6]:port`. */
export interface ListenAddress {
  host: string;
  port: number;
}

const LISTEN_FORM = 'must be "address:port" such as "127.0.0.1:8080" or "[::1]:8080"';

export function parseListen(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > 65535 ? null : { host, port };
}

/** The form that `parseListen` reads. */
export function formatListen({ host, port: at }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${at}` : `${host}:${at}`;
}

const listen = z.string().refine((text) => parseListen(text) !== null, LISTEN_FORM);
const listenOrOff = z.union([z.literal('off'), listen], `${LISTEN_FORM}, or "off"`);
const HOST_NAME =
  /^(?=.{1,253}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/i;
const HOST_PATTERN = /^(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i;
const hostName = z.string().regex(HOST_NAME, 'must be a host name such as "mail.example.com"');
const port = z.int().min(1).max(65535);
const ms = z.int().min(1);
const count = z.int().min(1);
const quota = z.int().min(0);
const resolver = z
  .string()
  .regex(
    /^(\d+\.\d+\.\d+\.\d+(:\d+)?|\[[0-9a-fA-F:.]+\](:\d+)?|[0-9a-fA-F:]+:[0-9a-fA-F:.]*)$/,
    'must be "ip", "ip:port" or "[ip6]:port"',
  );
/** `90s`, `5m`, `4h`, `2d`, or a number of seconds; kept as ms. */
const duration = z
  .union(
    [z.int().min(0), z.string().regex(/^\d+(ms|s|m|h|d)$/)],
    'must be a number of seconds or a text such as "30s", "5m", "4h", "2d"',
  )
  .transform((value) => (typeof value === 'number' ? value * 1000 : parseDuration(value)));

function parseDuration(text: string): number {
  const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
  const match = /^(\d+)(ms|s|m|h|d)$/.exec(text);
  return match ? Number(match[1]) * units[match[2] as keyof typeof units] : 0;
}

const tlsMode = z.enum(['none', 'opportunistic', 'required', 'verified']);
const name = z.string().regex(/^[a-z0-9][a-z0-9-]{0,30}$/, 'must be 1 to 31 of a-z, 0-9 and "-"');

/** Logging in at a next hop: of a route, and of the relay behind the secondary lane. */
const login = {
  user: z.string().min(1).optional(),
  passwordFile: z.string().min(1).optional(),
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
 * A password goes only to a server whose certificate proves its name, unless the operator says otherwise; over an
 * unencrypted connection it never leaves this machine.
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
      `"${hop.tls}" would send the password to a server that has not proved its name: use tls = "verified", or set allowUnverifiedAuth = true`,
    );
  } else if (hop.tls === 'none' && !LOOPBACK.test(hop.host)) {
    fault('tls', `"none" would send the password unencrypted to ${hop.host}: use "verified" or "required"`);
  }
}

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/i;

const route = z
  .strictObject({
    match: z.string().min(1),
    host: z.string().min(1),
    port: port.default(25),
    tls: tlsMode.optional(),
    ...login,
  })
  .superRefine(checkLogin)
  .transform((given) => ({
    ...given,
    tls: given.tls ?? (given.user === undefined ? ('opportunistic' as const) : ('verified' as const)),
  }));

const egressEntry = z.strictObject({
  name,
  address: z.ipv4().optional(),
  address6: z.ipv6().optional(),
  publicAddress: z.union([z.ipv4(), z.ipv6()]).optional(),
  hostname: hostName.optional(),
  pools: z.array(name).min(1).default(['default']),
});

const shapingProfile = z.strictObject({
  match: z.string().min(1),
  connections: count.default(10),
  messagesPerConnection: count.default(100),
  idleSeconds: z.int().min(0).default(60),
  tls: tlsMode.default('opportunistic'),
});

/** The built-in profiles of the large providers: bought with other people's blocks. */
export const DEFAULT_SHAPING: z.input<typeof shapingProfile>[] = [
  { match: '*.google.com', connections: 5, messagesPerConnection: 50, idleSeconds: 60, tls: 'required' },
  { match: '*.googlemail.com', connections: 5, messagesPerConnection: 50, idleSeconds: 60, tls: 'required' },
  { match: '*.protection.outlook.com', connections: 10, messagesPerConnection: 50, idleSeconds: 30 },
  { match: '*.mx.microsoft', connections: 10, messagesPerConnection: 50, idleSeconds: 30 },
  { match: '*.yahoodns.net', connections: 10, messagesPerConnection: 20, idleSeconds: 30 },
];

const secondary = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('builtin'), pool: name.default('secondary') }),
  z
    .strictObject({
      type: z.literal('relay'),
      host: z.string().min(1),
      port: port.default(587),
      tls: tlsMode.default('verified'),
      ...login,
      spfInclude: hostName.optional(),
    })
    .superRefine(checkLogin),
]);

const region = z.strictObject({
  code: name,
  name: z.string().min(1).max(100),
  pools: z.strictObject({ tx: name.default('default'), mk: name.default('default') }).prefault({}),
});

/** Refuses a list in which two entries have the same `key`. */
function noneTwice<Key extends string>(key: Key) {
  return (list: readonly Record<Key, string>[], context: z.RefinementCtx) => {
    const seen = new Set<string>();
    for (const [index, entry] of list.entries()) {
      const path = [index, key];
      if (seen.has(entry[key]))
        context.addIssue({ code: 'custom', path, message: `"${entry[key]}" is there twice` });
      seen.add(entry[key]);
    }
  };
}

function section<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape).prefault({} as never);
}

/** Certificate and key of an SMTP listener. */
const tlsFiles = (without: string) =>
  section({
    certificateFile: z.string().min(1).optional().meta({
      description: 'PEM file of the certificate with its chain, for STARTTLS; read again when it changes.',
      shown: without,
    }),
    keyFile: z
      .string()
      .min(1)
      .optional()
      .meta({ description: 'PEM file of its private key.', shown: 'none' }),
  }).refine(
    ({ certificateFile, keyFile }) => (certificateFile === undefined) === (keyFile === undefined),
    'must name both, certificateFile and keyFile, or neither',
  );

/** The public pages' own HTTPS. */
const publicTls = section({
  listen: listenOrOff
    .default('off')
    .describe(
      'HTTPS listener of the same pages, with certificates that are obtained as they are needed, or "off".',
    ),
  agreeToTerms: z
    .boolean()
    .default(false)
    .describe(
      "Whether you agree to the certificate authority's terms of service: nothing is asked of it else.",
    ),
  email: z.email().optional().meta({
    description: 'Where the certificate authority may write to.',
    shown: 'none',
  }),
  directory: z
    .url({ protocol: /^https$/, error: 'must be an https address' })
    .default('https://acme-v02.api.letsencrypt.org/directory')
    .describe("The certificate authority's ACME directory."),
  directoryCaFile: z.string().min(1).optional().meta({
    description: 'PEM file of what vouches for the directory itself, where the authority is a private one.',
    shown: 'the usual authorities',
  }),
}).refine(
  ({ listen: at, agreeToTerms }) => at === 'off' || agreeToTerms,
  "needs agreeToTerms = true: read the certificate authority's terms of service first",
);

export const configSchema = z.strictObject({
  hostname: hostName
    .default(() => machineName().toLowerCase())
    .meta({
      description: "The platform's own name: EHLO name, MX target, Message-ID fallback.",
      shown: "the machine's host name",
    }),
  data: section({
    dir: z
      .string()
      .min(1)
      .default('data')
      .describe(
        'Database and key file; created with mode 0700. Relative paths start from the directory of this file.',
      ),
    masterKeyFile: z.string().min(1).optional().meta({
      description:
        '32 random bytes that encrypt DKIM keys and secrets at rest; made with mode 0600 if absent.',
      shown: '<data.dir>/master.key',
    }),
  }),
  api: section({
    listen: listen.default('127.0.0.1:8080').describe('HTTP API, documentation, health and metrics.'),
    trustedProxies: z
      .array(z.string())
      .default([])
      .describe('Proxies (address or CIDR) whose X-Forwarded-For is believed.'),
    hosts: z
      .array(
        z.string().regex(HOST_PATTERN, 'must be a host name such as "api.example.com" or "*.example.com"'),
      )
      .default([])
      .describe(
        'Host names under which the API is called, besides "hostname", localhost, addresses and names without a dot; "*.example.com" covers subdomains.',
      ),
    connectionsPerAddress: count
      .default(256)
      .describe('Connections of one address (IPv6: /64) at once; not counted for trustedProxies.'),
    metricsKey: z.string().min(16).optional().meta({
      description:
        'Bearer token that /metrics requires of every caller; none: loopback callers only, without a token.',
      shown: 'none',
    }),
  }),
  public: section({
    listen: listen
      .default('127.0.0.1:8081')
      .describe('Tracking, unsubscribe, report-abuse: the only part that strangers must reach.'),
    url: z
      .url({ protocol: /^https?$/, error: 'must be an http or https address' })
      .optional()
      .meta({
        description: 'Base address of the default tracking domain, as recipients see it.',
        shown: 'http://<public.listen>',
      }),
    trustedProxies: z
      .array(z.string())
      .default([])
      .describe('Proxies (address or CIDR) whose X-Forwarded-For is believed.'),
    tls: publicTls,
  }),
  mx: section({
    listen: listenOrOff
      .default('127.0.0.1:2525')
      .describe('SMTP listener for bounces, complaints and reports, or "off".'),
    tls: tlsFiles('one that is made at start'),
    proxyProtocol: z
      .array(z.union([z.ipv4(), z.ipv6()]))
      .default([])
      .describe('Proxies (addresses) that begin each connection with a PROXY header, version 1 or 2.'),
    feedbackLoops: z
      .array(hostName)
      .default(['yahoo.com', 'hotmail.com', 'validity.com', 'senderscore.net'])
      .describe(
        "Domains whose signed complaints are believed for every recipient: operators of feedback loops you are enrolled in. Of other senders only the recipient's own provider is.",
      ),
    mailBytes: count.default(20_971_520).describe('Largest mail that is taken.'),
    connections: count.default(1000).describe('Connections at once.'),
    connectionsPerAddress: count
      .default(30)
      .describe(
        'Of them, from one address (IPv4) or /64 (IPv6); the next one takes the place of the least useful.',
      ),
  }),
  submission: section({
    listen: listenOrOff.default('off').describe('Authenticated SMTP submission, or "off".'),
    implicitTls: z
      .boolean()
      .default(false)
      .describe('Whether connections begin with TLS (port 465) instead of STARTTLS (port 587).'),
    tls: tlsFiles('those of mx.tls'),
    proxyProtocol: z
      .array(z.union([z.ipv4(), z.ipv6()]))
      .default([])
      .describe('Proxies (addresses) that begin each connection with a PROXY header, version 1 or 2.'),
    connections: count.default(1000).describe('Connections at once.'),
    connectionsPerAddress: count
      .default(100)
      .describe(
        'Of them, from one address (IPv4) or /64 (IPv6); the next one takes the place of the least useful.',
      ),
  }),
  dns: section({
    resolvers: z.array(resolver).default([]).meta({
      description: 'Resolvers ("ip" or "ip:port") for EVERY look-up; empty: the system\'s.',
      shown: '[]',
    }),
    timeoutMs: ms.max(60_000).default(5000).describe('Time for one look-up, all its tries together, in ms.'),
  }),
  delivery: section({
    port: port.default(25).describe('Port at the destination MX.'),
    allowPrivateNetworks: z
      .boolean()
      .default(false)
      .describe('Whether mail may be delivered to loopback, link-local and private addresses.'),
    workers: count
      .max(64)
      .optional()
      .meta({ description: 'Threads that compose, sign and speak SMTP.', shown: 'cores - 1, at least 1' }),
    connections: count.optional().meta({
      description:
        'Outbound SMTP sessions at once, over all destinations; as many connections again may be idle. Accounts and destinations share them.',
      shown: '500, or a quarter of the open files that the process may have',
    }),
    inFlightBytes: count
      .default(67_108_864)
      .describe(
        'Message contents that are being sent at once, in bytes, without the first 64 KB of each; they take about three times as much memory. Accounts and destinations share them.',
      ),
    returnPath: z
      .enum(['customer', 'auto', 'platform'])
      .default('auto')
      .describe('Envelope sender domain: return-a.<domain>, the platform\'s, or by what SPF says ("auto").'),
    routes: z
      .array(route)
      .default([])
      .describe(
        'Fixed next hops instead of MX: { match = "example.net" or "*", host, port, tls, user, passwordFile, allowUnverifiedAuth }. tls is "none", "opportunistic" (default without user), "required" or "verified" (default with user: the certificate must be valid for host; add a private authority with NODE_EXTRA_CA_CERTS). A weaker tls together with user needs allowUnverifiedAuth = true.',
      ),
    egress: z.array(egressEntry).superRefine(noneTwice('name')).default([]).meta({
      description:
        'Source addresses: { name, address, address6, publicAddress, hostname, pools }; empty: the system decides.',
      shown: '[]',
    }),
    shaping: z
      .array(shapingProfile)
      .default(DEFAULT_SHAPING.map((profile) => shapingProfile.parse(profile)))
      .describe(
        'Limits by destination: { match = MX host or recipient domain, connections, messagesPerConnection, idleSeconds, tls }.',
      ),
    retry: section({
      first: duration.default(300_000).meta({ description: 'Wait after the first deferral.', shown: '"5m"' }),
      greylisted: duration
        .default(120_000)
        .meta({ description: 'Wait after a deferral that says greylisted.', shown: '"2m"' }),
      factor: z
        .number()
        .min(1)
        .max(10)
        .default(2)
        .describe('Every further wait is this much longer, each ±10 %.'),
      max: duration.default(14_400_000).meta({ description: 'Longest wait.', shown: '"4h"' }),
      expireMarketing: duration
        .default(345_600_000)
        .meta({ description: 'Marketing mail is given up after this.', shown: '"4d"' }),
      expireTransactional: duration
        .default(172_800_000)
        .meta({ description: 'Transactional mail is given up after this.', shown: '"2d"' }),
    }),
  }),
  readers: section({
    threads: z
      .int()
      .min(1)
      .max(16)
      .default(2)
      .describe('Threads that run lists, searches and statistics beside the main thread.'),
    budget: duration
      .refine((value) => value >= 100, 'must be at least 100ms')
      .default(2000)
      .meta({
        description: 'Time of one of these queries; one that takes longer answers 503 QUERY_TOO_BROAD.',
        shown: '"2s"',
      }),
  }),
  verification: section({
    dmarcPolicy: z
      .enum(['enforced', 'any'])
      .default('enforced')
      .describe(
        'DMARC policies that verify a domain: "enforced" (quarantine, reject) or "any" (also none with rua).',
      ),
  }),
  regions: z
    .array(region)
    .min(1)
    .superRefine(noneTwice('code'))
    .default([{ code: 'local', name: 'This server', pools: { tx: 'default', mk: 'default' } }])
    .describe('Use case ids are tx-<code> and mk-<code>; `pools` names the egress pool of each.'),
  secondary: secondary
    .default({ type: 'builtin', pool: 'secondary' })
    .describe(
      'The second lane: { type = "builtin", pool } or { type = "relay", host, port, tls, user, passwordFile, allowUnverifiedAuth, spfInclude }.',
    ),
  webhooks: section({
    allowPrivateNetworks: z
      .boolean()
      .default(true)
      .describe('Whether webhooks may call private addresses; link-local is refused always.'),
  }),
  limits: section({
    setupPerSecond: count.default(200).describe('Requests a second for each key on the setup interface.'),
    setupBurst: count.default(400).describe('Burst of the same.'),
    sendPerSecond: count
      .optional()
      .meta({ description: 'Send requests a second for each key.', shown: 'unlimited' }),
    sendBytes: count.default(4_194_304).describe('Largest request body on the send endpoints.'),
    setupBytes: count.default(262_144).describe('Largest request body elsewhere.'),
    queuedMessages: count.default(5_000_000).describe('Messages in the queue above which sends answer 503.'),
    freeDiskBytes: z.int().min(0).default(1_073_741_824).describe('Free disk below which sends answer 503.'),
    bodyDays: count.default(7).describe('Days that message bodies are kept after the final state.'),
    eventDays: count.default(90).describe('Days that events and message records are kept.'),
    idempotencyHours: count.default(24).describe('Hours that an Idempotency-Key is remembered.'),
    account: section({
      domains: quota.default(100).describe('Domains of an account that has no limit of its own.'),
      webhooks: quota.default(50).describe('Webhooks of the same.'),
      templates: quota.default(10_000).describe('Templates of the same.'),
      contacts: quota.optional().meta({ description: 'Contacts of the same.', shown: 'unlimited' }),
      messagesPerHour: quota.optional().meta({
        description: 'Messages that it may send in any 60 minutes; each recipient counts.',
        shown: 'unlimited',
      }),
      messagesPerDay: quota.optional().meta({
        description: 'Messages that it may send in any 24 hours; each recipient counts.',
        shown: 'unlimited',
      }),
      concurrentRequests: count.default(64).describe('API requests of the same that are processed at once.'),
      setupPerSecond: count.optional().meta({
        description: 'Requests a second on the setup interface, all keys of an account together.',
        shown: 'twice limits.setupPerSecond',
      }),
      setupBurst: count.optional().meta({
        description: 'Burst of the same.',
        shown: 'twice limits.setupBurst',
      }),
    }),
  }),
  log: section({
    level: z
      .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
      .default('info')
      .describe('Least severity that is logged.'),
    hashAddresses: z
      .boolean()
      .default(true)
      .describe("Whether people's addresses are hashed in the log (never at debug)."),
  }),
});

export type RawConfig = z.output<typeof configSchema>;
export type DeliveryRoute = z.output<typeof route>;

export type ShapingProfile = z.output<typeof shapingProfile>;

/** The settings with every default filled in: what the daemon and the commands work with. */
export type Config = Omit<RawConfig, 'data' | 'public' | 'delivery'> & {
  data: { dir: string; masterKeyFile: string };
  public: RawConfig['public'] & { url: string };
  delivery: RawConfig['delivery'] & { workers: number };
  /** The file it was read from, null for the built-in defaults. */
  file: string | null;
};

/** Delivery threads when the operator names no number: one core stays with the main thread. */
export function defaultWorkers(): number {
  return Math.max(1, availableParallelism() - 1);
}
