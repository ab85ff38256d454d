import { availableParallelism, hostname as machineName } from 'node:os';
import { z } from 'zod';

/**
 * All settings with type, default and description (the comment in the generated example). A setting whose default
 * depends on other settings is optional here; `load.ts` sets it.
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

/** The inverse of `parseListen`. */
export function formatListen({ host, port: at }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${at}` : `${host}:${at}`;
}

const listen = z.string().refine((text) => parseListen(text) !== null, LISTEN_FORM);
const listenOrOff = z.union([z.literal('off'), listen], `${LISTEN_FORM}, or "off"`);
const HOST_NAME =
  /^(?=.{1,253}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/i;
const HOST_PATTERN = /^(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i;
/** In lower case, so that host names can be compared. */
const hostName = z.string().regex(HOST_NAME, 'must be a host name such as "mail.example.com"').toLowerCase();
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
/** `90s`, `5m`, `4h`, `2d`, or a number of seconds; parsed to ms. */
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

/** Authentication at the next hop of a route, or at the relay of the secondary lane. */
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

/** Profiles of large providers: conservative limits known to avoid blocks. */
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

/** Rejects a list in which two entries have the same `key`. */
function uniqueBy<Key extends string>(key: Key) {
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

function section<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape).prefault({} as never);
}

/** Certificate and key of an SMTP listener. */
const tlsFiles = (without: string) =>
  section({
    certificateFile: z.string().min(1).optional().meta({
      description: 'PEM file of the certificate with its chain, for STARTTLS; reloaded when it changes.',
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

/** HTTPS of the public pages. */
const publicTls = section({
  listen: listenOrOff
    .default('off')
    .describe('HTTPS listener for the same pages with certificates from an ACME authority, or "off".'),
  agreeToTerms: z
    .boolean()
    .default(false)
    .describe("Whether you agree to the certificate authority's terms of service; required for listen."),
  email: z.email().optional().meta({
    description: 'Contact address for notices of the certificate authority.',
    shown: 'none',
  }),
  directory: z
    .url({ protocol: /^https$/, error: 'must be an https address' })
    .default('https://acme-v02.api.letsencrypt.org/directory')
    .describe("The certificate authority's ACME directory."),
  directoryCaFile: z.string().min(1).optional().meta({
    description: 'PEM file of the root certificates of a private ACME directory.',
    shown: 'the built-in authorities',
  }),
}).refine(
  ({ listen: at, agreeToTerms }) => at === 'off' || agreeToTerms,
  "needs agreeToTerms = true: read the certificate authority's terms of service first",
);

export const configSchema = z.strictObject({
  hostname: hostName
    .default(() => machineName().toLowerCase())
    .meta({
      description: 'Host name of the platform: EHLO name, MX target, Message-ID fallback.',
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
        '32 random bytes that encrypt DKIM keys and secrets at rest; created with mode 0600 if absent.',
      shown: '<data.dir>/master.key',
    }),
  }),
  api: section({
    listen: listen.default('127.0.0.1:8080').describe('HTTP API, documentation, health and metrics.'),
    trustedProxies: z
      .array(z.string())
      .default([])
      .describe('Proxies (address or CIDR) whose X-Forwarded-For is trusted.'),
    hosts: z
      .array(
        z.string().regex(HOST_PATTERN, 'must be a host name such as "api.example.com" or "*.example.com"'),
      )
      .default([])
      .describe(
        'Host names of the API in addition to "hostname", localhost, addresses and names without a dot; "*.example.com" covers subdomains.',
      ),
    connectionsPerAddress: count
      .default(256)
      .describe('Concurrent connections from one address (IPv6: /64); not counted for trustedProxies.'),
    metricsKey: z.string().min(16).optional().meta({
      description:
        'Bearer token that /metrics requires of every caller; none: loopback callers only, without a token.',
      shown: 'none',
    }),
  }),
  public: section({
    listen: listen
      .default('127.0.0.1:8081')
      .describe(
        'Tracking, unsubscribe and report-abuse pages: the only HTTP listener that must be reachable from the internet.',
      ),
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
      .describe('Proxies (address or CIDR) whose X-Forwarded-For is trusted.'),
    tls: publicTls,
  }),
  mx: section({
    listen: listenOrOff
      .default('127.0.0.1:2525')
      .describe('SMTP listener for bounces, complaints and reports, or "off".'),
    tls: tlsFiles('self-signed, generated at the start'),
    proxyProtocol: z
      .array(z.union([z.ipv4(), z.ipv6()]))
      .default([])
      .describe('Proxies (addresses) that begin each connection with a PROXY header, version 1 or 2.'),
    feedbackLoops: z
      .array(hostName)
      .default(['yahoo.com', 'hotmail.com', 'validity.com', 'senderscore.net'])
      .describe(
        "Domains whose signed complaints are trusted for every recipient: operators of feedback loops that you are enrolled in. Complaints of other senders are trusted only from the recipient's own provider.",
      ),
    mailBytes: count.default(20_971_520).describe('Maximum size of a received message, in bytes.'),
    connections: count.default(1000).describe('Concurrent connections.'),
    connectionsPerAddress: count
      .default(30)
      .describe(
        'Concurrent connections from one address (IPv4) or /64 (IPv6); a further connection replaces the least useful one.',
      ),
  }),
  submission: section({
    listen: listenOrOff.default('off').describe('Authenticated SMTP submission, or "off".'),
    implicitTls: z
      .boolean()
      .default(false)
      .describe('Whether connections begin with TLS (port 465) instead of STARTTLS (port 587).'),
    tls: tlsFiles('the files of mx.tls'),
    proxyProtocol: z
      .array(z.union([z.ipv4(), z.ipv6()]))
      .default([])
      .describe('Proxies (addresses) that begin each connection with a PROXY header, version 1 or 2.'),
    connections: count.default(1000).describe('Concurrent connections.'),
    connectionsPerAddress: count
      .default(100)
      .describe(
        'Concurrent connections from one address (IPv4) or /64 (IPv6); a further connection replaces the least useful one.',
      ),
  }),
  dns: section({
    resolvers: z.array(resolver).default([]).meta({
      description: 'Resolvers ("ip" or "ip:port") for all lookups; empty: those of the system.',
      shown: '[]',
    }),
    timeoutMs: ms.max(60_000).default(5000).describe('Timeout of one lookup including its retries, in ms.'),
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
      .meta({ description: 'Threads that compose, sign and send messages.', shown: 'cores - 1, at least 1' }),
    connections: count.optional().meta({
      description:
        'Concurrent outbound SMTP sessions to all destinations; the same number of connections may be idle. Shared by accounts and destinations.',
      shown: '500, or a quarter of the limit of open files',
    }),
    inFlightBytes: count
      .default(67_108_864)
      .describe(
        'Message contents in delivery, in bytes, without the first 64 KB of each; they need about three times as much memory. Shared by accounts and destinations.',
      ),
    returnPath: z
      .enum(['customer', 'auto', 'platform'])
      .default('auto')
      .describe(
        'Envelope sender domain: return-a.<domain>, that of the platform, or depending on SPF ("auto").',
      ),
    routes: z
      .array(route)
      .default([])
      .describe(
        'Static next hops instead of MX: { match = "example.net" or "*", host, port, tls, user, passwordFile, allowUnverifiedAuth }. tls is "none", "opportunistic" (default without user), "required" or "verified" (default with user: the certificate must be valid for host; add a private authority with NODE_EXTRA_CA_CERTS). A weaker tls together with user needs allowUnverifiedAuth = true.',
      ),
    egress: z.array(egressEntry).superRefine(uniqueBy('name')).default([]).meta({
      description:
        'Source addresses: { name, address, address6, publicAddress, hostname, pools }; empty: chosen by the system.',
      shown: '[]',
    }),
    shaping: z
      .array(shapingProfile)
      .default(DEFAULT_SHAPING.map((profile) => shapingProfile.parse(profile)))
      .describe(
        'Limits by destination: { match = MX host or recipient domain, connections, messagesPerConnection, idleSeconds, tls }.',
      ),
    retry: section({
      first: duration
        .default(300_000)
        .meta({ description: 'Delay after the first deferral.', shown: '"5m"' }),
      greylisted: duration
        .default(120_000)
        .meta({ description: 'Delay after a greylisting reply.', shown: '"2m"' }),
      factor: z
        .number()
        .min(1)
        .max(10)
        .default(2)
        .describe('Factor by which each further delay grows; each varies by ±10 %.'),
      max: duration.default(14_400_000).meta({ description: 'Maximum delay.', shown: '"4h"' }),
      expireMarketing: duration
        .default(345_600_000)
        .meta({ description: 'Marketing messages expire after this time.', shown: '"4d"' }),
      expireTransactional: duration
        .default(172_800_000)
        .meta({ description: 'Transactional messages expire after this time.', shown: '"2d"' }),
    }),
  }),
  readers: section({
    threads: z.int().min(1).max(16).default(2).describe('Threads that run lists, searches and statistics.'),
    budget: duration
      .refine((value) => value >= 100, 'must be at least 100ms')
      .default(2000)
      .meta({
        description: 'Time budget of such a query; longer queries answer 503 QUERY_TOO_BROAD.',
        shown: '"2s"',
      }),
  }),
  verification: section({
    dmarcPolicy: z
      .enum(['enforced', 'any'])
      .default('enforced')
      .describe(
        'DMARC policies that pass verification: "enforced" (quarantine, reject) or "any" (also none with rua).',
      ),
  }),
  regions: z
    .array(region)
    .min(1)
    .superRefine(uniqueBy('code'))
    .default([{ code: 'local', name: 'This server', pools: { tx: 'default', mk: 'default' } }])
    .describe('Use case ids are tx-<code> and mk-<code>; `pools` sets the egress pool of each.'),
  secondary: secondary
    .default({ type: 'builtin', pool: 'secondary' })
    .describe(
      'Secondary lane: { type = "builtin", pool } or { type = "relay", host, port, tls, user, passwordFile, allowUnverifiedAuth, spfInclude }.',
    ),
  webhooks: section({
    allowPrivateNetworks: z
      .boolean()
      .default(true)
      .describe('Whether webhooks may call private addresses; link-local addresses are always refused.'),
  }),
  limits: section({
    setupPerSecond: count.default(200).describe('Requests per second and key on the setup interface.'),
    setupBurst: count.default(400).describe('Burst of the same limit.'),
    sendPerSecond: count
      .optional()
      .meta({ description: 'Send requests per second and key.', shown: 'unlimited' }),
    sendBytes: count.default(4_194_304).describe('Maximum request body of the send operations, in bytes.'),
    setupBytes: count.default(262_144).describe('Maximum request body of other operations, in bytes.'),
    queuedMessages: count.default(5_000_000).describe('Queued messages above which sends answer 503.'),
    freeDiskBytes: z
      .int()
      .min(0)
      .default(1_073_741_824)
      .describe('Free disk space below which sends answer 503, in bytes.'),
    bodyDays: count.default(7).describe('Days until message bodies are deleted after the final state.'),
    eventDays: count.default(90).describe('Days until events and message records are deleted.'),
    idempotencyHours: count.default(24).describe('Hours for which an Idempotency-Key is stored.'),
    account: section({
      domains: quota.default(100).describe('Domains of an account without an individual limit.'),
      webhooks: quota.default(50).describe('Webhooks of such an account.'),
      templates: quota.default(10_000).describe('Templates of such an account.'),
      contacts: quota.optional().meta({ description: 'Contacts of such an account.', shown: 'unlimited' }),
      messagesPerHour: quota.optional().meta({
        description: 'Messages of such an account in any 60 minutes; each recipient counts.',
        shown: 'unlimited',
      }),
      messagesPerDay: quota.optional().meta({
        description: 'Messages of such an account in any 24 hours; each recipient counts.',
        shown: 'unlimited',
      }),
      concurrentRequests: count.default(64).describe('Concurrent API requests of such an account.'),
      setupPerSecond: count.optional().meta({
        description: 'Requests per second of all keys of an account on the setup interface.',
        shown: 'twice limits.setupPerSecond',
      }),
      setupBurst: count.optional().meta({
        description: 'Burst of the same limit.',
        shown: 'twice limits.setupBurst',
      }),
    }),
  }),
  log: section({
    level: z
      .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
      .default('info')
      .describe('Minimum level of log records.'),
    hashAddresses: z
      .boolean()
      .default(true)
      .describe('Whether email addresses are hashed in the log (never at debug).'),
  }),
});

export type RawConfig = z.output<typeof configSchema>;
export type DeliveryRoute = z.output<typeof route>;

export type ShapingProfile = z.output<typeof shapingProfile>;

/** The settings with all defaults, as the daemon and the commands use them. */
export type Config = Omit<RawConfig, 'data' | 'public' | 'delivery'> & {
  data: { dir: string; masterKeyFile: string };
  public: RawConfig['public'] & { url: string };
  delivery: RawConfig['delivery'] & { workers: number };
  /** The file of the settings; null: built-in defaults. */
  file: string | null;
};

/** Default number of delivery threads: one core is left for the main thread. */
export function defaultWorkers(): number {
  return Math.max(1, availableParallelism() - 1);
}
