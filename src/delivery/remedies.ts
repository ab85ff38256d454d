import type { BounceClass } from '../mail/classify/classify.ts';
import type { SmtpReply } from '../mail/reply.ts';

/** A sentence or two for each bounce class. */
export const REMEDIES: Readonly<Record<BounceClass, string>> = {
  'invalid-recipient': 'The address does not exist. Remove it from the list that it comes from.',
  'invalid-domain': 'The domain accepts no mail. Correct or remove the addresses with this domain.',
  'inactive-mailbox':
    'The mailbox does not accept mail now. A deferred message is retried; repeated bounces suppress the address.',
  'mailbox-full': 'The mailbox is full. Nothing to do: the message is retried until it expires.',
  'message-too-large':
    'The message exceeds the limit of the destination. Send a link instead of the attachment.',
  'content-rejected':
    'The destination rejects the content. Correct what the reply names; another route does not help.',
  'spam-block':
    'The destination classifies the content as spam. Find out which message it is and pause its campaign.',
  'policy-block': 'A policy of the destination rejects the mail; its postmaster can remove the block.',
  'authentication-failed':
    'SPF, DKIM or DMARC does not pass. Run "postrider domain verify DOMAIN" and publish what it names.',
  'reputation-block':
    'The source address is listed or has a bad reputation. "postrider doctor" names the lists: request the removal there, find the cause, and reroute or pause meanwhile.',
  'rate-limited':
    'The destination limits the rate at which it accepts mail. Delivery slows down by itself; lower "connections" of its shaping profile if this repeats for hours.',
  greylisted: 'The destination greylists unknown senders. Nothing to do: the next attempt usually succeeds.',
  'network-error':
    'The mail hosts do not answer or close the connection. If this concerns several destinations, check port 25 and the network with "postrider doctor"; otherwise the cause is on their side.',
  'tls-failed':
    'The required encryption could not be established. The destination has to correct its certificate or policy; check "tls" of the shaping profile or route.',
  'relay-denied':
    'The host does not accept mail for this domain: its MX records are wrong, or the route or reroute is.',
  'protocol-error':
    'A server rejected an SMTP command or its syntax. Send the reply and the session in "postrider message show" to the postmaster of the destination.',
  'server-error': 'The destination has a temporary fault. Nothing to do: the message is retried.',
  expired: 'The message could not be delivered within its lifetime. See the earlier attempts for the cause.',
  'routing-loop':
    'The MX records of the destination lead back to this server. Check the MX records and "hostname".',
  unclassified: 'No rule matches the reply. Read its text; it usually names the cause or a contact.',
};

/** What to do about a failure on this side, by the conclusion of the attempt. */
const LOCAL_REMEDIES: Readonly<Record<string, string>> = {
  'dns-trouble':
    'The domain could not be looked up in DNS: its name servers or our resolver failed. If other domains fail as well, run "postrider doctor" to check the resolver; otherwise nothing to do: the message is retried.',
  'ipv6-only':
    'The mail hosts of the domain have IPv6 addresses only. Give an entry of delivery.egress an "address6" (with reverse DNS and in SPF), or the domain a next hop in delivery.routes.',
  'no-mail-service':
    'The domain has neither an MX record nor an address. The message bounces if an attempt on another day finds the same: correct or remove the address.',
  'no-mail-host':
    'None of the MX hosts of the domain has an address: its owner has to correct its DNS records.',
  'private-network':
    'The mail host of the domain has a private address here. If the resolver answers for an internal network, correct "dns.resolvers"; to deliver there, set delivery.allowPrivateNetworks.',
  'egress-failed':
    'The source address cannot be used on this machine. Run "postrider doctor": it checks the addresses and proxies of delivery.egress.',
  'rejected-by-operator':
    'The operator rejects the mail to this destination; "postrider queue resume" ends it.',
  unanswered:
    'The connection was lost after the message was sent, and the destination may have it: the next attempt can deliver it twice. If this repeats, a firewall or an MTU on the path interrupts large messages.',
  'worker-lost':
    'A delivery worker ended during the session: see the log. The message may have been delivered, and is sent again.',
};

/** Errors of connections whose cause is this machine, by words of the error. */
const LOCAL_ERRORS: readonly (readonly [string, string])[] = [
  [
    'own firewall',
    'The firewall of this machine blocks the connection. Permit outbound connections to port 25.',
  ],
  [
    'too many open files',
    'Raise the limit of open files (LimitNOFILE of the unit) or lower delivery.connections.',
  ],
  [
    'network unreachable',
    'This machine has no route to the address. Check its network; without IPv6 leave out "address6" in delivery.egress.',
  ],
  ['local address', LOCAL_REMEDIES['egress-failed'] ?? ''],
  ['has only IPv6 addresses, and the source', LOCAL_REMEDIES['ipv6-only'] ?? ''],
  [
    'has only IPv4 addresses, and the source',
    'The mail host has IPv4 addresses only. Give an entry of the pool an IPv4 "address".',
  ],
];

/** What to do about a failure on this side; null: it is none. `error`: of the deciding session. */
export function localRemedy(conclusion: string, error: string | null = null): string | null {
  const byError = LOCAL_ERRORS.find(([words]) => error?.includes(words))?.[1];
  return byError ?? LOCAL_REMEDIES[conclusion] ?? null;
}

const NAMES = /\bptr\b|reverse|rdns|fcrdns|iprev|helo\b|ehlo\b|hostname/i;
const LINK = /https?:\/\//i;
const CONTACT = /@|contact/i;

/** What a reply means for the operator, and what to do about it. */
export function replyRemedy(
  bounceClass: BounceClass,
  reply: Pick<SmtpReply, 'enhanced' | 'text'> | null,
): string {
  const { enhanced = null, text = '' } = reply ?? {};
  if (bounceClass === 'reputation-block' && (enhanced?.endsWith('.7.25') === true || NAMES.test(text)))
    return 'The source address has no reverse DNS name that leads back to it, or the EHLO name does not match. "postrider doctor" names the record: the provider of the address sets it.';
  if (bounceClass === 'policy-block') {
    if (LINK.test(text)) return `${REMEDIES[bounceClass]} Follow the link in the reply.`;
    return `${REMEDIES[bounceClass]} ${CONTACT.test(text) ? 'Write to the contact in the reply' : 'Write to the postmaster of the destination'}, and quote the reply.`;
  }
  if (bounceClass === 'tls-failed') {
    const policy = policyOf(text);
    if (policy !== null)
      return `${policy} does not permit this connection, so that the message waits. Its owner has to correct the policy or the certificate; mail is not sent without what it requires.`;
  }
  return REMEDIES[bounceClass];
}

/** The published policy that a reply of this side names, to begin a sentence; null: none. */
export function policyOf(text: string): string | null {
  const sts = /MTA-STS policy of ([^\s,)]+)/.exec(text)?.[1];
  if (sts !== undefined) return `The MTA-STS policy of ${sts}`;
  const tlsa = /TLSA records of ([^\s,):]+)/.exec(text)?.[1];
  return tlsa === undefined ? null : `DANE (the TLSA records of ${tlsa})`;
}
