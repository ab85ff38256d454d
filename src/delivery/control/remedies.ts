import type { BounceClass } from '../../mail/classify/classify.ts';

/** What a reply means for the operator, and what to do about it: a sentence or two for each bounce class. */
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
  'policy-block':
    'A policy of the destination rejects the mail. Follow the link or the contact in the reply; its postmaster can remove the block.',
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
