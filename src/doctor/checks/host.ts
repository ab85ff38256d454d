import { isIPv6 } from 'node:net';
import { normalizeAddress } from '../../dns/address-kinds.ts';
import { addressesOf, type DnsView, type LookupResult } from '../../dns/dns-view.ts';
import { reverseName } from '../../dns/names.ts';
import { egressSet, type SourceAddress } from '../../domains/platform/egress-addresses.ts';
import {
  ehloNames,
  isFullyQualified,
  isLocalNetwork,
  isLocalUrl,
} from '../../domains/platform/host-checks.ts';
import { spfHost } from '../../domains/platform/platform.ts';
import { checkSpf } from '../../domains/verification/checks/spf.ts';
import type { DoctorContext } from '../context.ts';
import { FIX_TTL, failure, ok, type Result, unknown, warning, zoneLines } from '../finding.ts';

/**
 * The names in EHLO: RFC 5321 §4.1.1.1 requires names that resolve; large receivers compare them with the address. A name
 * that is not fully qualified or has no address is a failure. It is a warning if the name lacks one of the addresses that
 * send with it; the fix has the missing records.
 */
export async function examineHostname({
  config,
  view,
  sources: allSources,
}: DoctorContext): Promise<Result[]> {
  const all = await allSources();
  return Promise.all(
    ehloNames(config).map(async ({ key, name }) => {
      const sources = all.filter((source) => source.name === name).map(({ address }) => address);
      return judgeHello({ key, name, sources }, await addressesOf(view, name));
    }),
  );
}

function judgeHello(
  { key, name, sources }: { key: string; name: string; sources: readonly string[] },
  found: LookupResult<string>,
): Result {
  if (!isFullyQualified(name))
    return failure(
      name,
      `${key} is not a fully qualified domain name: many servers refuse mail from such a host.`,
      'hostname = "mail.example.com"',
    );
  if (found.kind === 'unknown') return unknown(name, `The name could not be looked up: ${found.reason}.`);
  const missing =
    found.kind === 'absent'
      ? sources
      : sources.filter((each) => !found.records.map(normalizeAddress).includes(each));
  const fix =
    missing.length === 0 ? undefined : zoneLines(missing.map((address) => addressRecord(name, address)));
  if (found.kind === 'absent')
    return failure(
      name,
      'The name has no address in DNS: receivers reject its EHLO, and bounces do not arrive.',
      fix ?? `${name}. ${FIX_TTL} IN A <the public address of this server>`,
    );
  if (missing.length > 0)
    return warning(
      name,
      `Mail is sent with this EHLO name from ${missing.join(', ')}, but the name resolves to ${found.records.join(', ')}.`,
      fix,
    );
  return ok(name, `Resolves to ${found.records.join(', ')}.`);
}

function addressRecord(name: string, address: string) {
  return { name, type: isIPv6(address) ? ('AAAA' as const) : ('A' as const), value: address, ttl: FIX_TTL };
}

/**
 * SPF of the platform's own name: its return path, and the EHLO identity (RFC 7208 §2.3). A record that does not pass is a
 * failure if mail of domains may use the platform's return path, else a warning. Unknown without a source address, for which
 * SPF could be evaluated.
 */
export async function examineSpf({ view, platform, sources: knownSources }: DoctorContext): Promise<Result> {
  const { hostname } = platform;
  const sources = await knownSources();
  if (sources.length === 0)
    return unknown(hostname, 'No source address is known for which SPF could be evaluated.');
  const subject = { domain: hostname, zone: hostname, include: spfHost(platform), helo: hostname };
  const egress = await egressSet(view, platform, null);
  const { verdict, hint, expected, found } = await checkSpf(view, { ...subject, egress });
  if (verdict === 'unknown') return unknown(hostname, hint);
  // The record itself may be right, and the one that it includes wrong.
  const fix =
    found === expected
      ? 'postrider zone'
      : zoneLines([{ name: hostname, type: 'TXT', value: expected, ttl: FIX_TTL }]);
  const isUsed = platform.returnPath !== 'customer';
  if (verdict === 'fail') return (isUsed ? failure : warning)(hostname, hint, fix);
  if (hint !== '') return warning(hostname, hint, fix);
  return ok(hostname, `Passes for ${sources.map(({ address }) => address).join(', ')}.`);
}

/** A URL that only this machine reaches is a failure, one without https a warning (RFC 8058 §3.1 requires https). */
export async function examinePublicUrl({ platform: { publicUrl: url } }: DoctorContext): Promise<Result> {
  if (isLocalUrl(url))
    return failure(
      url,
      'Only this machine reaches public.url: unsubscribe and tracking links lead nowhere.',
      '[public]\nurl = "https://track.<hostname>"',
    );
  if (url.startsWith('http:'))
    return warning(
      url,
      'One-click unsubscribe needs https (RFC 8058): marketing mail has no List-Unsubscribe-Post, which large receivers require.',
      `[public]\nurl = "${url.replace('http:', 'https:')}"`,
    );
  return ok(url, 'Links use https.');
}

/** PTR names whose addresses are looked up. */
const MAX_POINTERS = 5;

/**
 * Forward-confirmed reverse DNS (RFC 1912 §2.1): large receivers refuse mail from addresses without it. A failure if no PTR
 * name leads back to the address, a warning if there are several or the EHLO name is not among those that do. Unknown for a
 * private address or without an answer.
 */
export async function examineReverseDns({ view, sources }: DoctorContext): Promise<Result[]> {
  const known = await sources();
  return known.length === 0
    ? [unknown('delivery.egress', 'No source address is known.')]
    : Promise.all(known.map((source) => examinePointers(view, source)));
}

async function examinePointers(view: DnsView, { address, name }: SourceAddress): Promise<Result> {
  if (isLocalNetwork(address))
    return unknown(
      address,
      'A private address has no public reverse DNS.',
      'Set publicAddress in the entry of delivery.egress',
    );
  const pointer = zoneLines([{ name: reverseName(address), type: 'PTR', value: name, ttl: FIX_TTL }]);
  const pointers = await view.ptr(reverseName(address));
  if (pointers.kind === 'unknown')
    return unknown(address, `The PTR record could not be looked up: ${pointers.reason}.`);
  if (pointers.kind === 'absent')
    return failure(
      address,
      'The address has no PTR record: large receivers refuse its mail. Set it at the provider of the address.',
      pointer,
    );
  const forward = await Promise.all(
    pointers.records
      .slice(0, MAX_POINTERS)
      .map(async (each) => ({ name: each, found: await addressesOf(view, each) })),
  );
  const confirmed = forward.filter(({ found }) => includes(found, address)).map((each) => each.name);
  const names = pointers.records.join(', ');
  if (confirmed.length === 0) {
    if (forward.some(({ found }) => found.kind === 'unknown'))
      return unknown(address, `The address of ${names}, the name in its PTR record, could not be looked up.`);
    const [first = name] = pointers.records;
    const own = pointers.records.includes(name) ? name : null;
    return failure(
      address,
      `Its PTR record names ${names}, which does not lead back to ${address}: large receivers refuse its mail.`,
      own === null
        ? pointer
        : zoneLines([{ name: first, type: isIPv6(address) ? 'AAAA' : 'A', value: address, ttl: FIX_TTL }]),
    );
  }
  if (pointers.records.length > 1)
    return warning(
      address,
      `It has ${pointers.records.length} PTR records (${names}), and each receiver uses any of them. Remove all but one.`,
      pointer,
    );
  if (!confirmed.includes(name)) {
    const generic = isGeneric(names, address) ? ', which looks like the name of a dial-up line,' : '';
    return warning(
      address,
      `Its PTR record names ${names}${generic} but its mail is sent with the EHLO name ${name}. They should be the same.`,
      pointer,
    );
  }
  return ok(address, `The PTR record and the address of ${name} match.`);
}

function includes(found: LookupResult<string>, address: string): boolean {
  return found.kind === 'records' && found.records.map(normalizeAddress).includes(address);
}

/** Whether a provider generated the name from the address: filters treat such names as those of dial-up lines. */
function isGeneric(name: string, address: string): boolean {
  if (/\b(?:dyn|dynamic|dhcp|dialup|dsl|pool|client|customer)\b/.test(name)) return true;
  const bytes = address.split('.');
  return bytes.length === 4 && bytes.every((byte) => new RegExp(`(?:^|\\D)0*${byte}(?:\\D|$)`).test(name));
}
