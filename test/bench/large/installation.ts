import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Credentials, DomainRecord } from '../../support/api-client.ts';
import { type RunningDaemon, type Settings, startDaemon } from '../../support/daemon.ts';
import { startDnsServer } from '../../support/dns-server.ts';
import { startGroup } from '../../support/group.ts';
import { publishPlatform, verifiedDomain } from '../../support/verified-domain.ts';
import { publishRecipients, RECIPIENT_DOMAINS } from '../receiver.ts';

/**
 * The data directory of the benchmark for large databases, and the daemon that runs on it. Resources that only the
 * product can create (keys, domains with encrypted DKIM keys, webhooks) are created through its API in a directory
 * without history; `history.ts` adds the history.
 */
export interface Installation {
  /** The first account has the largest share, and owns all resources below. */
  accounts: Credentials[];
  /** Transactional, marketing, and one with few messages. */
  domains: { tx: InstalledDomain; mk: InstalledDomain; rare: InstalledDomain };
  webhook: { webhookId: string; number: number };
  group: { subscriptionGroupId: string; seq: number };
  /** Campaigns of the history; the last one is a draft without messages. */
  campaignIds: string[];
  /** Absent without history. */
  history?: HistoryExtent;
}

export interface HistoryExtent {
  messages: number;
  /** The end of the history, epoch ms. */
  now: number;
}

interface InstalledDomain {
  domainId: string;
  name: string;
  records: DomainRecord[];
}

export interface RunningInstallation extends Installation {
  daemon: RunningDaemon;
  /** From the start of the process to the first 200 of `/readyz`, in ms. */
  startMs: number;
  probe: DaemonProbe;
  stop(): Promise<void>;
}

/** Measurements of `probe.js`, which runs inside the daemon. */
export interface DaemonProbe {
  /** The longest delay of the event loop since the last call. */
  delay(): Promise<Delay>;
  /** The slowest statements since the last call; none unless they are measured. */
  statements(): Promise<SlowStatement[]>;
}

/** In ms. `ownMs` excludes the time in which the thread waited for a CPU. */
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

export const CAMPAIGNS = 12;
const ACCOUNTS = 5;
const FILE = 'installation.json';
/** The first start migrates the database, which takes minutes for millions of messages. */
const FIRST_START_MS = 3_600_000;

/** Creates accounts, domains, a webhook, a group and campaigns unless the directory contains them. */
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
      // Calls would be additional load during the measurements.
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
    writeInstallation(dataDir, installation);
    return installation;
  } finally {
    await stop();
  }
}

export function readInstallation(dataDir: string): Installation {
  return JSON.parse(readFileSync(join(dataDir, FILE), 'utf8'));
}

/** Writes the description of an installation to a data directory. */
export function writeInstallation(dataDir: string, installation: Installation): void {
  writeFileSync(join(dataDir, FILE), JSON.stringify(installation, null, 1), { mode: 0o600 });
}

/** Starts the built daemon on a prepared data directory; it delivers all messages to `smtpPort`. */
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
  publishRecipients(dns);
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
    const probe: DaemonProbe = {
      delay: () => requestProbe(socket, 'delay'),
      statements: () => requestProbe(socket, 'statements'),
    };
    return { daemon, dns, startMs, probe, stop };
  } catch (error) {
    await dns.close();
    rmSync(probeDir, { recursive: true });
    throw error;
  }
}

function requestProbe<Response>(socket: string, measurement: string): Promise<Response> {
  return new Promise((resolve, reject) => {
    const connection = connect(socket, () => connection.write(measurement));
    let response = '';
    connection.setEncoding('utf8');
    connection.on('data', (text) => (response += String(text)));
    connection.once('error', reject);
    connection.once('end', () => resolve(JSON.parse(response)));
  });
}
