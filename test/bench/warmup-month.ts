import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load.ts';
import { DAY, HOUR, MINUTE, SECOND } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/ids.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createAttemptResults } from '../../src/delivery/attempt-result.ts';
import type { ControlIndex } from '../../src/delivery/control/controls.ts';
import { createEgress } from '../../src/delivery/egress/egress.ts';
import { egressOverview } from '../../src/delivery/egress/overview.ts';
import { createFlights } from '../../src/delivery/flights.ts';
import { createDeliveryPaths } from '../../src/delivery/lanes/paths.ts';
import { createLeases } from '../../src/delivery/leases.ts';
import { createLocalAttempts } from '../../src/delivery/local-attempts.ts';
import { createRecording } from '../../src/delivery/recording.ts';
import { createEgressPools } from '../../src/delivery/routing/egress.ts';
import { createClaims } from '../../src/delivery/scheduling/claims.ts';
import { createParking } from '../../src/delivery/scheduling/parking.ts';
import { createQueueReader } from '../../src/delivery/scheduling/queue-reader.ts';
import { createQueueScan } from '../../src/delivery/scheduling/queue-scan.ts';
import { createScheduler, type Scheduler } from '../../src/delivery/scheduling/scheduler.ts';
import { createTargets } from '../../src/delivery/scheduling/targets.ts';
import { createShaping } from '../../src/delivery/shaping/shaping.ts';
import type { AttemptReport, DeliveryJob } from '../../src/delivery/worker/protocol.ts';
import { readMessageStats } from '../../src/events/message-stats.ts';
import { createRecorder } from '../../src/events/record.ts';
import { emailIdentifier } from '../../src/mail/identifier.ts';
import { packContent } from '../../src/mail/stored-content.ts';
import { openDatabase } from '../../src/store/database.ts';
import { checkColumns } from '../../src/store/domains/domains.ts';
import type { EgressCountRow } from '../../src/store/egress/egress-counts.ts';
import { createTables, type Tables } from '../../src/store/tables.ts';
import { createWriter } from '../../src/store/writer.ts';

/**
 * A month in which three new source addresses are warmed up: the whole queue, with the clock of the test and in place of
 * the worker threads the replies of simulated providers. One provider throttles, and one lists an address for some days.
 */
export interface MonthOptions {
  /** Marketing messages that are in the queue on the first day. */
  recipients: number;
  /** Transactional messages of each day. */
  transactionalPerDay: number;
  schedule: readonly number[];
  days: number;
  onDay?(day: MonthDay): void;
}

export interface MonthDay {
  /** From 1. */
  day: number;
  /** By address and provider, at the end of the day. */
  rows: DayRow[];
  queued: number;
}

export interface DayRow extends EgressCountRow {
  /** At the beginning of the day; null: unlimited. */
  cap: number | null;
  /** Why the warm-up is not on the day of the calendar. */
  reason: string | null;
  isRefused: boolean;
}

export interface MonthResult {
  days: MonthDay[];
  accepted: number;
  /** Number of different messages that the providers accepted. */
  received: number;
  duplicates: number;
  delivered: number;
  bounced: number;
  failed: number;
  queued: number;
  seconds: number;
}

export const MONTH_PROVIDERS: Readonly<Record<string, string>> = {
  Google: 'gmail.com',
  Microsoft: 'outlook.com',
  Yahoo: 'yahoo.com',
  Apple: 'icloud.com',
  'United Internet': 'gmx.de',
  Telekom: 't-online.de',
  Orange: 'orange.fr',
  Comcast: 'comcast.net',
};
export const MONTH_ADDRESSES: Readonly<Record<string, string>> = {
  'out-1': '192.0.2.1',
  'out-2': '192.0.2.2',
  'out-3': '192.0.2.3',
};
/** Yahoo defers this share of the messages on these days. */
const THROTTLED = { provider: 'Yahoo', fromDay: 8, toDay: 11, share: 0.4 };
/** Microsoft lists this address on these days. */
const LISTED = { provider: 'Microsoft', entry: 'out-2', fromDay: 9, toDay: 13 };
const STARTED = Date.UTC(2026, 11, 1);
const TICK_MS = HOUR;
const INSERT_BATCH_SIZE = 2000;
/** Every n-th recipient does not exist. */
export const EVERY_NTH_UNKNOWN = 200;

export async function simulateMonth(options: MonthOptions): Promise<MonthResult> {
  const began = performance.now();
  const dir = mkdtempSync(join(tmpdir(), 'postrider-month-'));
  try {
    const result = await runMonth(dir, options);
    return { ...result, seconds: (performance.now() - began) / SECOND };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function runMonth(dir: string, options: MonthOptions): Promise<Omit<MonthResult, 'seconds'>> {
  let now = STARTED;
  const clock = { now: () => now };
  const db = openDatabase(dir);
  // The simulation does not crash.
  db.pragma('synchronous = OFF');
  const tables = createTables(db);
  const writer = createWriter(db, tables);
  const recorder = createRecorder({ clock, ids: createIds(clock, systemRandom) });
  const log = createLog({ level: 'silent', hashAddresses: true });
  const config = loadConfig({
    cwd: dir,
    env: {
      POSTRIDER_DELIVERY__EGRESS: `[${Object.entries(MONTH_ADDRESSES)
        .map(
          ([name, address]) =>
            `{ name = "${name}", address = "${address}", warmup = { started = 2026-12-01, days = ${options.days} } }`,
        )
        .join(', ')}]`,
      POSTRIDER_DELIVERY__WARMUP__SCHEDULE: `[${options.schedule.join(', ')}]`,
    },
  });
  const pools = createEgressPools(config);
  const egress = createEgress({
    config,
    clock,
    monotonic: clock,
    log,
    tables,
    writer,
    pools,
    proxies: { isResolved: () => true },
  });
  config.delivery.shaping = Object.values(MONTH_PROVIDERS).map((match) => ({
    name: match,
    match: [match],
    connections: 50,
    messagesPerConnection: 100,
    perSecond: 0,
    idleSeconds: 60,
    tls: 'none',
    shared: true,
    origin: 'configuration',
  }));
  const shaping = createShaping({ config: config.delivery, clock, monotonic: clock, log, tables, writer });
  const { sites, classify, feedback } = shaping;
  const claims = createClaims(clock);
  const parking = createParking({ clock, monotonic: clock, log });
  const recording = createRecording({ writer, tables, recorder, monotonic: clock, log, onOutcome: () => {} });
  const leases = createLeases({
    clock,
    log,
    writer,
    recorder,
    claims,
    recording,
    generation: 1,
    stillAllowed: () => null,
    onOutcome: () => {},
    onReturned: (key) => scheduler.request(key),
  });
  const results = createAttemptResults({
    clock,
    random: systemRandom,
    recorder,
    retry: config.delivery.retry,
  });
  const localAttempts = createLocalAttempts({ clock, log, recorder, results, leases, parking });
  const providers = createProviders(() => Math.floor((now - STARTED) / DAY) + 1);
  const flights = createFlights({
    log,
    results,
    classify,
    feedback,
    leases,
    localAttempts,
    recording,
    parking,
    egress,
    unclaim: claims.release,
    buildJob: ({ site, slot }, { message, hosts }, entry) =>
      jobFor(message.seq, message.recipient, `${site.number}:${slot}`, hosts, entry),
    limits: { sessions: 400, bytes: 1e9 },
    pool: { script: new URL('file:///'), workers: 1, idleConnections: 1, monotonic: clock },
    createPool: ({ onReports }) => {
      let reports: AttemptReport[] = [];
      const flush = () => {
        const done = reports;
        reports = [];
        onReports(done);
      };
      return {
        send: (_, job) => {
          if (reports.push(providers.reply(job, now)) === 1) setImmediate(flush);
        },
        running: () => 1,
        busyMs: () => [0],
        check: () => {},
        stop: async () => {},
      };
    },
    onReleased: (site) => scheduler.released(site),
  });
  const controls: ControlIndex = { ofKey: () => null, ofSite: () => null };
  const targets = createTargets({
    clock,
    monotonic: clock,
    sites,
    routes: {
      clear: () => {},
      get: (destination) => ({ kind: 'hosts', hosts: hostsOf(destination), route: null, ttl: 3600 }),
      peek: () => null,
    },
    pools,
    egress,
    paths: createDeliveryPaths({ config, tables, egress: pools }),
    controls,
  });
  const reader = createQueueReader({
    clock,
    monotonic: clock,
    log,
    tables,
    claims,
    parking,
    targets,
    pools,
    controls,
    localAttempts,
    leases,
    onReadable: (key) => scheduler.request(key),
  });
  const scheduler: Scheduler = createScheduler({
    clock,
    sites,
    claims,
    reader,
    flights,
    leases,
    mayStart: () => true,
  });
  const scan = createQueueScan({
    clock,
    monotonic: clock,
    log,
    tables,
    writer,
    sites,
    claims,
    reader,
    scheduler,
  });
  insertSender(tables);
  scheduler.start();

  const turn = () => new Promise(setImmediate);
  /** Runs the scan until it starts nothing more. */
  const drain = async () => {
    for (let seen = -1; seen !== providers.count(); ) {
      seen = providers.count();
      await egress.refresh();
      await scan.run();
      do {
        for (let n = 0; n < 3; n++) await turn();
        // A commit has passed.
        await writer.run(() => undefined);
      } while (flights.count() > 0 || recording.pending() > 0);
    }
  };

  let accepted = 0;
  const insert = async (count: number, priority: 0 | 1) => {
    for (let left = count; left > 0; left -= INSERT_BATCH_SIZE) {
      const batch = Math.min(left, INSERT_BATCH_SIZE);
      const first = accepted;
      await writer.run((all) => insertMessages(all, first, batch, priority, now));
      accepted += batch;
      await turn();
    }
  };
  await insert(options.recipients, 1);

  const days: MonthDay[] = [];
  for (let day = 1; day <= options.days; day++) {
    const started = egressOverview({ config, tables, now });
    const caps = new Map(
      started.warmup.map((row) => [`${row.entry} ${row.provider}`, { cap: row.cap, reason: row.reason }]),
    );
    const perTick = Math.ceil(options.transactionalPerDay / (DAY / TICK_MS));
    for (let tick = 0; tick < DAY / TICK_MS; tick++) {
      if (options.transactionalPerDay > 0) await insert(perTick, 0);
      await drain();
      now += TICK_MS - MINUTE;
      // Messages that another address takes over.
      await drain();
      now += MINUTE;
    }
    const dayStart = STARTED + (day - 1) * DAY;
    const refused = new Set(tables.egressHealth.all().map(({ entry, provider }) => `${entry} ${provider}`));
    const rows = Object.keys(MONTH_ADDRESSES).flatMap((entry) =>
      tables.egressCounts.ofDay(dayStart, entry, 100).map((row) => {
        const key = `${entry} ${row.provider}`;
        // A provider without mail so far is on the day of the calendar.
        const known = caps.get(key) ?? { cap: options.schedule[0] ?? null, reason: null };
        return { ...row, ...known, isRefused: refused.has(key) };
      }),
    );
    const done = { day, rows, queued: tables.queue.count() };
    days.push(done);
    options.onDay?.(done);
  }
  scheduler.stop();
  const { outcomes } = readMessageStats(tables, { by: 'day', from: STARTED, to: now }).total;
  const result = {
    days,
    accepted,
    received: providers.received(),
    duplicates: providers.duplicates(),
    delivered: outcomes.delivered,
    bounced: outcomes.bounced,
    failed: outcomes.failed,
    queued: tables.queue.count(),
  };
  await writer.close();
  db.close();
  return result;
}

function insertSender(tables: Tables): void {
  tables.accounts.insert({
    account_id: 'acct_one',
    name: 'One',
    status: 'active',
    company_name: null,
    company_address: null,
    abuse_email: null,
    logo_url: null,
    created_at: STARTED,
    updated_at: STARTED,
  });
  tables.domainGroups.insert({
    group_id: 'dgroup_one',
    account_id: 'acct_one',
    name: 'Default',
    description: null,
    color: null,
    icon: null,
    is_default: 1,
    created_at: STARTED,
    updated_at: STARTED,
  });
  tables.domains.insert({
    account_id: 'acct_one',
    domain_id: 'domain_one',
    name: 'example.com',
    group_id: 'dgroup_one',
    use_case: 'tx',
    region: 'local',
    status: 'SUCCESS',
    ...checkColumns(1),
    return_path: 'customer',
    tracking_domain: null,
    tracking_host: null,
    alt_domain_id: 'alt_domain_one',
    alt_status: 'PENDING',
    alt_provisioned: 0,
    alt_dkim_enabled: 0,
    alt_spf_configured: 0,
    alt_dmarc_configured: 0,
    last_checked_at: null,
    next_check_at: STARTED,
    check_count: 0,
    failing_since: null,
    created_at: STARTED,
    updated_at: STARTED,
  });
}

const DOMAINS = Object.values(MONTH_PROVIDERS);
const LIFETIME_MS = 60 * DAY;

/** Recipients are spread evenly over the providers; every EVERY_NTH_UNKNOWN-th does not exist. */
function insertMessages(tables: Tables, first: number, count: number, priority: 0 | 1, now: number): void {
  const contentId = tables.messages.insertContent(packContent('{}'), now);
  for (let n = first; n < first + count; n++) {
    const domain = DOMAINS[n % DOMAINS.length] ?? '';
    const recipient = `${n % EVERY_NTH_UNKNOWN === EVERY_NTH_UNKNOWN - 1 ? 'gone' : 'u'}${n}@${domain}`;
    const seq = tables.messages.insert({
      message_id: `msg_1796083200000_${String(n).padStart(12, '0')}`,
      account_id: 'acct_one',
      content_id: contentId,
      use_case: priority === 0 ? 'tx' : 'mk',
      domain_id: 'domain_one',
      job_id: null,
      campaign_id: null,
      subscription_group_id: null,
      from_address: 'shop@example.com',
      recipient,
      recipient_hash: emailIdentifier(recipient),
      role: 'to',
      subject: 'Hello',
      simulated: 0,
      track_clicks: 0,
      track_opens: 0,
      essential: 0,
      created_at: now,
      expires_at: now + LIFETIME_MS,
    });
    tables.queue.insert({
      seq,
      priority,
      account_id: 'acct_one',
      domain_id: 'domain_one',
      destination: domain,
      due_at: now,
      ready: 1,
      lease: null,
      campaign_seq: null,
    });
  }
}

const HOSTS = new Map(
  DOMAINS.map((domain) => [domain, [{ name: `mx.${domain}`, addresses: ['192.0.2.200'] }]]),
);

function hostsOf(domain: string): DeliveryJob['hosts'] {
  const hosts = HOSTS.get(domain);
  if (hosts === undefined) throw new Error(`no provider has the domain ${domain}`);
  return hosts;
}

function jobFor(
  id: number,
  to: string,
  slot: string,
  hosts: DeliveryJob['hosts'],
  { hostname, address }: { hostname: string; address?: string },
): DeliveryJob {
  return {
    id,
    slot,
    content: { octets: new Uint8Array(0), encoding: 'json', size: 0 },
    copy: {
      kind: 'marketing',
      recipient: to,
      unsubscribeUrl: '',
      reportAbuseUrl: '',
      unsubscribeAddress: '',
      signedId: '',
      feedbackAddress: '',
      feedbackId: '',
    },
    envelope: { from: 'b@example.com', to },
    signers: [],
    hosts,
    port: 25,
    tls: 'none',
    tlsSource: 'default',
    egress: { hostname, ...(address === undefined ? {} : { address }) },
    messagesPerConnection: 100,
    idleMs: 0,
  };
}

/** The providers: their replies, and the messages that they accepted. */
function createProviders(dayNow: () => number) {
  /** 1 for each recipient whose message was accepted, by the number in the address. */
  let acceptedOnce = new Uint8Array(1 << 16);
  let received = 0;
  let duplicates = 0;
  let replies = 0;
  const throttledDomain = MONTH_PROVIDERS[THROTTLED.provider];
  const listingDomain = MONTH_PROVIDERS[LISTED.provider];

  function accept(to: string): void {
    const n = Number(/\d+/.exec(to)?.[0]);
    if (n >= acceptedOnce.length) {
      const larger = new Uint8Array(2 * n);
      larger.set(acceptedOnce);
      acceptedOnce = larger;
    }
    if (acceptedOnce[n] === 1) duplicates++;
    else received++;
    acceptedOnce[n] = 1;
  }

  function decide(
    to: string,
    domain: string,
    address: string,
  ): { code: number; enhanced: string; text: string } {
    const day = dayNow();
    if (
      domain === listingDomain &&
      address === MONTH_ADDRESSES[LISTED.entry] &&
      day >= LISTED.fromDay &&
      day <= LISTED.toDay
    )
      return {
        code: 550,
        enhanced: '5.7.1',
        text: `5.7.1 Unfortunately, messages from [${address}] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3150).`,
      };
    // Deterministic: four of ten.
    const isUnlucky = replies % 10 < THROTTLED.share * 10;
    if (domain === throttledDomain && day >= THROTTLED.fromDay && day <= THROTTLED.toDay && isUnlucky)
      return {
        code: 421,
        enhanced: '4.7.0',
        text: `4.7.0 [TSS04] Messages from ${address} temporarily deferred due to unexpected volume or user complaints - 4.16.55.1`,
      };
    if (to.startsWith('gone'))
      return { code: 550, enhanced: '5.1.1', text: '5.1.1 The account does not exist' };
    accept(to);
    return { code: 250, enhanced: '2.0.0', text: '2.0.0 OK' };
  }

  return {
    reply: ({ id, slot, hosts, envelope: { to }, egress }: DeliveryJob, now: number): AttemptReport => {
      const address = egress.address ?? '';
      const domain = to.slice(to.indexOf('@') + 1);
      const reply = decide(to, domain, address);
      replies++;
      const session = {
        host: hosts[0]?.name ?? '',
        address: '192.0.2.200',
        port: 25,
        localAddress: address,
        tls: null,
        phase: reply.code === 250 ? ('dot' as const) : ('rcpt' as const),
        reply,
        error: null,
        startedAt: now,
        endedAt: now,
      };
      return { id, slot, conclusion: 'replied', phase: session.phase, reply, sessions: [session] };
    },
    count: () => replies,
    received: () => received,
    duplicates: () => duplicates,
  };
}
