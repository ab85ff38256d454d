import { mkdirSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { monotonicClock } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createDnsView } from '../../src/dns/dns-view.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import { CHECKS } from '../../src/doctor/checks.ts';
import type { DaemonState, DatabaseState, Machine } from '../../src/doctor/context.ts';
import type { Finding } from '../../src/doctor/finding.ts';
import { openForDoctor } from '../../src/doctor/open-database.ts';
import { runChecks } from '../../src/doctor/run.ts';
import { platformOf } from '../../src/domains/platform/platform.ts';
import { platformZone } from '../../src/domains/platform/platform-zone.ts';
import { domainRecords } from '../../src/domains/records.ts';
import type { DomainRow } from '../../src/store/domains/domains.ts';
import { loadMasterKey } from '../../src/store/master-key.ts';
import { createTables } from '../../src/store/tables.ts';
import { type Authority, type Certificate, createAuthority } from '../support/certificates.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { fixedPublicKey } from '../support/rsa-keys.ts';
import { startSink } from '../support/smtp-sink.ts';
import { startSntpServer } from '../support/sntp-server.ts';
import { heldClock, insertAccount, insertDomain, openNewDatabase, temporaryDir } from '../support/store.ts';

export const HOST = 'mail.example.net';
export const ADDRESS = '192.0.2.25';
export const POINTER = '25.2.0.192.in-addr.arpa';
export const LIST = 'bl.test';
/** The time of every setup. */
export const NOW = Date.UTC(2026, 10, 22, 12);
const YEAR_MS = 365 * 86_400_000;

/** Parts that a test replaces before the checks run. */
export interface SetupOptions {
  /** Settings by path: `{ 'mx.listen': 'off' }`. */
  settings?: Record<string, unknown>;
  domain?: Partial<DomainRow>;
  /** Certificate of the public pages, by the authority that the checks trust. */
  pageCertificate?: (authority: Authority, names: string[]) => Certificate;
}

/**
 * A complete, healthy installation on loopback: DNS server, mail servers of others, our listener, public pages over
 * HTTPS, a time server, and a database with a verified domain. A test breaks one part of it.
 */
export async function startHealthySetup(options: SetupOptions = {}) {
  const clock = heldClock(NOW);
  const dir = temporaryDir();
  const authority = createAuthority();
  const pageNames = ['pages.test', 'link.example.com'];
  const issue = options.pageCertificate ?? ((by, names) => by.issue(names, new Date(Date.now() + YEAR_MS)));
  const skew = { ms: 0 };
  const [dns, big, mx, time, pages] = await Promise.all([
    startDnsServer(),
    startSink({ script: { greeting: '220 mx.big.test ESMTP' } }),
    startSink({ script: { greeting: `220 ${HOST} ESMTP` } }),
    startSntpServer(() => clock.now() + skew.ms),
    startPages(issue(authority, pageNames)),
  ]);
  const config = settings(dir, {
    hostname: HOST,
    'dns.resolvers': [dns.address],
    'dns.timeoutMs': 5000,
    'delivery.port': big.port,
    'mx.listen': '0.0.0.0:25',
    'public.url': `https://pages.test:${pages.port}`,
    'doctor.mailHosts': ['mx.big.test'],
    'doctor.timeServers': [`time.test:${time.port}`],
    'limits.freeDiskBytes': 1_000_000,
    ...options.settings,
  });
  config.doctor.blocklists = [{ zone: LIST, families: ['ipv4'] }];
  if (config.delivery.egress.length === 0)
    config.delivery.egress = [{ name: 'main', publicAddress: ADDRESS, pools: ['default', 'secondary'] }];
  const resolver = createResolver({ ...config.dns, monotonic: clock, random: systemRandom });

  const dataDir = config.data.dir;
  mkdirSync(dataDir, { mode: 0o700 });
  const db = openNewDatabase(dataDir);
  const tables = createTables(db);
  loadMasterKey(config.data.masterKeyFile, systemRandom);
  insertAccount(tables, 'acct_one', NOW);
  const domain = insertDomain(
    tables,
    {
      account_id: 'acct_one',
      domain_id: 'domain_one',
      name: 'example.com',
      alt_status: 'ACTIVE',
      alt_provisioned: 1,
      alt_dkim_enabled: 1,
      ...options.domain,
    },
    NOW,
  );
  for (const [n, lane, selector] of [
    [0, 'primary', 'prone'],
    [1, 'secondary', `ps${domain.alt_domain_id.slice(-8)}`],
  ] as const)
    tables.dkimKeys.insert({
      domain_id: 'domain_one',
      lane,
      selector,
      state: 'active',
      private_key: Buffer.alloc(1),
      public_key: fixedPublicKey(n),
      created_at: NOW,
    });

  dns.set(HOST, 'A', [ADDRESS]);
  dns.set('pages.test', 'A', ['127.0.0.1']);
  dns.set('mx.big.test', 'A', ['127.0.0.1']);
  dns.set('time.test', 'A', ['127.0.0.1']);
  dns.set('.', 'NS', { values: ['a.root-servers.test'], authenticated: true });
  dns.set(`2.0.0.127.${LIST}`, 'A', ['127.0.0.2']);
  const platform = platformOf(config);
  const zone = await platformZone(createDnsView(resolver), platform, tables.dkimKeys.zoneKeys());
  resolver.clear();
  dns.publish(zone.filter(({ name, type }) => name !== HOST || type !== 'A'));
  dns.set(`doctor-example.com._report._dmarc.${HOST}`, 'TXT', ['v=DMARC1']);
  const records = domainRecords({ domain, keys: tables.dkimKeys.of('domain_one'), platform });
  dns.publish(records.dnsRecords);
  dns.publish(records.recommendedDnsRecords.filter(({ purpose }) => purpose === 'Return path SPF'));

  let daemon: DaemonState = {
    kind: 'running',
    pid: 4711,
    report: { checks: [{ check: 'database', ok: true }], metrics: new Map() },
  };
  const machine: Machine = {
    nodeVersion: '24.11.0',
    uid: process.geteuid?.() ?? null,
    addresses: () => ['127.0.0.1'],
    mxPort: mx.port,
    dnsPort: dns.port,
    serviceKeyFile: join(dir, 'credentials/master.key'),
    authorities: authority.cert,
  };
  let database: DatabaseState | null = null;
  onTestFinished(async () => {
    resolver.close();
    db.close();
    await Promise.all([dns.close(), big.close(), mx.close(), time.close(), pages.close()]);
  });

  return {
    dir,
    dataDir,
    config,
    clock,
    dns,
    db,
    tables,
    domain,
    zone,
    authority,
    machine,
    mx,
    big,
    /** How far the time server is ahead of the clock. */
    skew,
    setDaemon: (state: DaemonState) => {
      daemon = state;
    },
    setDatabase: (state: DatabaseState) => {
      database = state;
    },
    /** Findings of one check. */
    examine: async (
      id: string,
      { named = null, integrityMs = 60_000 }: { named?: string | null; integrityMs?: number } = {},
    ): Promise<Finding[]> => {
      const opened = openForDoctor(dataDir);
      try {
        return await runChecks(
          CHECKS.filter((check) => check.id === id),
          {
            config,
            clock,
            monotonic: monotonicClock,
            random: systemRandom,
            resolver,
            database: database ?? opened.database,
            daemon: () => Promise.resolve(daemon),
            machine,
          },
          {
            domain: named,
            maxDomains: 10,
            integrityMs,
          },
          { signal: new AbortController().signal },
        );
      } finally {
        opened.close();
      }
    },
  };
}

export type DoctorSetup = Awaited<ReturnType<typeof startHealthySetup>>;

function settings(dir: string, values: Record<string, unknown>): Config {
  const env = Object.entries({ 'data.dir': join(dir, 'data'), ...values }).map(([path, value]) => [
    `POSTRIDER_${path.replaceAll('.', '__').toUpperCase()}`,
    // JSON's strings, numbers and arrays are valid TOML.
    JSON.stringify(value),
  ]);
  return loadConfig({ file: null, cwd: dir, env: Object.fromEntries(env) });
}

/** The public pages as a reverse proxy serves them. */
async function startPages(certificate: Certificate): Promise<{ port: number; close(): Promise<void> }> {
  const server: Server = createServer(certificate, (_request, response) => response.end('page'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // a TCP server that listens
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
