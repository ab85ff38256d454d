import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Credentials, DomainRecord } from '../../support/api-client.ts';
import { HOSTNAME, type RunningDaemon, type Settings, startDaemon } from '../../support/daemon.ts';
import { startDnsServer } from '../../support/dns-server.ts';
import { startGroup } from '../../support/group.ts';
import { publishPlatform, verifiedDomain } from '../../support/verified-domain.ts';

/**
 * A data directory that the benchmark for large databases works with, and the daemon that runs on it. What only the
 * product can create (keys, domains with sealed DKIM keys, webhooks) is created through its API in a directory without
 * history; `history.ts` adds the history.
 */
export interface Installation {
  /** The first one owns the largest share and everything named here. */
  accounts: Credentials[];
  /** Transactional, marketing, and one with few messages. */
  domains: { tx: InstalledDomain; mk: InstalledDomain; rare: InstalledDomain };
  webhook: { webhookId: string; number: number };
  group: { subscriptionGroupId: string; seq: number };
  /** Of history, all sent; the last one is a draft without messages. */
  campaignIds: string[];
  /** Of the history; absent while there is none. */
  history?: HistoryExtent;
}

export interface HistoryExtent {
  messages: number;
  /** When it ends, epoch ms. */
  now: number;
}

interface InstalledDomain {
  domainId: string;
  name: string;
  records: DomainRecord[];
}

export interface RunningInstallation extends Installation {
  daemon: RunningDaemon;
  /** From the start of the process to the first answer of `/readyz`, in ms. */
  startMs: number;
  probe: Probe;
  stop(): Promise<void>;
}

/** What `probe.js` answers from inside the daemon. */
export interface Probe {
  /** The longest delay of the event loop since the last call. */
  delay(): Promise<Delay>;
  /** The slowest statements since the last call; none unless they are measured. */
  statements(): Promise<SlowStatement[]>;
}

/** In ms. `ownMs` is without the time in which the thread waited for a CPU. */
export interface Delay {
  delayMs: number;
  ownMs: number;
}

export interface SlowStatement {
  sql: string;
  longestMs: number;
  times: number;
  totalMs: number;
}

export const MX_HOSTS = ['127.0.1.1', '127.0.1.2', '127.0.1.3', '127.0.1.4'];
export const RECIPIENT_DOMAINS = Array.from(
  { length: 20 },
  (_, number) => `d${String(number).padStart(2, '0')}.example`,
);
export const CAMPAIGNS = 12;
const ACCOUNTS = 5;
const FILE = 'installation.json';
/** The first start migrates the database: minutes, for millions of messages. */
const FIRST_START_MS = 3_600_000;

/** Creates the directory's contents when it has none: accounts, domains, a webhook, a group and campaigns. */
export async function prepareInstallation(dataDir: string): Promise<Installation> {
  if (existsSync(join(dataDir, FILE))) return readInstallation(dataDir);
  mkdirSync(dataDir, { recursive: true });
  const { daemon, dns, stop } = await start(dataDir, 25, {}, { measureStatements: false });
  try {
    const { api } = daemon;
    const others: Credentials[] = [];
    for (let number = 1; number < ACCOUNTS; number++) others.push(await daemon.account(`Customer ${number}`));
    const domain = async (name: string, useCaseId: string): Promise<InstalledDomain> => {
      const created = await verifiedDomain(daemon, dns, name, { useCaseId });
      const records = created.dnsRecords.filter(({ value }) => value !== 'Creation in progress');
      return { domainId: created.domainId, name, records };
    };
    const domains = {
      tx: await domain('shop.example', 'tx-local'),
      mk: await domain('news.example', 'mk-local'),
      rare: await domain('rare.example', 'tx-local'),
    };
    const webhook = await api.post<{ webhookId: string }>('/web-setup/webhooks', {
      name: 'Shop',
      url: 'https://hooks.example/postrider',
      events: ['email_delivered', 'email_bounced', 'email_failed', 'email_complained'],
      // Calls during the measurements would be a load of their own.
      isActive: false,
    });
    const { subscriptionGroupId, campaignId } = await startGroup(api, [
      { email: `first@${RECIPIENT_DOMAINS[0]}` },
    ]);
    const campaignIds = [campaignId];
    while (campaignIds.length <= CAMPAIGNS) {
      const created = await api.post<{ campaign: { campaignId: string } }>('/web-setup/campaigns', {
        name: `Campaign ${campaignIds.length}`,
      });
      campaignIds.push(created.data.campaign.campaignId);
    }
    const installation: Installation = {
      accounts: [{ accountId: api.accountId, keys: api.keys }, ...others].map(({ accountId, keys }) => ({
        accountId,
        keys,
      })),
      domains,
      webhook: { webhookId: webhook.data.webhookId, number: 1 },
      group: { subscriptionGroupId, seq: 1 },
      campaignIds,
    };
    writeFileSync(join(dataDir, FILE), JSON.stringify(installation, null, 1), { mode: 0o600 });
    return installation;
  } finally {
    await stop();
  }
}

export function readInstallation(dataDir: string): Installation {
  return JSON.parse(readFileSync(join(dataDir, FILE), 'utf8'));
}

/** Copies the description of an installation to a data directory that was built from it. */
export function writeInstallation(dataDir: string, installation: Installation): void {
  writeFileSync(join(dataDir, FILE), JSON.stringify(installation, null, 1), { mode: 0o600 });
}

/** Starts the built daemon on a prepared data directory, with mail for all recipients going to `smtpPort`. */
export async function startInstallation(
  dataDir: string,
  smtpPort: number,
  settings: Settings = {},
  { measureStatements = false } = {},
): Promise<RunningInstallation> {
  const installation = readInstallation(dataDir);
  const running = await start(dataDir, smtpPort, settings, { measureStatements, installation });
  return { ...installation, ...running };
}

async function start(
  dataDir: string,
  smtpPort: number,
  settings: Settings,
  { measureStatements, installation }: { measureStatements: boolean; installation?: Installation },
) {
  const dns = await startDnsServer();
  // As the internet would see it; nobody connects to it.
  dns.set(HOSTNAME, 'A', ['192.0.2.25']);
  MX_HOSTS.forEach((host, site) => dns.set(`mx${site}.provider${site}.example`, 'A', [host]));
  RECIPIENT_DOMAINS.forEach((domain, number) => {
    const site = number % MX_HOSTS.length;
    dns.set(domain, 'MX', [`10 mx${site}.provider${site}.example`]);
  });
  for (const { records } of Object.values(installation?.domains ?? {})) dns.publish(records);
  const probeDir = mkdtempSync(join(tmpdir(), 'postrider-probe-'));
  const socket = join(probeDir, 'socket');
  const began = performance.now();
  try {
    const daemon = await startDaemon(
      {
        'data.dir': dataDir,
        'dns.resolvers': [dns.address],
        'delivery.port': smtpPort,
        'delivery.allowPrivateNetworks': true,
        'log.level': 'warn',
        'limits.setupPerSecond': 10_000,
        'limits.setupBurst': 10_000,
        ...settings,
      },
      {
        NODE_OPTIONS: `--import=${new URL('probe.js', import.meta.url).pathname}`,
        BENCH_PROBE_SOCKET: socket,
        BENCH_PROBE_STATEMENTS: measureStatements ? '1' : '0',
      },
      { startMs: FIRST_START_MS },
    );
    const startMs = performance.now() - began;
    if (installation !== undefined) await publishPlatform(daemon, dns);
    const stop = async () => {
      await daemon.stop();
      await dns.close();
      rmSync(probeDir, { recursive: true });
    };
    const probe: Probe = {
      delay: () => askProbe(socket, 'delay'),
      statements: () => askProbe(socket, 'statements'),
    };
    return { daemon, dns, startMs, probe, stop };
  } catch (error) {
    await dns.close();
    rmSync(probeDir, { recursive: true });
    throw error;
  }
}

function askProbe<Answer>(socket: string, question: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const connection = connect(socket, () => connection.write(question));
    let answer = '';
    connection.setEncoding('utf8');
    connection.on('data', (text) => (answer += String(text)));
    connection.once('error', reject);
    connection.once('end', () => resolve(JSON.parse(answer)));
  });
}
