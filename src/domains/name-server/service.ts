import { Counter, type Registry } from 'prom-client';
import { type ListenAddress, parseListen } from '../../config/setting-types.ts';
import { type Clock, SECOND } from '../../core/clock.ts';
import { createLoop } from '../../core/concurrency/loop.ts';
import type { Log } from '../../core/log.ts';
import { gaugesOf } from '../../core/metrics.ts';
import { listenFault } from '../../core/operator-fault.ts';
import type { Random } from '../../core/random.ts';
import { createDnsView } from '../../dns/dns-view.ts';
import { isWithin } from '../../dns/names.ts';
import { createNameserver, type Nameserver } from '../../dns/nameserver.ts';
import type { Resolver } from '../../dns/resolver.ts';
import { createZoneNotifier } from '../../dns/server/notify.ts';
import { networkOf } from '../../dns/server/rate-limit.ts';
import { parseServer } from '../../dns/transport.ts';
import { toAnswer, type ZoneRecord } from '../../dns/zone-record.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { Tables } from '../../store/tables.ts';
import { type PlatformOptions, platformOf } from '../platform/platform.ts';
import { platformZone } from '../platform/platform-zone.ts';
import { reportKeyRecord } from '../platform/report-key.ts';
import { authorityRecords } from '../platform/zone-authority.ts';
import { createZoneSerial } from './serial.ts';
import { createZoneSource } from './zone-source.ts';

/** Serves the platform's zone (`dns.server`): responses, serial number, NOTIFY and transfers to secondaries. */
export interface PlatformNameServer {
  /** Rejects with an OperatorFault when an address cannot be bound. */
  listen(): Promise<void>;
  addresses(): ListenAddress[];
  close(): Promise<void>;
}

export interface NameServerOptions extends PlatformOptions {
  dns: {
    server: {
      listen: string | readonly string[];
      nameServers: readonly { name: string; addresses: readonly string[] }[];
      addresses: readonly string[];
      contact?: string | undefined;
      /** `ip` or `ip:port`; transfers are allowed from the address, notifications are sent to the port. */
      secondaries: readonly string[];
      queriesPerSecond: number;
      responsesPerSecond: number;
    };
  };
}

export interface NameServerDeps {
  /** Read at each use: a reload changes it. */
  config: NameServerOptions;
  tables: Tables;
  writer: Writer;
  resolver: Resolver;
  clock: Clock;
  random: Random;
  log: Log;
  registry: Registry;
}

/** Changes by other processes are served after at most this time. */
const REFRESH_MS = SECOND;
const TCP_LIMITS = { connections: 100, connectionsPerAddress: 20 };
const MAX_TRANSFERS = 4;

/**
 * Registers its metrics now and binds nothing. `listen` loads the zone, binds each address of `dns.server.listen`,
 * notifies the secondaries and begins to refresh the zone every second; call `close` also after it failed.
 */
export function createPlatformNameServer(deps: NameServerDeps): PlatformNameServer {
  const { config, tables, writer, resolver, clock, random, log, registry } = deps;
  const platform = platformOf(config);
  const { hostname } = config;
  const serials = createZoneSerial({ tables, writer, clock });
  const queries = new Counter({
    name: 'postrider_dns_server_queries_total',
    help: 'Queries to the name server by transport and result.',
    labelNames: ['transport', 'result'],
    registers: [registry],
  });
  const notifications = new Counter({
    name: 'postrider_dns_server_notifications_total',
    help: 'Notifications of secondary name servers by result.',
    labelNames: ['result'],
    registers: [registry],
  });
  const notifier = createZoneNotifier({ random, log, observe: (result) => notifications.inc({ result }) });
  let records: readonly ZoneRecord[] = [];
  let serial = 0;
  let content = '';
  const servers: Nameserver[] = [];
  gaugesOf(registry)(
    'postrider_dns_server_zone_serial',
    "Serial number of the platform's zone.",
    () => serial,
  );

  async function refresh(): Promise<void> {
    const keys = tables.platformKeys.list();
    const reportKey = reportKeyRecord(tables, hostname);
    const own = (await platformZone(createDnsView(resolver), platform, keys, reportKey)).filter(
      ({ name, type }) => type !== 'PTR' && isWithin(name, hostname),
    );
    const keyChanges = tables.platformKeys.zoneChanges();
    const described = JSON.stringify([keyChanges, [...authorityRecords(platform, 0), ...own]]);
    if (described === content) return;
    const next = await serials.current(described);
    content = described;
    records = [...authorityRecords(platform, next), ...own];
    if (next === serial) return;
    serial = next;
    log.info({ zone: hostname, serial, secondaries: config.dns.server.secondaries.length }, 'zone loaded');
    notify();
  }

  function notify(): void {
    const [soa] = records;
    const { secondaries } = config.dns.server;
    if (soa === undefined || servers.length === 0) return;
    const sources = servers.map(({ host }) => host).filter((host) => !UNSPECIFIED.includes(host));
    notifier.notify(secondaries.map(parseServer), toAnswer(soa), sources);
  }

  const loop = createLoop({ name: 'zone', run: refresh, firstMs: REFRESH_MS, intervalMs: REFRESH_MS, log });
  const source = createZoneSource({ hostname, tables, records: () => records });

  async function bind(text: string): Promise<void> {
    const listen = parseListen(text);
    if (listen === null) throw new Error(`not an address and port: ${text}`);
    const server = await createNameserver({
      zone: source.zone,
      origins: [hostname],
      listen,
      clock,
      onError: (error) => log.error({ err: error }, 'DNS query could not be answered'),
      transfers: {
        isAllowed: (address) =>
          config.dns.server.secondaries.some(
            (text) => networkOf(parseServer(text).address, 32, 128) === address,
          ),
        records: source.pages,
      },
      limits: {
        queriesPerSecond: config.dns.server.queriesPerSecond,
        responsesPerSecond: config.dns.server.responsesPerSecond,
        tcp: TCP_LIMITS,
        transfers: MAX_TRANSFERS,
      },
      observe: (transport, result) => queries.inc({ transport, result }),
    }).catch((error: unknown) => {
      throw listenFault('dns.server.listen', listen, error);
    });
    servers.push(server);
  }

  return {
    listen: async () => {
      await refresh();
      const { listen } = config.dns.server;
      for (const text of typeof listen === 'string' ? [listen] : listen) await bind(text);
      notify();
      loop.start();
    },
    addresses: () => servers.map(({ host, port }) => ({ host, port })),
    close: async () => {
      await loop.stop();
      await notifier.stop();
      await Promise.all(servers.splice(0).map((server) => server.close()));
    },
  };
}

const UNSPECIFIED: readonly string[] = ['0.0.0.0', '::'];
