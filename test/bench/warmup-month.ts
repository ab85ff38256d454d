import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load.ts';
import { DAY, HOUR, MINUTE } from '../../src/core/clock.ts';
import { egressOverview } from '../../src/delivery/egress-overview.ts';
import { readMessageStats } from '../../src/events/message-stats.ts';
import { packContent } from '../../src/mail/stored-content.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import type { EgressCountRow } from '../../src/store/egress/egress-counts.ts';
import { createTables, type Tables } from '../../src/store/tables.ts';
import { insertAccount, insertDomain, insertQueued, messageIdOf, newMessage } from '../support/rows.ts';
import {
  createProviders,
  DOMAINS,
  EVERY_NTH_UNKNOWN,
  MONTH_ADDRESSES,
  MONTH_PROVIDERS,
  STARTED,
} from './warmup/providers.ts';
import { createMonthQueue } from './warmup/queue.ts';

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
  /** Of the processor. */
  cpuSeconds: number;
}

const TICK_MS = HOUR;
/** Of the full size; SQLite takes what it needs of it. */
const PAGE_CACHE_KIB = 3 * 1024 * 1024;
const INSERT_BATCH_SIZE = 2000;
const LIFETIME_MS = 60 * DAY;

export async function simulateMonth(options: MonthOptions): Promise<MonthResult> {
  const began = process.cpuUsage();
  const dir = mkdtempSync(join(tmpdir(), 'postrider-month-'));
  try {
    const result = await runMonth(dir, options);
    const { user, system } = process.cpuUsage(began);
    return { ...result, cpuSeconds: Math.round((user + system) / 1e6) };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function runMonth(dir: string, options: MonthOptions): Promise<Omit<MonthResult, 'cpuSeconds'>> {
  let now = STARTED;
  const clock = { now: () => now };
  const db = openDatabase(dir);
  // The simulation neither crashes nor shares the file: its pages stay in memory, and nothing is logged or flushed.
  db.exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;
    PRAGMA cache_size = -${PAGE_CACHE_KIB}`);
  const tables = createTables(db);
  const writer = createWriter(db, tables);
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
  config.delivery.shaping = Object.values(MONTH_PROVIDERS).map((match) => ({
    name: match,
    match: [match],
    connections: 50,
    messagesPerConnection: 100,
    perSecond: 0,
    idleSeconds: 60,
    tls: 'none',
    chunking: true,
    shared: true,
    addressPause: 0,
    delisting: '',
    origin: 'configuration',
  }));
  const providers = createProviders(clock.now);
  insertAccount(tables, 'acct_one', STARTED);
  insertDomain(tables, { account_id: 'acct_one', domain_id: 'domain_one', name: 'example.com' }, STARTED);
  const queue = createMonthQueue({ config, clock, tables, writer, providers });
  const turn = () => new Promise(setImmediate);

  let accepted = 0;
  const insert = async (count: number, priority: 0 | 1) => {
    for (let left = count; left > 0; left -= INSERT_BATCH_SIZE) {
      const batch = Math.min(left, INSERT_BATCH_SIZE);
      const first = accepted;
      await writer.run((tx) => insertMessages(tx, first, batch, priority, now));
      accepted += batch;
      await turn();
    }
  };
  await insert(options.recipients, 1);

  const days: MonthDay[] = [];
  for (let day = 1; day <= options.days; day++) {
    const started = egressOverview({ config, tables }, now);
    const caps = new Map(
      started.warmup.map((row) => [`${row.entry} ${row.provider}`, { cap: row.cap, reason: row.reason }]),
    );
    const perTick = Math.ceil(options.transactionalPerDay / (DAY / TICK_MS));
    for (let tick = 0; tick < DAY / TICK_MS; tick++) {
      if (options.transactionalPerDay > 0) await insert(perTick, 0);
      await queue.drain();
      now += TICK_MS - MINUTE;
      // Messages that another address takes over.
      await queue.drain();
      now += MINUTE;
    }
    const dayStart = STARTED + (day - 1) * DAY;
    // Refusals count by shaping profile, which is named like the domain of the provider.
    const refused = new Set(tables.egressHealth.all().map(({ entry, provider }) => `${entry} ${provider}`));
    const domains: Readonly<Record<string, string>> = MONTH_PROVIDERS;
    const rows = Object.keys(MONTH_ADDRESSES).flatMap((entry) =>
      tables.egressCounts.ofDay(dayStart, entry, 100).map((row) => {
        const key = `${entry} ${row.provider}`;
        // A provider without mail so far is on the day of the calendar.
        const known = caps.get(key) ?? { cap: options.schedule[0] ?? null, reason: null };
        return { ...row, ...known, isRefused: refused.has(`${entry} ${domains[row.provider]}`) };
      }),
    );
    const done = { day, rows, queued: tables.queue.count() };
    days.push(done);
    options.onDay?.(done);
  }
  queue.stop();
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

/** Recipients are spread evenly over the providers; every EVERY_NTH_UNKNOWN-th does not exist. */
function insertMessages(tables: Tables, first: number, count: number, priority: 0 | 1, now: number): void {
  const contentId = tables.messages.insertContent(packContent('{}'), now);
  for (let n = first; n < first + count; n++) {
    const user = n % EVERY_NTH_UNKNOWN === EVERY_NTH_UNKNOWN - 1 ? 'gone' : 'u';
    const message = newMessage(now, {
      message_id: messageIdOf(n, STARTED),
      recipient: `${user}${n}@${DOMAINS[n % DOMAINS.length]}`,
      content_id: contentId,
      use_case: priority === 0 ? 'tx' : 'mk',
      expires_at: now + LIFETIME_MS,
    });
    insertQueued(tables, message, { priority, dueAt: now, now });
  }
}
