import { onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import type { ShapingProfile } from '../../../src/config/shaping.ts';
import { MINUTE } from '../../../src/core/clock.ts';
import { createExpiryClock } from '../../../src/core/expiry-clock.ts';
import { createLog } from '../../../src/core/log.ts';
import { type ControlIndex, createControlIndex } from '../../../src/delivery/control.ts';
import type { HeldMessage } from '../../../src/delivery/deliver.ts';
import { createDeliveryPaths } from '../../../src/delivery/lanes.ts';
import type { RouteResult } from '../../../src/delivery/routes.ts';
import { createClaims } from '../../../src/delivery/scheduling/claims.ts';
import { createDispatcher } from '../../../src/delivery/scheduling/dispatcher.ts';
import type { FreedShares, HeldShares } from '../../../src/delivery/scheduling/shares.ts';
import type { ReservedMessage, Site } from '../../../src/delivery/scheduling/site.ts';
import { createSites } from '../../../src/delivery/scheduling/sites.ts';
import { createTargets } from '../../../src/delivery/scheduling/targets.ts';
import type { EgressMail, EgressObstacle } from '../../../src/delivery/source-address.ts';
import { createWaits } from '../../../src/delivery/waits.ts';
import { createSendingRates } from '../../../src/reputation/sending-rates.ts';
import type { MailToLease, QueuedMessage, QueueKey } from '../../../src/store/messages/queue.ts';
import type { QueueControlRow } from '../../../src/store/messages/queue-controls.ts';
import { enqueue, insertAccount, insertDomain, startStore } from '../../support/store.ts';

export interface SchedulingOptions {
  connections?: number;
  /** Whether all destinations share one site. Default: true. */
  isOneSite?: boolean;
  perSecond?: number;
  routeOf?: (destination: string) => RouteResult | null;
  admits?: (message: MailToLease) => boolean;
  /** Of a message that is not admitted. Default: `sessions`. */
  exhausted?: 'sessions' | 'unanswered';
  poolOf?: (region: string, useCase: 'tx' | 'mk') => string;
  poolCount?: number;
  egressObstacle?: (mail: EgressMail) => EgressObstacle | null;
}

export const GENERATION = 7;
export const KEY: QueueKey = { priority: 0, account_id: 'acct_one', destination: 'one.test' };

const SHARE = { account: '', site: '', priority: 0, size: 0 } as const;
const NO_SHARES: HeldShares = { session: SHARE, unanswered: SHARE, bytes: SHARE };

export function routeTo(destination: string): RouteResult {
  const hosts = [{ name: `mx.${destination}`, addresses: ['192.0.2.1'] }];
  return { kind: 'hosts', hosts, route: null, ttl: 60 };
}

/**
 * Sites and dispatcher over a real queue, with a clock that is set by the test. Leases take effect
 * without a commit; deliveries do not end before `finish`. Tasks that the dispatcher defers run in `runTasks`.
 */
export function createTestScheduling(options: SchedulingOptions = {}) {
  const store = startStore();
  const { db, tables, writer, clock } = store;
  const log = createLog({ level: 'silent', hashAddresses: true });
  const [defaults] = loadConfig({ file: null, env: {} }).delivery.shaping.slice(-1);
  if (defaults === undefined) throw new Error('there is no default profile');
  const shaping: ShapingProfile[] = [
    {
      ...defaults,
      name: 'test',
      match: ['*.test'],
      shared: options.isOneSite ?? defaults.shared,
      connections: options.connections ?? 2,
      perSecond: options.perSecond ?? 0,
      tls: 'none',
    },
    defaults,
  ];
  const sites = createSites({
    clock,
    shaping,
    firstSuspensionMs: MINUTE,
    // Sites are not new: they have all their connections.
    initialConnections: Number.POSITIVE_INFINITY,
    isPaused: (site) => createControlIndex(controls).ofSite(site) !== null,
  });
  const waits = createWaits({ clock, monotonic: clock, log });
  const claims = createClaims(waits);
  const rates = createSendingRates({ tables, monotonic: clock });
  const started: HeldMessage[] = [];
  /** What messages release that end now. */
  let freed: FreedShares = { unanswered: false };
  const returned: number[] = [];
  const postponed: { recipient: string; waitMs: number }[] = [];
  const unroutable: string[] = [];
  const simulated: string[] = [];
  const unprepared: string[] = [];
  const expired: string[] = [];
  const rejected: string[] = [];
  /** Controls of the operator; a test changes them, and then calls `dispatcher.readAgain`. */
  const controls: QueueControlRow[] = [];
  const lookups: (() => void)[] = [];
  const tasks: (() => void)[] = [];
  /** Timers that the dispatcher has set and that have not fired. */
  const timers: { ms: number; task: () => void }[] = [];

  const lease = (message: QueuedMessage) => {
    tables.queue.lease(message.seq, 1);
    claims.release(message);
  };
  const leaseAndList = (list: string[], message: QueuedMessage) => {
    lease(message);
    list.push(message.recipient);
  };
  const recording = {
    lease: async (message: QueuedMessage) => {
      lease(message);
      return true;
    },
    putBack: async ({ seq }: QueuedMessage) => {
      tables.queue.release(seq, clock.now());
      returned.push(seq);
      return false;
    },
    postpone: async (message: QueuedMessage, dueAt: number) => {
      tables.queue.postpone(message, dueAt);
      claims.release(message);
      postponed.push({ recipient: message.recipient, waitMs: dueAt - clock.now() });
    },
  };
  const index: ControlIndex = {
    ofKey: (key) => createControlIndex(controls).ofKey(key),
    ofSite: (site) => createControlIndex(controls).ofSite(site),
  };
  const pools = { ipv6Of: () => 'never' as const, poolCount: () => options.poolCount ?? 1 };
  const targets = createTargets(
    { monotonic: clock },
    {
      sites,
      routes: {
        clear: () => {},
        peek: (destination) =>
          options.routeOf === undefined ? routeTo(destination) : options.routeOf(destination),
        get: (destination) => {
          const route = options.routeOf === undefined ? routeTo(destination) : options.routeOf(destination);
          return route ?? new Promise((resolve) => lookups.push(() => resolve(true)));
        },
      },
      pools,
      paths: createDeliveryPaths(
        { config: { secondary: { type: 'builtin', pool: 'secondary', share: 0.1, perHour: 1000 } }, tables },
        { poolOf: options.poolOf ?? (() => 'default') },
      ),
      controls: index,
      egress: { obstacle: (_, mail) => options.egressObstacle?.(mail) ?? null },
    },
  );
  const dispatcher = createDispatcher(
    { clock, monotonic: clock, expiry: createExpiryClock(clock, clock), log, tables, writer },
    {
      sites,
      targets,
      pools,
      controls: index,
      claims,
      waits,
      rates,
      deliveries: {
        conclude: async (message, { kind }) =>
          leaseAndList({ failure: unroutable, simulator: simulated, rejected }[kind], message),
        unprepared: async (message) => {
          leaseAndList(unprepared, message);
          return false;
        },
        expire: async (message) => leaseAndList(expired, message),
        deliver: (held) => {
          if (held.assignment.lease === undefined) lease(held.assignment.message);
          started.push(held);
          return new Promise(() => {});
        },
      },
      recording,
      generation: GENERATION,
      shares: {
        admits: (_, message) => options.admits?.(message) ?? true,
        exhausted: () => options.exhausted ?? 'sessions',
        take: () => NO_SHARES,
        release: () => freed,
      },
      mayStart: () => true,
      defer: (task) => void tasks.push(task),
      after: (ms, task) => {
        timers.push({ ms, task });
      },
    },
  );
  dispatcher.start();
  onTestFinished(() => dispatcher.stop());

  /** Runs deferred tasks, and those that they defer, until there are none. */
  const runTasks = () => {
    for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) task();
  };
  return {
    ...store,
    sites,
    claims,
    waits,
    rates,
    targets,
    dispatcher,
    started,
    returned,
    postponed,
    unroutable,
    simulated,
    unprepared,
    expired,
    rejected,
    controls,
    lookups,
    timers,
    runTasks,
    /** Messages whose lease has begun are leased. */
    settle: () => new Promise<void>((resolve) => void setImmediate(resolve)),
    /** Puts messages to recipients into the queue; nothing is announced. */
    put: (recipients: readonly string[], columns: Parameters<typeof enqueue>[2] = {}) =>
      db.transaction(() =>
        recipients.map((recipient) => enqueue(tables, clock.now(), { recipient, ...columns })),
      )(),
    /** Runs the scan once, as at start or when its time has come. */
    runScan: async () => {
      await dispatcher.scan();
      runTasks();
    },
    announce: (key: Partial<QueueKey> = {}) => {
      dispatcher.request({ ...KEY, ...key });
      runTasks();
    },
    /** Ends the first `count` deliveries. */
    finish: (count: number, unanswered = false) => {
      freed = { unanswered };
      for (const { release } of started.splice(0, count)) release(true);
      runTasks();
    },
    /** Reports every site with a delivery as unreachable and ends the deliveries. */
    failAll: () => {
      freed = { unanswered: true };
      for (const { reservation } of started) reservation.site.unreachable(reservation);
      for (const { release } of started.splice(0)) release(true);
      runTasks();
    },
    onlySite: (): Site => {
      const [site] = sites.all();
      if (site === undefined) throw new Error('there is no site');
      return site;
    },
    leasedCount: () => db.prepare('SELECT count(*) FROM queue WHERE lease IS NOT NULL').pluck().get(),
    addAccount: (accountId: string, domainId: string) => {
      insertAccount(tables, accountId, clock.now());
      const domain = { account_id: accountId, domain_id: domainId, name: `${domainId}.example` };
      insertDomain(tables, domain, clock.now());
    },
    addDomain: (domainId: string, region = 'local') => {
      const domain = { account_id: 'acct_one', domain_id: domainId, name: `${domainId}.example`, region };
      insertDomain(tables, domain, clock.now());
    },
  };
}

export const recipientsOf = (list: readonly ReservedMessage[]) =>
  list.map(({ assignment }) => assignment.message.recipient);

export const users = (count: number, user = 'a') =>
  Array.from({ length: count }, (_, n) => `${user}${n}@one.test`);

export function unreadable(): never {
  throw new Error('database disk image is malformed');
}
