import { type Clock, SECOND, systemClock } from '../core/clock.ts';
import { bareAnswer, respondTo } from './authority.ts';
import { type DnsListener, listenDns } from './listener.ts';
import { canonicalName } from './names.ts';
import { RCODE } from './wire.ts';
import { type Zone, zoneOfList } from './zone.ts';
import type { ZoneRecord } from './zone-record.ts';

/**
 * The built-in nameserver: stands for a few zones handed in, over UDP and TCP. What it says is in
 * authority.ts, how it listens in listener.ts. Bind it to the addresses it is reached by: a UDP answer from a
 * wildcard socket may leave from another address than the question came to.
 */
export interface NameserverSettings {
  /** The records (see `zoneOfList`), or a look-up into wherever they are. */
  zone: (() => readonly ZoneRecord[]) | Zone;
  /** The names of the zones it speaks for; for everything else it answers REFUSED. */
  origins: readonly string[];
  /** Port 0 picks a free one. */
  listen: { host: string; port: number };
  /** Told of a fault in answering (a malformed record, a look-up that threw); the asker gets SERVFAIL. */
  onFault: (fault: unknown) => void;
  clock?: Clock;
}

export interface Nameserver {
  host: string;
  port: number;
  close(): Promise<void>;
}

/** Resolves when it answers. Throws when an origin is no name, rejects when it cannot bind. */
export async function createNameserver(settings: NameserverSettings): Promise<Nameserver> {
  const { clock = systemClock, onFault, listen } = settings;
  const origins = settings.origins.map(originName);
  const zone = typeof settings.zone === 'function' ? zoneOfList(settings.zone, origins) : settings.zone;
  const authority = { zone, origins, serial: Math.floor(clock.now() / SECOND) };
  const listener: DnsListener = await listenDns(listen.host, listen.port, (query, { via }, reply) => {
    try {
      const answer = respondTo(query, via, authority);
      if (answer) reply(answer);
    } catch (fault) {
      onFault(fault);
      reply(bareAnswer(query, RCODE.SERVFAIL));
    }
  });
  return listener;
}

function originName(text: string): string {
  const name = canonicalName(text);
  if (name === null) throw new Error(`not a domain name to be a zone's origin: ${text}`);
  return name;
}
