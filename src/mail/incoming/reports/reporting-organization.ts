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

/**
 * Whether the author of a DMARC or TLS report is the organization that the report names: by its name, if that is a domain,
 * else by the domain of its contact address. As above, a domain that may have user mailboxes counts only under a role name.
 */
export function isFromNamedOrganization(
  { from, organization }: AuthenticatedAuthor,
  report: { organization: string; contact: string },
): boolean {
  const name = report.organization.trim().toLowerCase();
  const named = DOMAIN.test(name) ? name : domainOf(report.contact.trim().toLowerCase());
  const owner = organizationalDomain(named);
  if (owner !== organization && SIGNERS[owner] !== organization) return false;
  const domain = domainOf(from);
  return domain !== organizationalDomain(domain) || wordsOf(from).every((word) => REPORT_WORDS.has(word));
}

const DOMAIN = /^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,10}$/;

/** Organizations whose reports name one of their domains and are signed by another. */
const SIGNERS: Readonly<Record<string, string | undefined>> = {
  'outlook.com': 'microsoft.com',
  'yahooinc.com': 'yahoo.com',
};

/** The words of a local part: `noreply-dmarc-support`, `dmarc_reports`. */
function wordsOf(address: string): string[] {
  return address
    .slice(0, address.lastIndexOf('@'))
    .toLowerCase()
    .split(/[-_.+]/);
}

const REPORT_WORDS: ReadonlySet<string> = new Set([
  'abuse',
  'aggregate',
  'daemon',
  'dmarc',
  'dmarcreport',
  'dmarcreports',
  'do',
  'donotreply',
  'help',
  'mailer',
  'no',
  'not',
  'noreply',
  'postmaster',
  'reply',
  'report',
  'reporting',
  'reports',
  'rpt',
  'rua',
  'smtp',
  'support',
  'tls',
  'tlsreport',
  'tlsreports',
  'tlsrpt',
]);

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
