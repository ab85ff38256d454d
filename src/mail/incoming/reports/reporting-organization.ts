import { domainOf } from '../../address.ts';
import { isAligned, organizationOf, type Signer } from '../signatures.ts';

/**
 * Whether a complaint comes from somebody who can know of it. A signature alone proves only who wrote the report, and
 * anybody can sign for a domain of their own; so the signer has to be the organization that received the
 * message: that of the recipient's domain, or that of the MX host which took the message (a domain whose mail
 * is hosted elsewhere). Operators of feedback loops that report for other receivers are named in
 * `mx.feedbackLoops`.
 *
 * A mailbox provider signs its users' mail with the same domain. From a domain in which people may have
 * mailboxes a report counts only under a role name, which providers do not hand out.
 */
export function isReportingOrganization(
  { from, organization }: Signer,
  receiver: {
    /** '' when it is not known any more. */
    recipientDomain: string;
    /** Host that the message was delivered to. */
    mxHost: string | null;
    feedbackLoops: readonly string[];
  },
): boolean {
  const { recipientDomain, mxHost, feedbackLoops } = receiver;
  const operators = [recipientDomain, mxHost ?? '', ...feedbackLoops].filter((domain) => domain !== '');
  if (!operators.some((domain) => isAligned(domain, organization))) return false;
  const domain = domainOf(from);
  const mayBePersonal = domain === organizationOf(domain) || domain === recipientDomain;
  return !mayBePersonal || ROLES.has(roleOf(from));
}

/** `Feedback-Loop` and `feedback.loop2` are one name. */
function roleOf(address: string): string {
  return address
    .slice(0, address.lastIndexOf('@'))
    .toLowerCase()
    .replaceAll(/[^a-z]/g, '');
}

/** RFC 2142 §2 and §4, and the names under which receivers send their reports. */
const ROLES: ReadonlySet<string> = new Set([
  'abuse',
  'abusereport',
  'abusereports',
  'arf',
  'arfreport',
  'arfreports',
  'cfbl',
  'complaint',
  'complaints',
  'donotreply',
  'fbl',
  'fblreport',
  'fblreports',
  'feedback',
  'feedbackloop',
  'jmrp',
  'mailerdaemon',
  'noreply',
  'postmaster',
  'report',
  'reports',
  'scomp',
  'spamreport',
  'spamreports',
  'staff',
]);
