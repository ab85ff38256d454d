import {
  type Answer,
  AUTHENTIC_DATA,
  encode,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { headerOnly, type Query, readQuery } from '../../src/dns/authoritative.ts';
import { listenDns, type Peer } from '../../src/dns/listener.ts';
import { canonicalName } from '../../src/dns/names.ts';
import { optRecord, RCODE } from '../../src/dns/wire.ts';
import { toAnswer, type ZoneRecord, type ZoneRecordType } from '../../src/dns/zone-record.ts';

/**
 * A recursive resolver on 127.0.0.1 that a test makes say whatever it likes, over real UDP and TCP sockets:
 *
 *   const dns = await startDnsServer();
 *   dns.set('example.test', 'MX', ['10 mx.example.test', '20 mx2.example.test']);
 *   dns.set('example.test', 'TXT', ['v=spf1 -all', ['a record ', 'in two strings']]);
 *   dns.set('slow.test', 'A', { values: ['192.0.2.1'], delayMs: 50 });
 *   dns.set('broken.test', '*', 'SERVFAIL');
 *   dns.publish(response.dnsRecords);
 *   createResolver({ resolvers: [dns.address], ... });
 *
 * A name that was never set does not exist (NXDOMAIN); one with other types has no such record (NODATA).
 * CNAMEs are answered with the chain as far as their targets were set.
 */
export type DnsBehaviour =
  | 'NXDOMAIN'
  | 'NODATA'
  | 'SERVFAIL'
  | 'REFUSED'
  | 'FORMERR'
  /** NOERROR with nothing at all, as a server answers that does not recurse. */
  | 'referral'
  /** Never answers. */
  | 'silent'
  /** Right id, then rubbish. */
  | 'bad bytes'
  /** Answers a question that nobody asked. */
  | 'wrong id'
  | 'wrong question'
  | DnsRecords;

export interface DnsRecords {
  /** As in a zone file, TXT without quotes; a list is one TXT record in the strings given. */
  values: readonly (string | readonly string[])[];
  /** Instead of values: records in dns-packet's form, for what no zone file would hold. */
  raw?: readonly Answer[];
  /** Seconds, 300 unless told. */
  ttl?: number;
  /** Sets the AD bit. */
  authenticated?: boolean;
  delayMs?: number;
  /** Over UDP only TC, so that the asker must come by TCP. */
  truncate?: boolean;
  /** As `truncate`, cut in the middle of a record. */
  cut?: boolean;
  /** Sends a forged answer first. */
  forgery?: 'wrong id' | 'wrong question';
  /** FORMERR to every question with EDNS. */
  withoutEdns?: boolean;
  /** A CNAME alone, without what its target has. */
  bare?: boolean;
}

export interface DnsQuestionSeen extends Peer {
  name: string;
  type: string;
  id: number;
}

/** A record as the API shows it. */
export type PublishedRecord = Pick<ZoneRecord, 'name' | 'value' | 'priority'> & {
  type: string;
  ttl?: number;
};

export interface DnsServerOptions {
  records?: readonly PublishedRecord[];
  behaviours?: readonly [name: string, type: ZoneRecordType | '*', behaviour: DnsBehaviour][];
  /** SOA minimum of every "no", in seconds; 60 unless told, null for answers without SOA. */
  negativeTtl?: number | null;
}

export interface DnsServer {
  /** `127.0.0.1:port`, as `dns.resolvers` takes it. */
  address: string;
  port: number;
  /** In the order in which they came. */
  questions: DnsQuestionSeen[];
  /** How often this was asked, over UDP and TCP together. */
  asked(name: string, type?: string): number;
  /** Replaces what was there; throws at a malformed record. Name '*' speaks for every name that was not set, type '*' for every other type. */
  set(name: string, type: ZoneRecordType | '*', behaviour: DnsBehaviour | Values): void;
  /** Adds records to those there are; a CNAME whose value is still a placeholder text is left out. */
  publish(records: readonly PublishedRecord[]): void;
  /** Without a type: all of the name. */
  remove(name: string, type?: ZoneRecordType | '*'): void;
  close(): Promise<void>;
}

interface Said {
  rcode: number;
  answers: Answer[];
  /** A "no": with SOA. */
  absent: boolean;
  authenticated: boolean;
  recursive: boolean;
}

type Values = readonly (string | readonly string[])[];

const DEFAULT_TTL = 300;

export async function startDnsServer(options: DnsServerOptions = {}): Promise<DnsServer> {
  const { negativeTtl = 60 } = options;
  const names = new Map<string, Map<string, DnsBehaviour>>();
  const questions: DnsQuestionSeen[] = [];
  const delayed = new Set<NodeJS.Timeout>();

  const behaviourAt = (name: string, type: string): DnsBehaviour => {
    const types = names.get(name) ?? names.get('*');
    const behaviour = types?.get(type) ?? types?.get('*');
    return behaviour ?? (types ? 'NODATA' : 'NXDOMAIN');
  };

  /** The answer to a question for `name`, its CNAMEs followed as far as they are known. */
  const say = (name: string, type: string, hops = 0): Said | 'silent' => {
    const behaviour = behaviourAt(name, type);
    if (typeof behaviour === 'object') {
      const answers =
        behaviour.raw?.slice() ?? behaviour.values.map((value) => answerOf(name, type, value, behaviour.ttl));
      return { ...SAID, answers, authenticated: behaviour.authenticated ?? false };
    }
    const alias = behaviour === 'NODATA' ? behaviourAt(name, 'CNAME') : behaviour;
    if (typeof alias === 'object') {
      const [answer] = alias.values.map((value) => answerOf(name, 'CNAME', value, alias.ttl));
      const target = answer?.type === 'CNAME' ? answer.data : '';
      const known = !alias.bare && hops < 3 && (names.has(target) || names.has('*'));
      const rest = known ? say(target, type, hops + 1) : { ...SAID, authenticated: true };
      if (rest === 'silent') return rest;
      const authenticated = rest.authenticated && (alias.authenticated ?? false);
      return { ...rest, answers: answer ? [answer, ...rest.answers] : rest.answers, authenticated };
    }
    if (behaviour === 'silent') return 'silent';
    const absent = behaviour === 'NXDOMAIN' || behaviour === 'NODATA';
    return {
      ...SAID,
      rcode: RCODES[behaviour] ?? RCODE.NOERROR,
      absent,
      recursive: behaviour !== 'referral',
    };
  };

  const respond = (bytes: Buffer, peer: Peer, reply: (answer: Buffer) => void) => {
    const query = readQuery(bytes);
    if (query === null) return;
    if (Buffer.isBuffer(query)) return reply(query);
    const { type } = query.question;
    const name = key(query.question.name);
    questions.push({ ...peer, name, type, id: bytes.readUInt16BE(0) });

    const behaviour = behaviourAt(name, type);
    if (behaviour === 'bad bytes') return reply(Buffer.concat([bytes.subarray(0, 2), RUBBISH]));
    if (behaviour === 'wrong id' || behaviour === 'wrong question') return reply(forged(query, behaviour));
    const said = say(name, type);
    if (said === 'silent') return;

    const how = typeof behaviour === 'object' ? behaviour : null;
    const answer = () => {
      if (how?.forgery) reply(forged(query, how.forgery));
      if (how?.withoutEdns && query.edns) return reply(headerOnly(bytes, RCODE.FORMERR));
      reply(message(query, said, negativeTtl, peer.via, how));
    };
    if (how?.delayMs === undefined) return answer();
    const timer = setTimeout(() => {
      delayed.delete(timer);
      answer();
    }, how.delayMs);
    delayed.add(timer);
  };

  const listener = await listenDns('127.0.0.1', 0, respond);
  const server: DnsServer = {
    address: `127.0.0.1:${listener.port}`,
    port: listener.port,
    questions,
    asked: (name, type) =>
      questions.filter((seen) => seen.name === key(name) && (type === undefined || seen.type === type))
        .length,
    set: (name, type, behaviour) => {
      const said = isValues(behaviour) ? { values: behaviour } : behaviour;
      if (typeof said === 'object' && type !== '*') {
        for (const value of said.values) answerOf(name === '*' ? 'any.test' : name, type, value);
      }
      const types = names.get(key(name)) ?? new Map<string, DnsBehaviour>();
      names.set(key(name), types.set(type, said));
    },
    publish: (records) => {
      for (const { name, type, value, priority, ttl } of records) {
        if (type === 'CNAME' && value.includes(' ')) continue;
        const there = names.get(key(name))?.get(type);
        const values = typeof there === 'object' ? there.values : [];
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
  for (const [name, type, behaviour] of options.behaviours ?? []) server.set(name, type, behaviour);
  return server;
}

const SAID: Said = {
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
const RUBBISH = Buffer.from('81800001000100000000c00cc00cffffffff', 'hex');

function message(
  { packet, question, edns }: Query,
  said: Said,
  negativeTtl: number | null,
  via: Peer['via'],
  how: DnsRecords | null,
): Buffer {
  const build = (cut: boolean) =>
    encode({
      type: 'response',
      id: packet.id ?? 0,
      flags:
        said.rcode |
        (said.recursive ? RECURSION_AVAILABLE : 0) |
        (packet.flag_rd ? RECURSION_DESIRED : 0) |
        (said.authenticated ? AUTHENTIC_DATA : 0) |
        (cut ? TRUNCATED_RESPONSE : 0),
      questions: [question],
      answers: cut ? [] : said.answers,
      authorities: said.absent && negativeTtl !== null && !cut ? [soa(negativeTtl)] : [],
      additionals: edns ? [optRecord(false)] : [],
    });
  const whole = build(false);
  if (via === 'tcp') return whole;
  if (how?.cut) {
    whole.writeUInt16BE(whole.readUInt16BE(2) | TRUNCATED_RESPONSE, 2);
    return whole.subarray(0, whole.length - 20);
  }
  return how?.truncate || whole.length > (edns?.size ?? 512) ? build(true) : whole;
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
  return toAnswer({ name, type: type as ZoneRecordType, value, ttl }); // toAnswer throws at any other type
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

function isValues(behaviour: DnsBehaviour | Values): behaviour is Values {
  return Array.isArray(behaviour);
}
