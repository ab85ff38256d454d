import { type Clock, systemClock } from '../core/clock.ts';
import { createTokenBucket } from '../core/token-bucket.ts';
import {
  type AuthoritativeData,
  encodeResponse,
  errorSections,
  headerOnly,
  originOf,
  type Query,
  readDnsQuery,
  sectionsOf,
  soaOf,
  TRANSFERS,
} from './authoritative.ts';
import { DEFAULT_LIMITS, type DnsListener, listenDns, type Peer } from './listener.ts';
import { canonicalName, fromWire } from './names.ts';
import { createResponseRateLimit, networkOf } from './server/rate-limit.ts';
import { transferMessages, udpTransferResponse } from './server/transfer.ts';
import { RCODE } from './wire.ts';
import type { Zone } from './zone.ts';
import { toAnswer, type ZoneRecord } from './zone-record.ts';

/*
 * The built-in authoritative name server, over UDP and TCP: responses in authoritative.ts, sockets in listener.ts. It must
 * be bound to the addresses that queries are sent to: a UDP response of a wildcard socket may have another source address.
 */

/** What a name server serves, and where it listens. */
export interface NameserverOptions {
  /** Its zones need an SOA record each, for negative answers and transfers. */
  zone: Zone;
  /** The names of the zones; queries for other names are answered REFUSED. */
  origins: readonly string[];
  /** Port 0: a free one. */
  listen: { host: string; port: number };
  /** Called when a query cannot be answered (a malformed record, a failed lookup); the client gets SERVFAIL. */
  onError: (error: unknown) => void;
  clock?: Clock;
  /** Zone transfers; default: refused. */
  transfers?: Transfers;
  limits?: NameserverLimits;
  /** Called for each message. */
  observe?: (via: Peer['via'], result: QueryOutcome) => void;
}

/**
 * The result of one message. answered: with records. negative: without records. refused: another zone, or a transfer that
 * is not allowed or exceeds the limit. failed: SERVFAIL. malformed: not a valid query, or one with an unsupported EDNS
 * version. limited: too many identical responses. dropped: too many queries. transfer: a zone transfer over TCP.
 */
export type QueryOutcome =
  | 'answered'
  | 'negative'
  | 'refused'
  | 'failed'
  | 'malformed'
  | 'limited'
  | 'dropped'
  | 'transfer';

export interface Transfers {
  /** Whether a server may transfer the zone. */
  isAllowed(address: string): boolean;
  /** All records of the zone but the SOA, in portions. */
  records(origin: string): AsyncIterable<readonly ZoneRecord[]>;
}

export type NameserverLimits = typeof UNLIMITED;

const UNLIMITED = {
  /** Queries of all clients; those above the limit are dropped, and clients repeat them. */
  queriesPerSecond: Number.MAX_SAFE_INTEGER,
  /** Identical responses to one network over UDP; 0: no limit. */
  responsesPerSecond: 0,
  tcp: DEFAULT_LIMITS,
  /** Concurrent zone transfers. */
  transfers: 4,
};

/** Resolves when the server listens. Rejects for an invalid origin, and when it cannot bind. */
export async function createNameserver(options: NameserverOptions): Promise<DnsListener> {
  const { zone, clock = systemClock, onError, listen, transfers, limits = UNLIMITED } = options;
  const { observe = () => {} } = options;
  const origins = options.origins.map(originName);
  const data: AuthoritativeData = { zone, origins };
  const budget = createTokenBucket(clock, {
    burst: limits.queriesPerSecond,
    perSecond: limits.queriesPerSecond,
  });
  const rateLimit = createResponseRateLimit(clock, limits.responsesPerSecond);
  let transferring = 0;

  function respond(bytes: Buffer, peer: Peer, reply: (response: Buffer) => void): QueryOutcome {
    if (!budget.take().allowed) return 'dropped';
    const query = readDnsQuery(bytes);
    if (query === null) return 'malformed';
    if (Buffer.isBuffer(query)) return limited(peer, 'malformed', query, reply) ?? 'malformed';
    if (!query.badVersion && TRANSFERS.includes(query.question.type))
      return startTransfer(query, peer, reply);
    const found = sectionsOf(query, data);
    const isPositive = found.rcode === RCODE.NOERROR && found.answers.length > 0;
    if (peer.via === 'udp') {
      const kind = isPositive
        ? `${query.question.type} ${fromWire(query.question.name)}`
        : `${found.rcode} ${found.authorities[0]?.name ?? ''}`;
      const judgment = rateLimit.judge(peer.address, kind);
      if (judgment === 'drop') return 'limited';
      if (judgment === 'truncate') {
        reply(encodeResponse(query, 'udp', found, { truncate: true }));
        return 'limited';
      }
    }
    reply(encodeResponse(query, peer.via, found));
    return isPositive ? 'answered' : (OUTCOMES[found.rcode] ?? 'negative');
  }

  /** Sends an error response and returns null, or 'limited' when there are too many of them. */
  function limited(
    peer: Peer,
    kind: string,
    response: Buffer,
    reply: (response: Buffer) => void,
  ): QueryOutcome | null {
    if (peer.via === 'udp' && rateLimit.judge(peer.address, kind) !== 'send') return 'limited';
    reply(response);
    return null;
  }

  /** RFC 5936 §2.2: only over TCP, and only for listed servers. */
  function startTransfer(query: Query, peer: Peer, reply: (response: Buffer) => void): QueryOutcome {
    const origin = fromWire(query.question.name) ?? '';
    const refusal = encodeResponse(query, peer.via, errorSections(RCODE.REFUSED));
    const soa = originOf(origin, origins) === origin ? soaOf(origin, zone) : undefined;
    const isRefused =
      transfers === undefined ||
      soa === undefined ||
      query.question.class !== 'IN' ||
      !transfers.isAllowed(networkOf(peer.address, 32, 128)) ||
      (peer.via === 'udp' && query.question.type === 'AXFR') ||
      transferring >= limits.transfers;
    if (isRefused) return limited(peer, 'refused transfer', refusal, reply) ?? 'refused';
    if (peer.via === 'udp') {
      reply(udpTransferResponse(query, soa));
      return 'answered';
    }
    transferring++;
    const messages = transferMessages(query, soa, answersOf(transfers.records(origin)));
    void transfer(query, messages, peer, reply).finally(() => transferring--);
    return 'transfer';
  }

  async function transfer(
    query: Query,
    messages: AsyncIterable<Buffer>,
    peer: Peer,
    reply: (response: Buffer) => void,
  ): Promise<void> {
    try {
      for await (const message of messages) {
        reply(message);
        if ((await peer.drained?.()) === false) return;
      }
    } catch (error) {
      onError(error);
      reply(encodeResponse(query, 'tcp', errorSections(RCODE.SERVFAIL)));
    }
  }

  return listenDns(
    listen.host,
    listen.port,
    (query, peer, reply) => {
      let result: QueryOutcome;
      try {
        result = respond(query, peer, reply);
      } catch (error) {
        onError(error);
        reply(headerOnly(query, RCODE.SERVFAIL));
        result = 'failed';
      }
      observe(peer.via, result);
    },
    limits.tcp,
  );
}

const OUTCOMES: Readonly<Record<number, QueryOutcome>> = {
  [RCODE.REFUSED]: 'refused',
  [RCODE.SERVFAIL]: 'failed',
  [RCODE.BADVERS]: 'malformed',
};

async function* answersOf(portions: AsyncIterable<readonly ZoneRecord[]>) {
  for await (const portion of portions) yield portion.map(toAnswer);
}

function originName(text: string): string {
  const name = canonicalName(text);
  if (name === null) throw new Error(`the origin of a zone is not a domain name: ${text}`);
  return name;
}
