import {
  type Answer,
  AUTHENTIC_DATA,
  encode,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { headerOnly, type Query, readDnsQuery } from '../../src/dns/authoritative.ts';
import { listenDns, type Peer } from '../../src/dns/listener.ts';
import { canonicalName } from '../../src/dns/names.ts';
import { optRecord, RCODE } from '../../src/dns/wire.ts';
import { toAnswer, type ZoneRecord, type ZoneRecordType } from '../../src/dns/zone-record.ts';

/**
 * A programmable recursive resolver on 127.0.0.1, over real UDP and TCP sockets:
 *
 *   const dns = await startDnsServer();
 *   dns.set('example.test', 'MX', ['10 mx.example.test', '20 mx2.example.test']);
 *   dns.set('example.test', 'TXT', ['v=spf1 -all', ['a record ', 'in two strings']]);
 *   dns.set('slow.test', 'A', { values: ['192.0.2.1'], delayMs: 50 });
 *   dns.set('broken.test', '*', 'SERVFAIL');
 *   dns.publish(response.dnsRecords);
 *   createResolver({ resolvers: [dns.address], ... });
 *
 * A name that is not set does not exist (NXDOMAIN); a name with other types has no such record (NODATA).
 * CNAMEs are answered with the chain as far as their targets are set.
 */
export type DnsBehavior =
  | 'NXDOMAIN'
  | 'NODATA'
  | 'SERVFAIL'
  | 'REFUSED'
  | 'FORMERR'
  /** NOERROR without records, as from a server that is not recursive. */
  | 'referral'
  /** Never answers. */
  | 'silent'
  /** The correct id, then invalid bytes. */
  | 'bad bytes'
  /** Answers another query. */
  | 'wrong id'
  | 'wrong question'
  | DnsRecords;

export interface DnsRecords {
  /** As in a zone file, TXT without quotes; a list is one TXT record of these strings. */
  values: readonly (string | readonly string[])[];
  /** Instead of values: records for dns-packet, which a zone file cannot represent. */
  raw?: readonly Answer[];
  /** Seconds. Default: 300. */
  ttl?: number;
  /** Sets the AD bit. */
  authenticated?: boolean;
  delayMs?: number;
  /** Over UDP only TC, so that the client must use TCP. */
  truncate?: boolean;
  /** Like `truncate`, in the middle of a record. */
  cut?: boolean;
  /** Sends a forged answer first. */
  forgery?: 'wrong id' | 'wrong question';
  /** FORMERR for every query with EDNS. */
  withoutEdns?: boolean;
  /** A CNAME without the records of its target. */
  bare?: boolean;
}

export interface ReceivedQuestion extends Peer {
  name: string;
  type: string;
  id: number;
}

/** A record as the API returns it. */
export type PublishedRecord = Pick<ZoneRecord, 'name' | 'value' | 'priority'> & {
  type: string;
  ttl?: number;
};

export interface DnsServerOptions {
  records?: readonly PublishedRecord[];
  behaviors?: readonly [name: string, type: ZoneRecordType | '*', behavior: DnsBehavior][];
  /** SOA minimum of negative answers, in seconds; null: answers without SOA. Default: 60. */
  negativeTtl?: number | null;
}

export interface DnsServer {
  /** `127.0.0.1:port`, for `dns.resolvers`. */
  address: string;
  port: number;
  /** In the order of arrival. */
  questions: ReceivedQuestion[];
  /** The number of queries for a name, over UDP and TCP. */
  asked(name: string, type?: string): number;
  /** Replaces a behavior; throws for a malformed record. Name '*': every name that is not set; type '*': every other type. */
  set(name: string, type: ZoneRecordType | '*', behavior: DnsBehavior | Values): void;
  /** Adds records; a CNAME whose value is a placeholder text is skipped. */
  publish(records: readonly PublishedRecord[]): void;
  /** Without a type: all of the name. */
  remove(name: string, type?: ZoneRecordType | '*'): void;
  close(): Promise<void>;
}

interface Resolution {
  rcode: number;
  answers: Answer[];
  /** A negative answer, with SOA. */
  absent: boolean;
  authenticated: boolean;
  recursive: boolean;
}

type Values = readonly (string | readonly string[])[];

const DEFAULT_TTL = 300;

export async function startDnsServer(options: DnsServerOptions = {}): Promise<DnsServer> {
  const { negativeTtl = 60 } = options;
  const names = new Map<string, Map<string, DnsBehavior>>();
  const questions: ReceivedQuestion[] = [];
  const delayed = new Set<NodeJS.Timeout>();

  const behaviorAt = (name: string, type: string): DnsBehavior => {
    const types = names.get(name) ?? names.get('*');
    const behavior = types?.get(type) ?? types?.get('*');
    return behavior ?? (types ? 'NODATA' : 'NXDOMAIN');
  };

  /** The answer for `name`, with its CNAMEs followed as far as their targets are set. */
  const resolve = (name: string, type: string, hops = 0): Resolution | 'silent' => {
    const behavior = behaviorAt(name, type);
    if (typeof behavior === 'object') {
      const answers =
        behavior.raw?.slice() ?? behavior.values.map((value) => answerOf(name, type, value, behavior.ttl));
      return { ...NO_RECORDS, answers, authenticated: behavior.authenticated ?? false };
    }
    const alias = behavior === 'NODATA' ? behaviorAt(name, 'CNAME') : behavior;
    if (typeof alias === 'object') {
      const [answer] = alias.values.map((value) => answerOf(name, 'CNAME', value, alias.ttl));
      const target = answer?.type === 'CNAME' ? answer.data : '';
      const known = !alias.bare && hops < 3 && (names.has(target) || names.has('*'));
      const rest = known ? resolve(target, type, hops + 1) : { ...NO_RECORDS, authenticated: true };
      if (rest === 'silent') return rest;
      const authenticated = rest.authenticated && (alias.authenticated ?? false);
      return { ...rest, answers: answer ? [answer, ...rest.answers] : rest.answers, authenticated };
    }
    if (behavior === 'silent') return 'silent';
    const absent = behavior === 'NXDOMAIN' || behavior === 'NODATA';
    return {
      ...NO_RECORDS,
      rcode: RCODES[behavior] ?? RCODE.NOERROR,
      absent,
      recursive: behavior !== 'referral',
    };
  };

  const respond = (bytes: Buffer, peer: Peer, reply: (answer: Buffer) => void) => {
    const query = readDnsQuery(bytes);
    if (query === null) return;
    if (Buffer.isBuffer(query)) return reply(query);
    const { type } = query.question;
    const name = key(query.question.name);
    questions.push({ ...peer, name, type, id: bytes.readUInt16BE(0) });

    const behavior = behaviorAt(name, type);
    if (behavior === 'bad bytes') return reply(Buffer.concat([bytes.subarray(0, 2), INVALID]));
    if (behavior === 'wrong id' || behavior === 'wrong question') return reply(forged(query, behavior));
    const resolution = resolve(name, type);
    if (resolution === 'silent') return;

    const records = typeof behavior === 'object' ? behavior : null;
    const answer = () => {
      if (records?.forgery) reply(forged(query, records.forgery));
      if (records?.withoutEdns && query.edns) return reply(headerOnly(bytes, RCODE.FORMERR));
      reply(message(query, resolution, negativeTtl, peer.via, records));
    };
    if (records?.delayMs === undefined) return answer();
    const timer = setTimeout(() => {
      delayed.delete(timer);
      answer();
    }, records.delayMs);
    delayed.add(timer);
  };

  const listener = await listenDns('127.0.0.1', 0, respond);
  const server: DnsServer = {
    address: `127.0.0.1:${listener.port}`,
    port: listener.port,
    questions,
    asked: (name, type) =>
      questions.filter(
        (question) => question.name === key(name) && (type === undefined || question.type === type),
      ).length,
    set: (name, type, behavior) => {
      const normalized = isValues(behavior) ? { values: behavior } : behavior;
      if (typeof normalized === 'object' && type !== '*') {
        for (const value of normalized.values) answerOf(name === '*' ? 'any.test' : name, type, value);
      }
      const types = names.get(key(name)) ?? new Map<string, DnsBehavior>();
      names.set(key(name), types.set(type, normalized));
    },
    publish: (records) => {
      for (const { name, type, value, priority, ttl } of records) {
        if (type === 'CNAME' && value.includes(' ')) continue;
        const existing = names.get(key(name))?.get(type);
        const values = typeof existing === 'object' ? existing.values : [];
        const whole = priority === undefined ? value : `${priority} ${value}`;
        // The API's types are among ours.
        server.set(name, type as ZoneRecordType, { values: [...values, whole], ttl: ttl ?? DEFAULT_TTL });
      }
    },
    remove: (name, type) => {
      const types = names.get(key(name));
      if (type !== undefined) types?.delete(type);
      if (type === undefined || types?.size === 0) names.delete(key(name));
    },
    close: () => {
      for (const timer of delayed) clearTimeout(timer);
      return listener.close();
    },
  };
  server.publish(options.records ?? []);
  for (const [name, type, behavior] of options.behaviors ?? []) server.set(name, type, behavior);
  return server;
}

const NO_RECORDS: Resolution = {
  rcode: RCODE.NOERROR,
  answers: [],
  absent: false,
  authenticated: false,
  recursive: true,
};

const RCODES: Record<string, number> = {
  NXDOMAIN: RCODE.NXDOMAIN,
  SERVFAIL: RCODE.SERVFAIL,
  REFUSED: RCODE.REFUSED,
  FORMERR: RCODE.FORMERR,
};

/** An answer's flags and counts, then names that point to themselves. */
const INVALID = Buffer.from('81800001000100000000c00cc00cffffffff', 'hex');

function message(
  { packet, question, edns }: Query,
  resolution: Resolution,
  negativeTtl: number | null,
  via: Peer['via'],
  records: DnsRecords | null,
): Buffer {
  const build = (truncated: boolean) =>
    encode({
      type: 'response',
      id: packet.id ?? 0,
      flags:
        resolution.rcode |
        (resolution.recursive ? RECURSION_AVAILABLE : 0) |
        (packet.flag_rd ? RECURSION_DESIRED : 0) |
        (resolution.authenticated ? AUTHENTIC_DATA : 0) |
        (truncated ? TRUNCATED_RESPONSE : 0),
      questions: [question],
      answers: truncated ? [] : resolution.answers,
      authorities: resolution.absent && negativeTtl !== null && !truncated ? [soa(negativeTtl)] : [],
      additionals: edns ? [optRecord(false)] : [],
    });
  const whole = build(false);
  if (via === 'tcp') return whole;
  if (records?.cut) {
    whole.writeUInt16BE(whole.readUInt16BE(2) | TRUNCATED_RESPONSE, 2);
    return whole.subarray(0, whole.length - 20);
  }
  return records?.truncate || whole.length > (edns?.size ?? 512) ? build(true) : whole;
}

function forged({ packet, question }: Query, how: 'wrong id' | 'wrong question'): Buffer {
  const id = packet.id ?? 0;
  const name = how === 'wrong question' ? 'elsewhere.test' : question.name;
  return encode({
    type: 'response',
    id: how === 'wrong id' ? id ^ 1 : id,
    flags: RECURSION_AVAILABLE,
    questions: [{ ...question, name }],
    answers: [{ type: 'A', name, ttl: 3600, data: '192.0.2.66' }],
  });
}

function answerOf(name: string, type: string, value: string | readonly string[], ttl = DEFAULT_TTL): Answer {
  if (typeof value !== 'string') return { type: 'TXT', name, ttl, data: [...value] };
  return toAnswer({ name, type: type as ZoneRecordType, value, ttl }); // toAnswer throws for any other type
}

function soa(minimum: number): Answer {
  const times = { serial: 1, refresh: 3600, retry: 600, expire: 86_400, minimum };
  return {
    type: 'SOA',
    name: 'test',
    ttl: 3600,
    data: { mname: 'ns.test', rname: 'hostmaster.test', ...times },
  };
}

function key(name: string): string {
  return name === '*' ? name : (canonicalName(name) ?? name);
}

function isValues(behavior: DnsBehavior | Values): behavior is Values {
  return Array.isArray(behavior);
}
