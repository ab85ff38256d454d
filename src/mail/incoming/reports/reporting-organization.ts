import { domainOf, organizationalDomain } from '../../address.ts';
import { type AuthenticatedAuthor, isAligned } from '../signatures.ts';

/**
 * Whether the author of a complaint can know about it. A signature alone proves only who wrote the report, and anyone
 * can sign for their own domain; so the author must be the organization that received the message: that of the
 * recipient's domain, or that of the MX host which accepted the message (for a domain with hosted mail). Operators of
 * feedback loops that report for other receivers are configured in `mx.feedbackLoops`.
 *
 * A mailbox provider signs its users' mail with the same domain. A report from a domain that may have user mailboxes
 * counts only under a role name, which providers do not assign to users.
 */
export function isReportingOrganization(
  { from, organization }: AuthenticatedAuthor,
  receiver: {
    /** '' when it is no longer known. */
    recipientDomain: string;
    /** The host that accepted the message. */
    mxHost: string | null;
    feedbackLoops: readonly string[];
  },
): boolean {
  const { recipientDomain, mxHost, feedbackLoops } = receiver;
  const operators = [recipientDomain, mxHost ?? '', ...feedbackLoops].filter((domain) => domain !== '');
  if (!operators.some((domain) => isAligned(domain, organization))) return false;
  const domain = domainOf(from);
  const mayBePersonal = domain === organizationalDomain(domain) || domain === recipientDomain;
  return !mayBePersonal || ROLES.has(roleOf(from));
}

/** `Feedback-Loop` and `feedback.loop2` are the same role. */
function roleOf(address: string): string {
  return address
    .slice(0, address.lastIndexOf('@'))
    .toLowerCase()
    .replaceAll(/[^a-z]/g, '');
}

/** RFC 2142 §2 and §4, and the local parts from which receivers send their reports. */
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
