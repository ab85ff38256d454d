import type { Config } from '../../config/schema.ts';
import { covers } from '../../config/shaping.ts';
import type { EgressHealthRow } from '../../store/egress/egress-standings.ts';
import { addressOf } from '../routing/egress.ts';
import type { AddressBlock } from './ticket.ts';

/** Where the operators of blocklists remove addresses, by a word that replies have. */
const BLOCKLISTS: readonly (readonly [RegExp, string])[] = [
  [/spamhaus|abuseat/i, 'https://check.spamhaus.org'],
  [/spamcop/i, 'https://www.spamcop.net/bl.shtml'],
  [/barracudacentral/i, 'https://www.barracudacentral.org/rbl/removal-request'],
  [/sorbs/i, 'http://www.sorbs.net/lookup.shtml'],
  [/uceprotect/i, 'https://www.uceprotect.net/en/rblcheck.php'],
  [/psbl/i, 'https://psbl.org'],
  [/mailspike/i, 'https://mailspike.io/ip_verify'],
  [/blocklist\.de/i, 'https://www.blocklist.de/en/delist.html'],
  [/cloudmark|\bcsi\b/i, 'https://csi.cloudmark.com/en/reset/'],
  [/proofpoint/i, 'https://ipcheck.proofpoint.com'],
  [/senderscore|validity/i, 'https://www.senderscore.org'],
];
/** The path begins with a letter, so that the addresses in a reply are no link. */
const LINK = /https?:\/\/[^\s<>"')\]]+/i;

/**
 * How to ask for the removal of a block, a sentence: at the blocklist that the reply names, as the shaping profile of the
 * receiver states, at the link in the reply, else by its postmaster. `receiver`: see `AddressBlock`.
 */
export function delistingOf({ delivery }: Pick<Config, 'delivery'>, receiver: string, reply: string): string {
  const list = BLOCKLISTS.find(([word]) => word.test(reply));
  if (list !== undefined) return `Request the removal at ${list[1]}.`;
  const [host = receiver] = receiver.split(',');
  const profile = delivery.shaping.find((one) => one.name === receiver || covers(one, host));
  if (profile !== undefined && profile.delisting !== '') return profile.delisting;
  const [link] = LINK.exec(reply) ?? [];
  if (link !== undefined) return `Follow ${withoutPunctuation(link)} in the reply.`;
  return `Ask the postmaster of ${host} to remove the block, and quote the reply.`;
}

/** The link without the punctuation marks of the sentence around it. */
function withoutPunctuation(link: string): string {
  let end = link.length;
  while ('.,;:'.includes(link.charAt(end - 1)) && end > 0) end--;
  return link.slice(0, end);
}

/** The block as events, explanations and the doctor present it. */
export function presentBlock(config: Pick<Config, 'delivery'>, row: EgressHealthRow): AddressBlock {
  const { entry, provider, since, probe_at: nextProbeAt, reply } = row;
  const setting = config.delivery.egress.find(({ name }) => name === entry);
  const { address, address6, publicAddress } = setting ?? {};
  return {
    address: addressOf({
      name: entry === '' ? null : entry,
      ...(address === undefined ? {} : { address }),
      ...(address6 === undefined ? {} : { address6 }),
      ...(publicAddress === undefined ? {} : { publicAddress }),
    }),
    receiver: provider,
    since,
    nextProbeAt,
    reply,
    delisting: delistingOf(config, provider, reply),
  };
}
