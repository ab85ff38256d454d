import { type Clock, SECOND, systemClock } from '../core/clock.ts';
import { headerOnly, respondTo } from './authoritative.ts';
import { type DnsListener, listenDns } from './listener.ts';
import { canonicalName } from './names.ts';
import { RCODE } from './wire.ts';
import { type Zone, zoneOfList } from './zone.ts';
import type { ZoneRecord } from './zone-record.ts';

/**
 * The built-in authoritative name server, over UDP and TCP: answers in authoritative.ts, sockets in listener.ts. It must
 * be bound to the addresses of its clients' queries: a UDP answer from a wildcard socket may have another source address.
 */
export interface NameserverOptions {
  /** The records (see `zoneOfList`), or a lookup. */
  zone: (() => readonly ZoneRecord[]) | Zone;
  /** The names of the zones; queries for other names are answered REFUSED. */
  origins: readonly string[];
  /** Port 0: a free one. */
  listen: { host: string; port: number };
  /** Called with an error of an answer (a malformed record, a failed lookup); the client gets SERVFAIL. */
  onError: (error: unknown) => void;
  clock?: Clock;
}

export interface Nameserver {
  host: string;
  port: number;
  close(): Promise<void>;
}

/** Resolves when the server listens. Rejects for an invalid origin, and when it cannot bind. */
export async function createNameserver(options: NameserverOptions): Promise<Nameserver> {
  const { clock = systemClock, onError, listen } = options;
  const origins = options.origins.map(originName);
  const zone = typeof options.zone === 'function' ? zoneOfList(options.zone, origins) : options.zone;
  const data = { zone, origins, serial: Math.floor(clock.now() / SECOND) };
  const listener: DnsListener = await listenDns(listen.host, listen.port, (query, { via }, reply) => {
    try {
      const answer = respondTo(query, via, data);
      if (answer) reply(answer);
    } catch (error) {
      onError(error);
      reply(headerOnly(query, RCODE.SERVFAIL));
    }
  });
  return listener;
}

function originName(text: string): string {
  const name = canonicalName(text);
  if (name === null) throw new Error(`the origin of a zone is not a domain name: ${text}`);
  return name;
}
