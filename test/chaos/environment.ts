import type { ApiClient, SendBody } from '../support/api-client.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { onDisk } from '../support/on-disk.ts';
import { publishMailHost } from '../support/recipients.ts';
import { type Sink, type SinkOptions, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';
import { pause, type ScenarioContext, within } from './context.ts';
import { type Daemon, type DaemonOptions, merge, startDaemon } from './daemon.ts';
import { createLedger, type Ledger } from './ledger.ts';
import type { Result } from './scenario.ts';
import { startTraffic, TRANSIENT, type Traffic } from './traffic.ts';

/**
 * The environment of a scenario: a daemon with the verified domain kunde.example, a name server and destinations, all on
 * loopback addresses. A scenario starts traffic, breaks something, heals it, and returns the result:
 *
 *     const env = await startEnvironment(context);
 *     const traffic = env.traffic();
 *     await env.baseline(traffic);
 *     … break something …
 *     env.heal();
 *     return env.result(traffic);
 */
export interface Environment {
  readonly context: ScenarioContext;
  readonly dns: DnsServer;
  readonly daemon: Daemon;
  readonly ledger: Ledger;
  /** The destination of `d0.example` to `d3.example`, which accepts all mail. */
  readonly sink: Sink;
  /** Figures for the table. */
  note(text: string): void;
  /** Reports a fault: the scenario fails. */
  fault(text: string): void;
  /** Starts another destination at a different loopback address, with domains whose mail goes to it. */
  destination(domains: readonly string[], behavior?: SinkOptions): Promise<Sink>;
  /** Sends from kunde.example at a steady rate, in turn to `domains`. */
  traffic(options?: TrafficOverrides): Traffic;
  /** Throws unless traffic is accepted and delivered before anything is broken. */
  baseline(traffic: Traffic, seconds?: number): Promise<void>;
  /** kill -9. Messages that destinations accepted and the database has not recorded may be sent again: allows them. */
  kill(): Promise<void>;
  /** Allows further duplicates. */
  allowDuplicates(count: number, cause: string): void;
  /** Allows crashes whose log matches: documented reasons for the daemon to exit. */
  allowCrashes(log: RegExp): void;
  /** The fault ends now. */
  heal(): void;
  /** Sends for a little longer, waits until the queue is empty, and compares the ledgers. */
  result(traffic: Traffic | readonly Traffic[], options?: ResultOptions): Promise<Result>;
}

export interface TrafficOverrides {
  perSecond?: number;
  /** Prefix of the recipients' local parts. Default: `user`. */
  recipients?: string;
  domains?: readonly string[];
  body?: SendBody;
  count?: number;
  api?: ApiClient;
  from?: string;
}

export interface ResultOptions {
  /** Seconds after healing in which every message must have a final status. */
  withinSeconds?: number;
  /** Recipients whose messages may be bounced or failed. */
  mayFail?: (recipient: string) => boolean;
  accounts?: readonly ApiClient[];
}

export interface EnvironmentOptions extends DaemonOptions {
  /** Behavior of the default destination. */
  sink?: SinkOptions;
  dns?: DnsServer;
}

export const DOMAINS = ['d0.example', 'd1.example', 'd2.example', 'd3.example'];
const PER_SECOND = 80;
const BASELINE_SECONDS = 1.5;
/** Traffic continues for this time after healing, so that the recovery includes new mail. */
const TRAFFIC_AFTER_HEALING_MS = 1500;
const RECOVERY_TIMEOUT_SECONDS = 30;
const LIST_TIMEOUT_MS = 20_000;
const MAX_REPORTED = 3;

export async function startEnvironment(
  context: ScenarioContext,
  options: EnvironmentOptions = {},
): Promise<Environment> {
  const dns = await startDnsServer();
  context.defer(() => dns.close());
  const ledger = createLedger();
  const onMessage: SinkOptions['onMessage'] = ({ to, from }) =>
    to.forEach((recipient) => ledger.receive(recipient, from));
  const sink = await startSink({ countOnly: true, onMessage, ...options.sink });
  context.defer(() => sink.close());
  const sinks = [sink];

  const daemon = await startDaemon(context, {
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

  const env: Environment = {
    context,
    dns,
    daemon,
    ledger,
    sink,
    note: (text) => void notes.push(text),
    fault: (text) => void faults.push(text),
    destination: async (domains, behavior = {}) => {
      const { host = `127.0.1.${sinks.length}` } = behavior;
      const other = await startSink({ port: sink.port, countOnly: true, onMessage, ...behavior, host });
      context.defer(() => other.close());
      sinks.push(other);
      for (const domain of domains) publishMailHost(dns, domain, host);
      return other;
    },
    traffic: (trafficOptions = {}) => {
      const { perSecond = PER_SECOND, recipients = 'user', domains = DOMAINS, ...rest } = trafficOptions;
      return startTraffic({
        api: daemon.api,
        from: 'a@kunde.example',
        ledger,
        perSecond,
        to: (n) => `${recipients}${users++}@${domains[n % domains.length]}`,
        signal: context.signal,
        ...rest,
      });
    },
    baseline: async (traffic, seconds = BASELINE_SECONDS) => {
      await pause(seconds * 1000, context.signal);
      await eventually('mail to be delivered before anything is broken', () => ledger.distinct() > 0);
      if (traffic.refusals.size > 0)
        throw new Error(`refused before anything is broken: ${JSON.stringify([...traffic.refusals])}`);
    },
    kill: async () => {
      await daemon.kill();
      // Data that the killed daemon had written to its sockets still arrives.
      await eventually('connections of the killed daemon to close', () =>
        sinks.every(({ open }) => open === 0),
      );
      const unrecorded = Math.max(0, ledger.distinct() - onDisk(daemon.dataDir).delivered);
      env.allowDuplicates(unrecorded, 'accepted but not recorded at a kill');
    },
    allowDuplicates: (count, cause) => {
      duplicatesAtMost += count;
      causes.push(`${count} ${cause}`);
    },
    allowCrashes: (pattern) => void expectedCrashes.push(pattern),
    heal: () => {
      healedAt = Date.now();
    },
    result: async (traffics, resultOptions = {}) => {
      const {
        withinSeconds = RECOVERY_TIMEOUT_SECONDS,
        mayFail = () => false,
        accounts = [],
      } = resultOptions;
      const all = [traffics].flat();
      const healed = healedAt ?? Date.now();
      await pause(TRAFFIC_AFTER_HEALING_MS, context.signal);
      for (const traffic of all) traffic.stop();
      const deadline = healed + withinSeconds * 1000;
      await within(deadline - Date.now(), Promise.all(all.map((traffic) => traffic.settled())));
      const quietAt = await untilQuiet(deadline);
      for (const status of all.flatMap(({ refusals }) => [...refusals.keys()]))
        if (status >= 400 && status < 500 && !TRANSIENT.has(status))
          faults.push(`well-formed sends were refused with ${status}`);
      for (const { unsettled } of all)
        if (unsettled > 0) faults.push(`${unsettled} sends never got a conclusive response`);

      if (!daemon.running) {
        faults.push('the daemon is not running at the end');
        await daemon.start();
      }
      const comparison = await eventually(
        'the API to list all messages',
        // Until the daemon responds again, requests fail.
        () => ledger.compare([daemon.api, ...accounts], mayFail).catch(() => null),
        { ms: LIST_TIMEOUT_MS, everyMs: 500 },
      ).catch((error: Error) => {
        faults.push(error.message);
        return ledger.unlisted();
      });
      faults.push(...comparison.faults.slice(0, MAX_REPORTED));
      faults.push(...comparison.lost.slice(0, MAX_REPORTED).map((line) => `lost: ${line}`));
      faults.push(...comparison.stuck.slice(0, MAX_REPORTED).map((line) => `stuck: ${line}`));
      const crashes = daemon.crashes.filter(({ log }) => !expectedCrashes.some((one) => one.test(log)));
      const [crash] = crashes;
      if (crash !== undefined)
        faults.push(
          `the daemon crashed ${crashes.length} times, first (${crash.signal ?? crash.code}): ${significantLine(crash.log)}`,
        );
      const exit = await daemon.terminate();
      if (exit === null) faults.push('SIGTERM did not end the daemon within 45 s');
      else if (exit.code !== 0) faults.push(`after SIGTERM it ended with ${JSON.stringify(exit)}`);
      return {
        accepted: comparison.accepted,
        delivered: comparison.delivered,
        returned: comparison.returned,
        lost: comparison.lost.length,
        duplicated: ledger.duplicates(),
        duplicatesAtMost,
        duplicatesBecause: causes.join(', ') || 'nothing was interrupted',
        stuck: comparison.stuck.length,
        recoveryMs: quietAt === null ? null : recovery(healed, quietAt),
        notes,
        faults: [...new Set(faults)],
      };
    },
  };

  /** Waits until the queue is empty; null: not in time. */
  async function untilQuiet(deadline: number): Promise<number | null> {
    while (Date.now() < deadline && !context.signal.aborted) {
      if ((await daemon.metric('postrider_queue_messages')) === 0) return Date.now();
      await pause(100, context.signal);
    }
    return null;
  }

  /** Time until the backlog was delivered and the first new message was, ms. */
  function recovery(healed: number, quietAt: number): number {
    const received = [...ledger.accepted].flatMap(([recipient, { at }]) => {
      const first = ledger.received(recipient)[0];
      return first === undefined ? [] : [{ at, first }];
    });
    const backlog = received.filter(({ at }) => at < healed).map(({ first }) => first);
    const fresh = received.filter(({ at }) => at >= healed).map(({ first }) => first);
    const backlogGone = backlog.reduce((latest, first) => Math.max(latest, first), healed);
    const firstFresh = fresh.reduce((earliest, first) => Math.min(earliest, first), quietAt);
    return Math.max(backlogGone, firstFresh) - healed;
  }

  return env;
}

/** The most significant line at the end of a log. */
function significantLine(log: string): string {
  const lines = log.trim().split('\n');
  const line =
    lines.find((entry) => /FATAL/.test(entry)) ??
    lines.findLast((entry) => /error|ENOSPC|SQLITE/i.test(entry)) ??
    lines.at(-1);
  return (line ?? '').trim().slice(0, 300);
}
