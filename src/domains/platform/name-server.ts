import { Counter } from 'prom-client';
import { type ListenAddress, parseListen } from '../../config/setting-types.ts';
import { SECOND } from '../../core/clock.ts';
import { createLoop } from '../../core/concurrency/loop.ts';
import { gaugesOf } from '../../core/metrics.ts';
import { listenFault } from '../../core/operator-fault.ts';
import { createDnsView } from '../../dns/dns-view.ts';
import type { DnsListener } from '../../dns/listener.ts';
import { isWithin } from '../../dns/names.ts';
import { createNameserver } from '../../dns/nameserver.ts';
import type { Resolver } from '../../dns/resolver.ts';
import { createZoneNotifier } from '../../dns/server/notify.ts';
import { networkOf } from '../../dns/server/rate-limit.ts';
import { parseServer } from '../../dns/transport.ts';
import { type Zone, zoneOfList } from '../../dns/zone.ts';
import { toAnswer, type ZoneRecord } from '../../dns/zone-record.ts';
import type { Context } from '../../store/context.ts';
import type { KeySlot } from '../../store/domains/domains.ts';
import type { Tables } from '../../store/tables.ts';
import { SLOT_NAMES } from '../key-slots.ts';
import { platformOf } from './platform.ts';
import { authorityRecords, platformZone, zoneKeyRecord, zoneSerial } from './platform-zone.ts';
import { reportKeyRecord } from './report-key.ts';

/** Changes by other processes are served after at most this time. */
const REFRESH_MS = SECOND;
const TCP_LIMITS = { connections: 100, connectionsPerAddress: 20 };
const MAX_TRANSFERS = 4;

/**
 * Serves the platform's zone (`dns.server`): responses, serial number, NOTIFY and transfers to secondaries. Registers its
 * metrics now and binds nothing. `listen` loads the zone, binds each address of `dns.server.listen`,
 * notifies the secondaries and begins to refresh the zone every second; call `close` also after it failed.
 */
export function createPlatformNameServer(
  {
    config,
    tables,
    writer,
    clock,
    random,
    log,
    registry,
  }: Pick<Context, 'config' | 'tables' | 'writer' | 'clock' | 'random' | 'log' | 'registry'>,
  resolver: Resolver,
) {
  const platform = platformOf(config);
  const { hostname } = config;
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
  const notifier = createZoneNotifier({ random, log }, (result) => notifications.inc({ result }));
  let records: readonly ZoneRecord[] = [];
  let serial = 0;
  let content = '';
  const servers: DnsListener[] = [];
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
    const next = await zoneSerial({ tables, writer, clock }, described);
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
  const source = zoneSource(tables, hostname, () => records);

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
    /** Rejects with an OperatorFault when an address cannot be bound. */
    listen: async (): Promise<void> => {
      await refresh();
      const { listen } = config.dns.server;
      for (const text of typeof listen === 'string' ? [listen] : listen) await bind(text);
      notify();
      loop.start();
    },
    addresses: (): ListenAddress[] => servers.map(({ host, port }) => ({ host, port })),
    close: async (): Promise<void> => {
      await loop.stop();
      await notifier.stop();
      await Promise.all(servers.splice(0).map((server) => server.close()));
    },
  };
}

const UNSPECIFIED: readonly string[] = ['0.0.0.0', '::'];

/** Keys that are read at a time: about a millisecond. */
const PAGE_SIZE = 100;

/**
 * The platform's zone for the name server. The records of the platform, SOA first, are a short list in memory; the keys of
 * domains, of which there may be many thousands, are read from the database for each query and in pages for a transfer. The
 * records of the platform are indexed once for each array that `records` returns. Keys are never cached: `find`
 * below `dkim.<hostname>` reads those of one domain, `pages` 100 at a time.
 */
function zoneSource(
  tables: Pick<Tables, 'dkimKeys'>,
  hostname: string,
  records: () => readonly ZoneRecord[],
): { zone: Zone; pages: () => AsyncGenerator<readonly ZoneRecord[]> } {
  const keyHost = `dkim.${hostname}`;
  const listed = zoneOfList(records, [hostname]);

  /** The keys of one domain: at `<id>.dkim.<hostname>`, and below it. */
  function findKeys(name: string): readonly ZoneRecord[] | undefined {
    const labels = name.slice(0, -keyHost.length - 1).split('.');
    const [id = '', slot, ...more] = labels.toReversed();
    if (more.length > 0) return undefined;
    const keys = tables.dkimKeys.zoneKeysOf(id);
    if (keys.length === 0) return undefined;
    const wanted = slot === undefined ? 's' : slotNamed(slot);
    const found = keys.filter((key) => key.slot === wanted).map((key) => zoneKeyRecord({ hostname }, key));
    // The name of a domain exists even if all of its keys are below it.
    return found.length > 0 || slot === undefined ? found : undefined;
  }

  return {
    zone: {
      find: (name) => {
        if (name === keyHost) return [];
        return isWithin(name, keyHost) ? findKeys(name) : listed.find(name);
      },
    },
    /** All records but the SOA, in portions, with a pause after each page of keys. */
    pages: async function* () {
      yield records().filter(({ type }) => type !== 'SOA');
      for (let after = 0; ; ) {
        const keys = tables.dkimKeys.zonePage(after, PAGE_SIZE);
        const last = keys.at(-1);
        if (last === undefined) return;
        yield keys.map((key) => zoneKeyRecord({ hostname }, key));
        after = last.key_id;
        await new Promise((resume) => setImmediate(resume));
      }
    },
  };
}

/** The slot below the name of a domain; that of the required record has no label. */
function slotNamed(label: string): KeySlot | undefined {
  return SLOT_NAMES.find((slot) => slot === label && slot !== 's');
}
