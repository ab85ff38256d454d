import { isIPv6 } from 'node:net';
import type { Config } from '../../config/schema.ts';
import type { DnsView, LookupResult } from '../../dns/dns-view.ts';
import { reverseName } from '../../dns/names.ts';
import { isLocalNetwork } from '../../domains/platform/host-checks.ts';
import type { DoctorContext } from '../context.ts';
import { failure, ok, quoted, type Result, unknown, warning } from '../finding.ts';
import { OWN_RESOLVER } from './resolver.ts';

const TEST_ENTRIES = {
  ipv4: { listed: '127.0.0.2', unlisted: '127.0.0.1' },
  ipv6: { listed: '::ffff:7f00:2', unlisted: '::ffff:7f00:1' },
} as const;

/**
 * One result for each list and address (`judgeList`). When several lists are examined and none has its test entry, the
 * resolver is the common cause, and that is the one result.
 */
export async function examineBlocklists({ config, sources, view }: DoctorContext): Promise<Result[]> {
  const addresses = (await sources()).map(({ address }) => address);
  const examined = addresses.filter((address) => !isLocalNetwork(address));
  const lists = await Promise.all(config.doctor.blocklists.map((list) => lookUp(list, examined, view)));
  if (lists.length < 2 || lists.some(({ listedEntry }) => listedEntry.kind === 'records'))
    return lists.flatMap(judgeList);
  const zones = lists.map(({ zone }) => zone).join(', ');
  const reason = `None of the ${lists.length} lists (${zones}) answers with its test entry: the DNS resolver does not reach them, or they do not serve it. Whether addresses are listed is not known.`;
  return [unknown('dns.resolvers', reason, OWN_RESOLVER)];
}

/**
 * The answers for the test entries that every list contains and does not contain (RFC 5782 §5), and for the addresses. `text`:
 * the list's explanation, '' without one.
 */
async function lookUp(
  { zone, families }: Config['doctor']['blocklists'][number],
  addresses: readonly string[],
  view: DnsView,
) {
  const entry = TEST_ENTRIES[families.includes('ipv4') ? 'ipv4' : 'ipv6'];
  const covered = addresses.filter((address) => families.includes(isIPv6(address) ? 'ipv6' : 'ipv4'));
  const [listedEntry, unlistedEntry, ...found] = await Promise.all([
    view.a(entryName(entry.listed, zone)),
    view.a(entryName(entry.unlisted, zone)),
    ...covered.map(async (address) => {
      const name = entryName(address, zone);
      const answer = await view.a(name);
      const text = answer.kind === 'records' ? await view.txt(name) : answer;
      return { address, found: answer, text: text.kind === 'records' ? text.records.join(' ') : '' };
    }),
  ]);
  return { zone, listedEntry, unlistedEntry, addresses: found };
}

type ListAnswers = Awaited<ReturnType<typeof lookUp>>;

/** RFC 5782 §2.1, §2.4: the reversed address below the zone of the list. */
function entryName(address: string, zone: string): string {
  return `${reverseName(address).replace(/\.(?:in-addr|ip6)\.arpa$/, '')}.${zone}`;
}

/** Answers by which lists refuse queries from public resolvers or too many queries (spamhaus.org, uribl.com). */
const REFUSED = /^127\.255\.255\.\d+$/;
/** RFC 5782 §2.1: entries have addresses in 127/8. */
const LISTED = /^127\./;

/**
 * One result for the zone where the list cannot be used: it refuses the resolver, does not answer, or its test entries
 * are wrong. Else one for each source address; a listed one is a failure.
 */
function judgeList({ zone, listedEntry, unlistedEntry, addresses }: ListAnswers): Result[] {
  const all = [listedEntry, unlistedEntry, ...addresses.map(({ found }) => found)];
  const answers = all.flatMap((found) => (found.kind === 'records' ? found.records : []));
  const refusal = answers.find((answer) => REFUSED.test(answer));
  if (refusal !== undefined)
    return [
      warning(
        zone,
        `The list refuses queries of this DNS resolver (${refusal}), as lists do for public resolvers: it is unknown whether addresses are listed.`,
        OWN_RESOLVER,
      ),
    ];
  if (listedEntry.kind === 'unknown')
    return [unknown(zone, `The list does not answer: ${listedEntry.reason}.`)];
  if (answers.some((answer) => !LISTED.test(answer)))
    return [
      unknown(
        zone,
        `Its answers are not those of a list (${answers.join(', ')}): the resolver rewrites answers, or the zone no longer belongs to the list.`,
        OWN_RESOLVER,
      ),
    ];
  const remove = `Remove { zone = "${zone}" } from doctor.blocklists`;
  if (unlistedEntry.kind === 'records')
    return [
      unknown(
        zone,
        'The list contains every address, including the test entry that must not be listed: it is out of service.',
        remove,
      ),
    ];
  if (listedEntry.kind === 'absent')
    return [
      unknown(
        zone,
        'The list does not have its own test entry: it is out of service, or does not serve this resolver.',
        remove,
      ),
    ];
  const results = addresses.map(({ address, found, text }) => judgeAddress(zone, address, found, text));
  return results.length > 0
    ? results
    : [ok(zone, 'The list answers; no source address is in a family that it covers.')];
}

function judgeAddress(zone: string, address: string, found: LookupResult<string>, text: string): Result {
  const subject = `${address} in ${zone}`;
  if (found.kind === 'unknown') return unknown(subject, `The list does not answer: ${found.reason}.`);
  if (found.kind === 'absent') return ok(subject, 'Not listed.');
  const link = /https?:\/\/[^\s"<>]+/.exec(text)?.[0] ?? `https://${zone.split('.').slice(-2).join('.')}/`;
  const explanation = text === '' ? '' : `: ${quoted(text)}`;
  return failure(
    subject,
    `The address is listed (${found.records.join(', ')})${explanation}. Receivers that use the list reject its mail.`,
    `Find and stop the cause, then request the removal: ${quoted(link)}`,
  );
}
