import { connect, isIP } from 'node:net';
import { parseProxy } from '../../config/egress-settings.ts';
import { SECOND } from '../../core/clock.ts';
import { errorText } from '../../core/errors.ts';
import { egressOverview } from '../../delivery/egress-overview.ts';
import { addressOf, createEgressPools, type EgressEntry } from '../../delivery/egress-pools.ts';
import { secondaryObstacle } from '../../delivery/lanes.ts';
import { readProxyPasswords } from '../../delivery/proxies.ts';
import { probeRelay } from '../../delivery/relay-probe.ts';
import { EgressError } from '../../delivery/worker/errors.ts';
import type { JobProxy } from '../../delivery/worker/protocol.ts';
import { createTunnel } from '../../delivery/worker/socks.ts';
import { addressesOf } from '../../dns/dns-view.ts';
import { isLocalNetwork } from '../../domains/platform/host-checks.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, quoted, type Result, unknown, warning } from '../finding.ts';

/* Checks of the source addresses in delivery.egress: whether providers accept them, and whether their proxies work. */

const MAX_FINDINGS = 20;

/**
 * At most 20 results: addresses that receivers refuse, which are failures where mail waits for them, then warm-ups that are
 * behind the calendar and whose mail was throttled today.
 */
export async function examineEgressHealth({ config, database, clock }: DoctorContext): Promise<Result[]> {
  if (database.kind === 'closed') throw new Error('the database is not open');
  const overview = egressOverview({ config, tables: database.tables }, clock.now());
  const { entries, warmup, refused: all } = overview;
  const refused = all
    .toSorted((a, b) => Number(b.blocked) - Number(a.blocked))
    .map(({ address, provider, since, nextProbeAt, reply, blocked, delisting }) =>
      blocked
        ? failure(
            address,
            `${provider} has blocked this address since ${since}, and mail that only it can send waits; the next probe is at ${nextProbeAt}. ${quoted(reply)}`,
            `Find and stop the cause. ${delisting}`,
          )
        : warning(
            address,
            `${provider} has refused this address since ${since}; the next probe is at ${nextProbeAt}. ${quoted(reply)}`,
            `Find and stop the cause. ${delisting}`,
          ),
    );
  const behind = warmup.flatMap(({ entry, address, provider, day, reason, throttled }) =>
    reason === null || throttled === 0
      ? []
      : [
          warning(
            address,
            `Its warm-up at ${provider} is on day ${day}: ${quoted(reason)}.`,
            `postrider warmup show ${entry}`,
          ),
        ],
  );
  const results = [...refused, ...behind].slice(0, MAX_FINDINGS);
  if (results.length > 0) return results;
  return entries.length === 0
    ? [ok('delivery.egress', 'The system chooses the source address, and no receiver refuses it.')]
    : [ok('delivery.egress', `No provider refuses the ${entries.length} source addresses.`)];
}

const PROXY_TIMEOUT_MS = 10 * SECOND;
const MAX_PROXIES = 16;

/**
 * A proxy that does not work is a failure. It is a warning if the proxy does not reach the target, or connects from a
 * public address that the entry does not name.
 */
export async function examineEgressProxies(context: DoctorContext): Promise<Result[]> {
  const proxied = createEgressPools(context.config)
    .all()
    .filter(({ proxy }) => proxy !== undefined)
    .slice(0, MAX_PROXIES);
  return proxied.length === 0
    ? [ok('delivery.egress', 'No source address is behind a proxy.')]
    : Promise.all(proxied.map((entry) => examineProxy(entry, context)));
}

async function examineProxy(entry: EgressEntry, context: DoctorContext): Promise<Result> {
  const { config, view, signal } = context;
  const { delivery, doctor } = config;
  const target = doctor.mailHosts[0] ?? config.hostname;
  const given = delivery.egress.filter(({ name }) => name === entry.name);
  const proxy = given[0]?.proxy ?? '';
  const subject = `${addressOf(entry)} via ${proxy}`;
  const failed = (reason: string) =>
    failure(
      subject,
      `Mail cannot leave from this address: ${quoted(reason)}.`,
      'Start the proxy, allow the connection in its rules and in the firewall, or correct the entry of delivery.egress',
    );
  const settings = parseProxy(proxy);
  if (settings === null) return failed(`${proxy} is not the address of a proxy`);
  const host = isIP(settings.host) === 0 ? await firstAddress(context, settings.host) : settings.host;
  if (host === null) return failed(`the name ${settings.host} of the proxy could not be resolved`);
  const found = await addressesOf(view, target);
  const wantsIpv6 = entry.address === undefined && entry.address6 !== undefined;
  const address =
    found.kind === 'records' ? found.records.find((each) => each.includes(':') === wantsIpv6) : undefined;
  if (address === undefined) return unknown(subject, `${target} could not be resolved.`);
  let password: string | undefined;
  try {
    password = readProxyPasswords(given).get(entry.name ?? '');
  } catch (error) {
    return failed(errorText(error));
  }
  const login = settings.user === null || password === undefined ? {} : { user: settings.user, password };
  const answer = await probeProxy({
    proxy: { host, port: settings.port, ...login },
    target: { host: address, port: delivery.port },
    timeoutMs: PROXY_TIMEOUT_MS,
    signal,
  });
  if (answer.kind === 'proxy-failed') return failed(answer.reason);
  if (answer.kind === 'target-failed')
    return warning(
      subject,
      `The proxy works, but does not reach ${target}: ${quoted(answer.reason)}. Its provider may block outbound port 25.`,
    );
  const own = [entry.address, entry.address6, entry.publicAddress];
  if (answer.from !== null && !isLocalNetwork(answer.from) && !own.includes(answer.from))
    return warning(
      subject,
      `The proxy connects from ${answer.from}, which the entry does not name: SPF and reverse DNS are checked for another address.`,
      `address = "${answer.from}"`,
    );
  return ok(subject, `The proxy reaches ${target}.`);
}

async function firstAddress({ view }: DoctorContext, name: string): Promise<string | null> {
  const found = await addressesOf(view, name);
  return found.kind === 'records' ? (found.records[0] ?? null) : null;
}

/**
 * Whether the secondary lane can take mail that the primary lane cannot deliver. A relay that cannot be used is a failure,
 * one without `spfInclude` a warning. A pool of a region for which the lane is no alternative is a warning; a lane that is
 * not set up is `ok`.
 */
export async function examineSecondaryLane(context: DoctorContext): Promise<Result[]> {
  const { config, resolver } = context;
  const { secondary, delivery, regions } = config;
  if (secondary.type === 'relay') {
    const subject = `${secondary.host}:${secondary.port}`;
    const relayProblem = await probeRelay(context, resolver);
    if (relayProblem !== null)
      return [failure(subject, `The relay of the secondary lane cannot be used: ${relayProblem}.`)];
    if (secondary.spfInclude === undefined)
      return [
        warning(
          subject,
          'SPF of the domains does not include the relay: its mail passes DMARC by DKIM alone.',
          '[secondary]\nspfInclude = "spf.<relay>"',
        ),
      ];
    return [ok(subject, 'The relay of the secondary lane accepts the login.')];
  }
  const subject = `pool ${secondary.pool}`;
  const pools = new Set(regions.flatMap(({ pools: { tx, mk } }) => [tx, mk]));
  // Whether an entry of delivery.egress is for the lane alone.
  const isConfigured = delivery.egress.some(
    (entry) => entry.pools.includes(secondary.pool) && !entry.pools.some((pool) => pools.has(pool)),
  );
  if (!isConfigured) return [ok(subject, 'No secondary lane is set up: all mail stays in the primary lane.')];
  const useless = [...pools].flatMap((pool) => secondaryObstacle(config, pool) ?? []);
  return useless.length === 0
    ? [ok(subject, 'The secondary lane has its own source addresses.')]
    : useless.map((obstacle) =>
        warning(
          subject,
          `Mail does not change to the secondary lane: ${obstacle}.`,
          `[[delivery.egress]]\nname = "second"\naddress = "192.0.2.2"\npools = ["${secondary.pool}"]`,
        ),
      );
}

/** How a SOCKS5 proxy answers the request to connect to a mail server. */
type ProxyAnswer =
  /** `from`: the source address that the proxy reports; null: none. */
  | { kind: 'connected'; from: string | null }
  /** The proxy works, and could not reach the mail server. */
  | { kind: 'target-failed'; reason: string }
  | { kind: 'proxy-failed'; reason: string };

interface ProxyProbeOptions {
  proxy: JobProxy;
  target: { host: string; port: number };
  /** For everything together. */
  timeoutMs: number;
  signal: AbortSignal;
}

/** Connects to the target through the proxy and ends the connection. Never rejects. */
function probeProxy({ proxy, target, timeoutMs, signal }: ProxyProbeOptions): Promise<ProxyAnswer> {
  return new Promise((resolve) => {
    const tunnel = createTunnel(proxy);
    const socket = connect({ host: proxy.host, port: proxy.port });
    const finish = (answer: ProxyAnswer) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      socket.destroy();
      resolve(answer);
    };
    const failed = (error: Error | null) =>
      finish(
        error instanceof EgressError
          ? { kind: 'proxy-failed', reason: error.message }
          : { kind: 'target-failed', reason: error?.message ?? 'the connection was closed' },
      );
    const stop = () => failed(tunnel.failure('connect', 'no answer (timeout)'));
    const timer = setTimeout(stop, timeoutMs);
    signal.addEventListener('abort', stop, { once: true });
    socket.on('error', (error) => failed(tunnel.failure('connect', error.message)));
    socket.on('connect', () => {
      if (socket.listenerCount('data') > 0) return;
      tunnel.open(socket, target, timeoutMs).then(
        (from) => finish({ kind: 'connected', from }),
        (error: Error) => failed(tunnel.rejection('connect', error)),
      );
    });
    if (signal.aborted) stop();
  });
}
