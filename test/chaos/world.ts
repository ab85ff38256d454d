import type { ApiClient, SendBody } from '../support/api-client.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { onDisk } from '../support/on-disk.ts';
import { publishMailHost } from '../support/recipients.ts';
import { type Sink, type SinkOptions, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { type Daemon, type DaemonOptions, merge, startDaemon } from './daemon.ts';
import { createLedger, type Ledger } from './ledger.ts';
import type { Result } from './scenario.ts';
import { pause, type Stage, within } from './stage.ts';
import { startTraffic, TRANSIENT, type Traffic } from './traffic.ts';

/**
 * What every scenario plays in: a daemon that may send from kunde.example, a name server, and destinations, all
 * on loopback addresses. A scenario starts traffic, breaks something, heals it, and asks for the result:
 *
 *     const world = await startWorld(stage);
 *     const traffic = world.traffic();
 *     await world.baseline(traffic);
 *     … break something …
 *     world.heal();
 *     return world.result(traffic);
 */
export interface World {
  readonly stage: Stage;
  readonly dns: DnsServer;
  readonly daemon: Daemon;
  readonly ledger: Ledger;
  /** The willing destination of `d0.example` to `d3.example`. */
  readonly sink: Sink;
  /** Figures for the table. */
  note(text: string): void;
  /** Something that must not be. */
  fault(text: string): void;
  /** Another destination at a loopback address of its own, with domains that lead to it. */
  destination(domains: readonly string[], behaviour?: SinkOptions): Promise<Sink>;
  /** Sends from kunde.example at a steady rate, in turn to `domains`. */
  traffic(options?: TrafficWish): Traffic;
  /** Fails unless traffic is accepted and delivered before anything is broken. */
  baseline(traffic: Traffic, seconds?: number): Promise<void>;
  /** kill -9. What the destinations took and the disk does not know of may be sent again: the bound grows by it. */
  kill(): Promise<void>;
  /** Another cause for duplicates. */
  allowDuplicates(count: number, because: string): void;
  /** Crashes that the daemon may have in this scenario, because it is documented to end then. */
  allowCrashes(because: RegExp): void;
  /** The fault ends now. */
  heal(): void;
  /** Sends a little more, waits until all is quiet, and closes the books. */
  result(traffic: Traffic | readonly Traffic[], options?: ResultOptions): Promise<Result>;
}

export interface TrafficWish {
  perSecond?: number;
  /** What the recipients' local parts begin with, default `user`. */
  recipients?: string;
  domains?: readonly string[];
  body?: SendBody;
  count?: number;
  api?: ApiClient;
  from?: string;
}

export interface ResultOptions {
  /** Seconds after healing in which everything must have come to its end. */
  withinSeconds?: number;
  /** Recipients whose messages may be bounced or failed. */
  mayFail?: (recipient: string) => boolean;
  accounts?: readonly ApiClient[];
}

export interface WorldOptions extends DaemonOptions {
  /** Behaviour of the willing destination. */
  sink?: SinkOptions;
  dns?: DnsServer;
}

export const DOMAINS = ['d0.example', 'd1.example', 'd2.example', 'd3.example'];
const PER_SECOND = 80;
const BASELINE_SECONDS = 1.5;
/** Traffic goes on for so long after healing: recovery is for new mail, too. */
const AFTERWARDS_MS = 1500;
const QUIET_SECONDS = 30;
const LISTING_MS = 20_000;
const SHOWN = 3;

export async function startWorld(stage: Stage, options: WorldOptions = {}): Promise<World> {
  const dns = await startDnsServer();
  stage.defer(() => dns.close());
  const ledger = createLedger();
  const onMessage: SinkOptions['onMessage'] = ({ to, from }) =>
    to.forEach((recipient) => ledger.take(recipient, from));
  const sink = await startSink({ countOnly: true, onMessage, ...options.sink });
  stage.defer(() => sink.close());
  const sinks = [sink];

  const daemon = await startDaemon(stage, {
    ...options,
    config: merge({ dns: { resolvers: [dns.address] }, delivery: { port: sink.port } }, options.config ?? {}),
  });
  for (const domain of DOMAINS) publishMailHost(dns, domain);
  await verifiedDomain(daemon, dns, 'kunde.example');

  const notes: string[] = [];
  const faults: string[] = [];
  const causes: string[] = [];
  const expectedCrashes: RegExp[] = [];
  let duplicatesAtMost = 0;
  let healedAt: number | null = null;
  let users = 0;

  const world: World = {
    stage,
    dns,
    daemon,
    ledger,
    sink,
    note: (text) => void notes.push(text),
    fault: (text) => void faults.push(text),
    destination: async (domains, behaviour = {}) => {
      const { host = `127.0.1.${sinks.length}` } = behaviour;
      const other = await startSink({ port: sink.port, countOnly: true, onMessage, ...behaviour, host });
      stage.defer(() => other.close());
      sinks.push(other);
      for (const domain of domains) publishMailHost(dns, domain, host);
      return other;
    },
    traffic: (wish = {}) => {
      const { perSecond = PER_SECOND, recipients = 'user', domains = DOMAINS, ...rest } = wish;
      return startTraffic({
        api: daemon.api,
        from: 'a@kunde.example',
        ledger,
        perSecond,
        to: (n) => `${recipients}${users++}@${domains[n % domains.length]}`,
        signal: stage.signal,
        ...rest,
      });
    },
    baseline: async (traffic, seconds = BASELINE_SECONDS) => {
      await pause(seconds * 1000, stage.signal);
      await eventually('mail to be delivered before anything is broken', () => ledger.distinct() > 0);
      if (traffic.refusals.size > 0)
        throw new Error(`refused before anything is broken: ${JSON.stringify([...traffic.refusals])}`);
    },
    kill: async () => {
      await daemon.kill();
      // What the dead daemon had already written to its sockets still arrives.
      await eventually('connections of the killed daemon to close', () =>
        sinks.every(({ open }) => open === 0),
      );
      const unrecorded = Math.max(0, ledger.distinct() - onDisk(daemon.dataDir).delivered);
      world.allowDuplicates(unrecorded, 'taken but not recorded at a kill');
    },
    allowDuplicates: (count, because) => {
      duplicatesAtMost += count;
      causes.push(`${count} ${because}`);
    },
    allowCrashes: (because) => void expectedCrashes.push(because),
    heal: () => {
      healedAt = Date.now();
    },
    result: async (traffics, wish = {}) => {
      const { withinSeconds = QUIET_SECONDS, mayFail = () => false, accounts = [] } = wish;
      const all = [traffics].flat();
      const healed = healedAt ?? Date.now();
      await pause(AFTERWARDS_MS, stage.signal);
      for (const traffic of all) traffic.stop();
      const deadline = healed + withinSeconds * 1000;
      await within(deadline - Date.now(), Promise.all(all.map((traffic) => traffic.settled())));
      const quietAt = await untilQuiet(deadline);
      for (const status of all.flatMap(({ refusals }) => [...refusals.keys()]))
        if (status >= 400 && status < 500 && !TRANSIENT.has(status))
          faults.push(`well-formed sends were refused with ${status}`);
      for (const { unsettled } of all)
        if (unsettled > 0) faults.push(`${unsettled} sends never got an answer that settles them`);

      if (!daemon.running) {
        faults.push('the daemon is not running at the end');
        await daemon.start();
      }
      const judgement = await eventually(
        'the API to list all messages',
        () => ledger.judge([daemon.api, ...accounts], mayFail).catch(() => null),
        { ms: LISTING_MS, everyMs: 500 },
      ).catch((error: Error) => {
        faults.push(error.message);
        return ledger.unlisted();
      });
      faults.push(...judgement.faults.slice(0, SHOWN));
      faults.push(...judgement.lost.slice(0, SHOWN).map((line) => `lost: ${line}`));
      faults.push(...judgement.stuck.slice(0, SHOWN).map((line) => `stuck: ${line}`));
      const crashes = daemon.crashes.filter(({ log }) => !expectedCrashes.some((one) => one.test(log)));
      const [crash] = crashes;
      if (crash !== undefined)
        faults.push(
          `the daemon crashed ${crashes.length} times, first (${crash.signal ?? crash.code}): ${lastWords(crash.log)}`,
        );
      const exit = await daemon.terminate();
      if (exit === null) faults.push('SIGTERM did not end the daemon within 45 s');
      else if (exit.code !== 0) faults.push(`after SIGTERM it ended with ${JSON.stringify(exit)}`);
      return {
        accepted: judgement.accepted,
        delivered: judgement.delivered,
        returned: judgement.returned,
        lost: judgement.lost.length,
        duplicated: ledger.duplicates(),
        duplicatesAtMost,
        duplicatesBecause: causes.join(', ') || 'nothing was interrupted',
        stuck: judgement.stuck.length,
        recoveryMs: quietAt === null ? null : recovery(healed, quietAt),
        notes,
        faults: [...new Set(faults)],
      };
    },
  };

  /** Waits for an empty queue with every accepted message at its destination; null: not in time. */
  async function untilQuiet(deadline: number): Promise<number | null> {
    while (Date.now() < deadline && !stage.signal.aborted) {
      if ((await daemon.metric('postrider_queue_messages')) === 0) return Date.now();
      await pause(100, stage.signal);
    }
    return null;
  }

  /** Until the backlog was gone and the first new message was delivered. */
  function recovery(healed: number, quietAt: number): number {
    const taken = [...ledger.accepted].flatMap(([recipient, { at }]) => {
      const first = ledger.taken(recipient)[0];
      return first === undefined ? [] : [{ at, first }];
    });
    const backlog = taken.filter(({ at }) => at < healed).map(({ first }) => first);
    const fresh = taken.filter(({ at }) => at >= healed).map(({ first }) => first);
    const backlogGone = backlog.reduce((latest, first) => Math.max(latest, first), healed);
    const firstFresh = fresh.reduce((earliest, first) => Math.min(earliest, first), quietAt);
    return Math.max(backlogGone, firstFresh) - healed;
  }

  return world;
}

/** The most telling line of a log's end. */
function lastWords(log: string): string {
  const lines = log.trim().split('\n');
  const telling =
    lines.find((line) => /FATAL/.test(line)) ??
    lines.findLast((line) => /error|ENOSPC|SQLITE/i.test(line)) ??
    lines.at(-1);
  return (telling ?? '').trim().slice(0, 300);
}
