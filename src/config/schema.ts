import { availableParallelism, hostname as machineName } from 'node:os';
import { validate } from 'node-cron';
import * as z from 'zod';
import { consoleSettings } from './console-settings.ts';
import { dnsServer, domainSettings } from './dns-settings.ts';
import { DEFAULT_WARMUP_SCHEDULE, egressEntry, warmupSchedule } from './egress-settings.ts';
import { replyRules } from './reply-rules.ts';
import { reputationSettings } from './reputation-settings.ts';
import {
  AEAD_CIPHERS,
  blocklist,
  cipherList,
  count,
  DEFAULT_BLOCKLISTS,
  deliveryRoute,
  deliveryTls,
  dnsServerAddress,
  duration,
  HOST_PATTERN,
  hostName,
  httpUrl,
  isBaseUrl,
  listen,
  listenOrOff,
  live,
  ms,
  parseListen,
  path,
  port,
  publicTls,
  quota,
  region,
  restart,
  secondary,
  secret,
  section,
  TIME_SERVER,
  tlsFiles,
  tlsReports,
  trustedProxies,
  uniqueBy,
} from './setting-types.ts';
import { type ShapingProfile, shapingEntries } from './shaping.ts';

/** Providers whose sending endpoints the API can have. */
export const COMPAT_PROVIDERS = ['postmark', 'resend', 'sendgrid', 'mailgun', 'ses'] as const;

export const MIN_METRICS_KEY_LENGTH = 16;

/* Settings of both SMTP listeners. */
const proxyProtocol = restart(
  z.array(z.union([z.ipv4(), z.ipv6()])).default([]),
  'Proxies (addresses) that begin each connection with a PROXY header, version 1 or 2.',
);
const smtpConnectionsPerAddress = (most: number) =>
  restart(
    count.default(most),
    'Concurrent connections from one address (IPv4) or /64 (IPv6); a further connection replaces the least useful one. A /56 may have twice as many, a /48 four times, an IPv4 /24 eight times.',
  );

/**
 * All settings: whether a reload applies a change (`live`) or a restart is needed (`restart`), with type and default,
 * description (the comment in the generated example) and the default in words. A setting whose default depends on other settings is optional here;
 * `load.ts` sets it. One table, whatever its length: the example, the documentation and the reload derive from it.
 */
export const configSchema = z.strictObject({
  hostname: restart(
    hostName.default(() => machineName().toLowerCase()),
    'Host name of the platform: EHLO name, MX target, Message-ID fallback.',
    "the machine's host name",
  ),
  data: section({
    dir: restart(
      path.default('data'),
      'Database and key file; created with mode 0700. Relative paths start from the directory of this file.',
    ),
    masterKeyFile: restart(
      path.optional(),
      '32 random bytes that encrypt DKIM keys and secrets at rest; created with mode 0600 if absent.',
      '<data.dir>/master.key',
    ),
  }),
  api: section({
    listen: restart(listen.default('127.0.0.1:8080'), 'HTTP API, documentation, health and metrics.'),
    trustedProxies,
    hosts: live(
      z
        .array(
          z.string().regex(HOST_PATTERN, 'must be a host name such as "api.example.com" or "*.example.com"'),
        )
        .default([]),
      'Host names of the API in addition to "hostname", localhost, addresses and names without a dot; "*.example.com" covers subdomains.',
    ),
    connectionsPerAddress: live(
      count.default(256),
      'Concurrent connections from one address (IPv6: /64); a /56 may have twice as many, a /48 four times, an IPv4 /24 eight times. Not counted for trustedProxies.',
    ),
    metricsKey: secret(
      z.string().min(MIN_METRICS_KEY_LENGTH).optional(),
      'Bearer token that /metrics requires of every caller; none: loopback callers only, without a token. Use metricsKeyFile instead, which keeps it out of this file.',
      'none',
    ),
    metricsKeyFile: live(
      path.optional(),
      'File with that token; read at the start and at each reload.',
      'none',
    ),
  }).refine(
    ({ metricsKey, metricsKeyFile }) => metricsKey === undefined || metricsKeyFile === undefined,
    'must have only one of metricsKey and metricsKeyFile',
  ),
  compat: section({
    enable: restart(
      z
        .array(z.enum(COMPAT_PROVIDERS))
        .refine((names) => new Set(names).size === names.length, 'must not have a name twice')
        .default([]),
      `Providers whose sending endpoints the API has as well, under /compat/<name>: ${COMPAT_PROVIDERS.join(', ')}.`,
    ),
  }),
  public: section({
    listen: restart(
      listen.default('127.0.0.1:8081'),
      'Tracking, unsubscribe and report-abuse pages: the only HTTP listener that must be reachable from the internet.',
    ),
    url: restart(
      httpUrl.refine(isBaseUrl, 'must not have a user name, a query ("?") or a fragment ("#")').optional(),
      'Base address of the default tracking domain, as recipients see it.',
      'http://<public.listen>',
    ),
    trustedProxies,
    tls: publicTls,
  }),
  console: consoleSettings,
  mx: section({
    listen: restart(
      listenOrOff.default('127.0.0.1:2525'),
      'SMTP listener for bounces, complaints and reports, or "off".',
    ),
    tls: tlsFiles('self-signed, generated at the start'),
    ciphers: restart(
      cipherList.default(AEAD_CIPHERS),
      'Cipher suites of TLS 1.2 and 1.3, as in openssl-ciphers(1). A client without any of them sends its mail in plain text.',
      'AEAD suites with forward secrecy (RFC 9325)',
    ),
    proxyProtocol,
    feedbackLoops: live(
      z.array(hostName).default(['yahoo.com', 'hotmail.com', 'validity.com', 'senderscore.net']),
      "Domains whose signed complaints are trusted for every recipient: operators of feedback loops that you are enrolled in. Complaints of other senders are trusted only from the recipient's own provider.",
    ),
    mailBytes: restart(
      count.default(36_700_160),
      'Maximum size of a received message, in bytes: 35 MiB for attachments of 25 MB.',
    ),
    connections: restart(count.default(1000), 'Concurrent connections.'),
    connectionsPerAddress: smtpConnectionsPerAddress(30),
  }),
  submission: section({
    listen: restart(listenOrOff.default('off'), 'Authenticated SMTP submission, or "off".'),
    implicitTls: restart(
      z.boolean().default(false),
      'Whether connections begin with TLS (port 465) instead of STARTTLS (port 587).',
    ),
    tls: tlsFiles('the files of mx.tls'),
    proxyProtocol,
    connections: restart(count.default(1000), 'Concurrent connections.'),
    connectionsPerAddress: smtpConnectionsPerAddress(100),
  }),
  dns: section({
    resolvers: live(
      z.array(dnsServerAddress).default([]),
      'Resolvers ("ip" or "ip:port") for all lookups; empty: those of the system.',
      '[]',
    ),
    timeoutMs: live(ms.max(60_000).default(5000), 'Timeout of one lookup including its retries, in ms.'),
    trustAd: live(
      z.enum(['loopback', 'always', 'never']).default('loopback'),
      'Resolvers whose DNSSEC validation (AD flag) is trusted, as DANE requires: those on loopback addresses, all ("always": only if nobody else can change packets on the way), or none.',
    ),
    server: dnsServer,
  }),
  domains: domainSettings,
  delivery: section({
    port: live(port.default(25), 'Port at the destination MX.'),
    allowPrivateNetworks: live(
      z.boolean().default(false),
      'Whether mail may be delivered to loopback, link-local and private addresses.',
    ),
    workers: restart(
      count.max(64).optional(),
      'Threads that compose, sign and send messages.',
      'cores - 1, at least 1',
    ),
    connections: restart(
      count.optional(),
      'Concurrent outbound SMTP sessions to all destinations; the same number of connections may be idle. Shared by accounts and destinations.',
      '500, or a quarter of the limit of open files',
    ),
    inFlightBytes: restart(
      count.default(67_108_864),
      'Message contents in delivery, in bytes, without the first 64 KB of each; they need about three times as much memory. Shared by accounts and destinations.',
    ),
    returnPath: live(
      z.enum(['customer', 'auto', 'platform']).default('auto'),
      'Envelope sender domain: return-a.<domain>, that of the platform, or depending on SPF ("auto").',
    ),
    routes: live(
      z.array(deliveryRoute).default([]),
      'Static next hops instead of MX: { match = "example.net" or "*", host, port, tls, user, passwordFile, allowUnverifiedAuth }. tls is "none", "opportunistic" (default without user), "required" or "verified" (default with user: the certificate must be valid for host; add a private authority with NODE_EXTRA_CA_CERTS). A weaker tls together with user needs allowUnverifiedAuth = true.',
    ),
    egress: live(
      z.array(egressEntry).superRefine(uniqueBy('name')).default([]),
      'Source addresses: { name, address, address6, publicAddress, hostname, pools, proxy = "socks5://user@host:port", proxyPasswordFile, warmup = { started = 2026-12-01, days = 30 } }; empty: chosen by the system.',
      '[]',
    ),
    shaping: live(
      shapingEntries.default([]),
      'Limits by destination, before those of the program: { match = MX hosts or recipient domains, connections, messagesPerConnection, perSecond, idleSeconds, tls, chunking, shared, addressPause, delisting }; with the name of a profile of the program ("google", "default", …) instead of match, only the keys to change.',
    ),
    replies: live(
      replyRules.default([]),
      'Meaning of replies, before the built-in rules: { match, code, enhanced, provider or mx, phase, meaning, action, retryAfter, automation = { after = 5, within = "1h", then = "suspend 2h", "connections 1" or "perMinute 10" } }. match: words of the reply with "*" for any words between them, or a regular expression between slashes; match, code, enhanced, mx and phase may be lists.',
    ),
    tls: deliveryTls,
    warmup: section({
      schedule: live(
        warmupSchedule.default([...DEFAULT_WARMUP_SCHEDULE]),
        'Messages per day and mailbox provider from an address that is warmed up, step by step; unlimited after the last step. Stretched or shortened to the days of the address.',
      ),
      transactionalFactor: live(
        z.number().min(1).max(10).default(2),
        'Multiple of the limit up to which transactional mail may be sent while no warm address of the pool can take it; 1: it waits for the next day.',
      ),
      stepBack: live(
        z.int().min(1).max(30).default(3),
        'Days by which the warm-up at a provider goes back when it defers or complains.',
      ),
      deferralPercent: live(
        z.number().min(1).max(100).default(10),
        'Share of attempts of a day that a provider may throttle or refuse before the step back.',
      ),
      complaintPercent: live(
        z.number().min(0.01).max(100).default(0.3),
        'Share of delivered messages of two days that may be complained about before the step back.',
      ),
    }),
    retry: section({
      first: live(duration.default(300_000), 'Delay after the first deferral.', '"5m"'),
      greylisted: live(
        duration.default(120_000),
        'Delay after a greylisting reply to the first attempt; later ones follow the schedule.',
        '"2m"',
      ),
      factor: live(
        z.number().min(1).max(10).default(2),
        'Factor by which each further delay grows; each varies by ±10 %.',
      ),
      max: live(duration.default(14_400_000), 'Maximum delay.', '"4h"'),
      expireMarketing: live(
        duration.default(345_600_000),
        'Marketing messages expire after this time.',
        '"4d"',
      ),
      expireTransactional: live(
        duration.default(172_800_000),
        'Transactional messages expire after this time.',
        '"2d"',
      ),
    }),
  }),
  tlsReports,
  readers: section({
    threads: restart(z.int().min(1).max(16).default(2), 'Threads that run lists, searches and statistics.'),
    budget: live(
      duration.refine((value) => value >= 100, 'must be at least 100ms').default(2000),
      'Time budget of such a query; longer queries answer 503 QUERY_TOO_BROAD.',
      '"2s"',
    ),
  }),
  verification: section({
    dmarcPolicy: live(
      z.enum(['enforced', 'any']).default('enforced'),
      'DMARC policies that pass verification: "enforced" (quarantine, reject) or "any" (also none with rua).',
    ),
  }),
  regions: live(
    z
      .array(region)
      .min(1)
      .superRefine(uniqueBy('code'))
      .default([{ code: 'local', name: 'This server', pools: { tx: 'default', mk: 'default' } }]),
    'Use case ids are tx-<code> and mk-<code>; `pools` sets the egress pool of each.',
  ),
  secondary: live(
    secondary.default({ type: 'builtin', pool: 'secondary', share: 0.1, perHour: 1000 }),
    'Secondary lane, for mail that the primary lane cannot deliver because of its address: { type = "builtin", pool } or { type = "relay", host, port, tls, user, passwordFile, allowUnverifiedAuth, spfInclude }. `share`: of an account’s attempts in an hour; `perHour`: messages of all accounts (a message that exceeds them stays in the primary lane).',
  ),
  reputation: reputationSettings,
  webhooks: section({
    allowPrivateNetworks: live(
      z.boolean().optional(),
      'Whether webhooks may call private addresses. Default: only while there is one account and the console is off. Link-local addresses and the listeners of the daemon are never called.',
      'true with one account and without the console',
    ),
    operatorAccounts: live(
      z.array(z.string().max(100)).max(20).default([]),
      'Ids of the accounts whose webhooks and events include those of the installation (`source_address_blocked`); empty: the only account, if there is no other.',
    ),
  }),
  doctor: section({
    blocklists: live(
      z.array(blocklist).max(20).superRefine(uniqueBy('zone')).default(DEFAULT_BLOCKLISTS),
      'DNS blocklists (RFC 5782) in which "doctor" searches for the source addresses: { zone, families = ["ipv4", "ipv6"] }.',
    ),
    mailHosts: live(
      z
        .array(hostName)
        .max(10)
        .default([
          'gmail-smtp-in.l.google.com',
          'mta5.am0.yahoodns.net',
          'outlook-com.olc.protection.outlook.com',
        ]),
      'Mail servers of others to which "doctor" opens connections on delivery.port; nothing is sent.',
    ),
    timeServers: live(
      z
        .array(z.string().regex(TIME_SERVER, 'must be "host" or "host:port" such as "pool.ntp.org"'))
        .max(5)
        .default(['pool.ntp.org', 'time.cloudflare.com']),
      'SNTP servers with which "doctor" compares the clock, in this order.',
    ),
  }),
  limits: section({
    setupPerSecond: live(count.default(200), 'Requests per second and key on the setup interface.'),
    setupBurst: live(count.default(400), 'Burst of the same limit.'),
    sendPerSecond: live(count.optional(), 'Send requests per second and key.', 'unlimited'),
    sendBytes: restart(count.default(4_194_304), 'Maximum request body of the send operations, in bytes.'),
    setupBytes: live(count.default(262_144), 'Maximum request body of other operations, in bytes.'),
    queuedMessages: live(
      count.default(5_000_000),
      'Queued messages above which sends answer 503. A ninth more is reserved for accounts with few queued messages.',
    ),
    freeDiskBytes: live(
      z.int().min(0).default(1_073_741_824),
      'Free disk space below which sends, and every other request that adds data, answer 503, in bytes.',
    ),
    bodyDays: live(count.default(7), 'Days until message bodies are deleted after the final state.'),
    eventDays: live(count.default(90), 'Days until events and message records are deleted.'),
    inboundDays: live(count.default(30), 'Days until inbound mail of accounts is deleted.'),
    idempotencyHours: restart(count.default(24), 'Hours for which an Idempotency-Key is stored.'),
    account: section({
      domains: live(quota.default(100), 'Domains of an account without an individual limit.'),
      webhooks: live(quota.default(50), 'Webhooks of such an account.'),
      templates: live(quota.default(10_000), 'Templates of such an account.'),
      storedBytes: live(
        quota.default(5_368_709_120),
        'Bytes that such an account stores: contacts, templates, campaigns, groups and the contents of its messages.',
      ),
      campaigns: live(quota.default(10_000), 'Campaigns of such an account.'),
      subscriptionGroups: live(quota.default(1000), 'Subscription groups of such an account.'),
      suppressions: live(
        quota.optional(),
        'Suppressions of such an account; those of bounces, complaints and recipients are added above it, too.',
        'unlimited',
      ),
      contacts: live(quota.optional(), 'Contacts of such an account.', 'unlimited'),
      messagesPerHour: live(
        quota.optional(),
        'Messages of such an account in any 60 minutes; each recipient counts, also at the simulator.',
        'unlimited',
      ),
      messagesPerDay: live(
        quota.optional(),
        'Messages of such an account in any 24 hours; each recipient counts, also at the simulator.',
        'unlimited',
      ),
      concurrentRequests: live(count.default(64), 'Concurrent API requests of such an account.'),
      setupPerSecond: live(
        count.optional(),
        'Requests per second of all keys of an account on the setup interface.',
        'twice limits.setupPerSecond',
      ),
      setupBurst: live(count.optional(), 'Burst of the same limit.', 'twice limits.setupBurst'),
    }),
  }),
  backup: section({
    schedule: restart(
      z
        .string()
        .refine(
          (text) => validate(text) && text.trim().split(/\s+/).length === 5,
          'must have five fields as in crontab(5): "minute hour day month weekday"',
        )
        .optional(),
      'When backups are created: minute, hour, day, month, weekday as in crontab(5), in the time zone of the system. Example: "30 3 * * *".',
      'never',
    ),
    dir: restart(
      path.default('backups'),
      'Directory of scheduled backups, preferably on another disk. Relative paths start from data.dir.',
    ),
    keep: restart(count.default(7), 'Minimum number of scheduled backups that are kept.'),
    keepDays: restart(
      count.optional(),
      'Days after which backups beyond that number are removed.',
      'immediately',
    ),
    bytesPerSecond: restart(
      z.int().min(1_048_576).default(67_108_864),
      'Rate at which a backup reads the database, in bytes per second, so that sends are not delayed.',
    ),
  }),
  checks: section({
    spamassassin: live(
      z
        .string()
        .refine((text) => (parseListen(text)?.port ?? 0) > 0, 'must be "host:port" such as "127.0.0.1:783"')
        .optional(),
      'The spamd of SpamAssassin ("host:port") that judges content before it is sent, when a person requests it.',
      'none',
    ),
    rspamd: live(
      httpUrl.refine(isBaseUrl, 'must not have a user name, a query ("?") or a fragment ("#")').optional(),
      'The same with Rspamd: address of a worker that answers /checkv2, such as "http://127.0.0.1:11333".',
      'none',
    ),
  }),
  standby: section({
    peers: restart(
      z
        .array(z.url({ protocol: /^https?$/, error: 'must be an address such as "http://192.0.2.2:8080"' }))
        .max(16)
        .default([]),
      'API addresses of daemons that may have a restored copy of this database. This daemon stops when one of them has taken over.',
    ),
  }),
  log: section({
    level: live(
      z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
      'Minimum level of log records.',
    ),
    hashAddresses: live(
      z.boolean().default(true),
      'Whether email addresses are hashed in the log (never at debug).',
    ),
  }),
});

export type RawConfig = z.output<typeof configSchema>;
/** The settings with all defaults, as the daemon and the commands use them. */
export type Config = Omit<RawConfig, 'data' | 'public' | 'console' | 'delivery'> & {
  data: { dir: string; masterKeyFile: string };
  public: RawConfig['public'] & { url: string };
  console: RawConfig['console'] & { url: string };
  delivery: Omit<RawConfig['delivery'], 'shaping'> & { workers: number; shaping: ShapingProfile[] };
  /** The file of the settings; null: built-in defaults. */
  file: string | null;
};

/** Default number of delivery threads: one core is left for the main thread. */
export function defaultWorkers(): number {
  return Math.max(1, availableParallelism() - 1);
}
