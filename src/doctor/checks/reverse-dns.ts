import { isIPv6 } from 'node:net';
import { normalizeAddress } from '../../dns/address-kinds.ts';
import { addressesOf, type DnsView, type LookupResult } from '../../dns/dns-view.ts';
import { reverseName } from '../../dns/names.ts';
import type { SourceAddress } from '../../domains/platform/egress-addresses.ts';
import { isLocalNetwork } from '../../domains/platform/host-checks.ts';
import type { DoctorContext } from '../context.ts';
import { FIX_TTL, failure, ok, type Result, unknown, warning, zoneLines } from '../finding.ts';

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
