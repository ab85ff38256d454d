import { addressesOf, type DnsView, type LookupResult } from '../../dns/dns-view.ts';
import { formatServer, queryTcp, queryUdp, type ServerAddress } from '../../dns/transport.ts';
import { type DnsResponse, encodeQuery, type Question, readResponse } from '../../dns/wire.ts';
import type { Platform } from '../../domains/platform/platform.ts';
import { delegationRecords, nameServersOf } from '../../domains/platform/platform-zone.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, type Result, unknown, warning, zoneLines } from '../finding.ts';

/** What one address of a name server answers for the SOA of the zone. */
interface ServerFacts {
  name: string;
  server: string;
  udp: SoaAnswer;
  tcp: SoaAnswer;
}

/** Null: no usable answer within the time limit. */
type SoaAnswer = { authoritative: boolean; serial: number | null } | null;

interface DelegationFacts {
  hostname: string;
  expected: readonly string[];
  found: LookupResult<string>;
  servers: ServerFacts[];
  /** Zone file lines for the zone above. */
  fix: string;
}

/** Addresses that are examined. */
const MAX_SERVERS = 8;
const QUERY_TIMEOUT_MS = 5000;

/** Whether the zone of the platform leads to its name servers, and they answer for it. */
export async function examineDelegation(context: DoctorContext): Promise<Result[]> {
  const { view, platform } = context;
  if (platform.nameServer === null)
    return [ok('dns.server.listen', 'The zone is published elsewhere ("off").')];
  const { hostname } = platform;
  const servers = (await addressesOfServers(view, platform)).slice(0, MAX_SERVERS);
  return judgeDelegation({
    hostname,
    expected: nameServersOf(platform).map(({ name }) => name),
    found: await view.ns(hostname),
    servers: await Promise.all(servers.map((server) => querySoa(context, server))),
    fix: zoneLines(delegationRecords(platform)),
  });
}

async function addressesOfServers(
  view: DnsView,
  platform: Platform,
): Promise<{ name: string; address: string }[]> {
  const each = nameServersOf(platform).map(async ({ name, addresses }) => {
    const found = addresses.length > 0 ? null : await addressesOf(view, name);
    const known = found?.kind === 'records' ? found.records : addresses;
    return known.map((address) => ({ name, address }));
  });
  return (await Promise.all(each)).flat();
}

async function querySoa(
  { platform, machine, random, signal }: DoctorContext,
  { name, address }: { name: string; address: string },
): Promise<ServerFacts> {
  const question: Question = { name: platform.hostname, type: 'SOA' };
  const server: ServerAddress = { address, port: machine.dnsPort };
  const ask = async (query: typeof queryUdp | typeof queryTcp): Promise<SoaAnswer> => {
    const id = random.bytes(2).readUInt16BE(0);
    const accept = (bytes: Buffer) => {
      const response = readResponse(bytes, question, id);
      return typeof response === 'string' ? undefined : soaAnswer(response);
    };
    const limit = AbortSignal.any([signal, AbortSignal.timeout(QUERY_TIMEOUT_MS)]);
    // Refused and unanswered connections are the same finding.
    return query(server, encodeQuery(question, id, true), accept, limit).catch(() => null);
  };
  const [udp, tcp] = await Promise.all([ask(queryUdp), ask(queryTcp)]);
  return { name, server: formatServer(server), udp, tcp };
}

function soaAnswer({ authoritative, answers }: DnsResponse): SoaAnswer {
  const soa = answers.find((answer) => answer.type === 'SOA');
  return { authoritative, serial: soa?.data.serial ?? null };
}

/**
 * One result for the NS records, then one for each address of a name server. The largest serial number that was
 * answered over UDP counts as the current version of the zone.
 */
export function judgeDelegation({ hostname, expected, found, servers, fix }: DelegationFacts): Result[] {
  const serials = servers.flatMap(({ udp }) => udp?.serial ?? []);
  const newest = Math.max(0, ...serials);
  return [
    judgeNames(hostname, expected, found, fix),
    ...servers.map((server) => judgeServer(server, newest)),
  ];
}

function judgeNames(
  hostname: string,
  expected: readonly string[],
  found: LookupResult<string>,
  fix: string,
): Result {
  const subject = `NS ${hostname}`;
  if (found.kind === 'unknown') return unknown(subject, `It could not be looked up: ${found.reason}.`);
  if (found.kind === 'absent')
    return failure(
      subject,
      'The zone is not delegated to the name servers: publish these records in the zone above it.',
      fix,
    );
  const missing = expected.filter((name) => !found.records.includes(name));
  const more = found.records.filter((name) => !expected.includes(name));
  if (missing.length === expected.length)
    return failure(subject, `The zone is delegated to others: ${found.records.join(', ')}.`, fix);
  if (missing.length > 0) return warning(subject, `The delegation lacks ${missing.join(', ')}.`, fix);
  if (more.length > 0)
    return warning(
      subject,
      `The delegation also names ${more.join(', ')}: remove it there, or add it to dns.server.nameServers.`,
    );
  return ok(subject, `Delegated to ${expected.join(', ')}.`);
}

function judgeServer({ name, server, udp, tcp }: ServerFacts, newest: number): Result {
  const subject = `${name} (${server})`;
  if (udp === null && tcp === null)
    return failure(
      subject,
      'The name server does not answer: check that it runs, its address, and that the firewall admits port 53 over UDP and TCP.',
    );
  if (udp === null || tcp === null)
    return failure(
      subject,
      `The name server does not answer over ${udp === null ? 'UDP' : 'TCP'}: admit port 53 over both in the firewall.`,
    );
  if (!udp.authoritative || udp.serial === null)
    return failure(
      subject,
      'The name server does not serve the zone: configure it as a secondary of this one, and list it in dns.server.secondaries.',
    );
  if (udp.serial !== newest)
    return warning(
      subject,
      `The name server has version ${udp.serial} of the zone, another one has ${newest}: list it in dns.server.secondaries, so that it is notified.`,
    );
  return ok(subject, `Serves version ${udp.serial} of the zone.`);
}
