import type { DomainRow, DomainStatus } from '../../store/domains/domains.ts';
import { listed } from './checks/check.ts';
import type { Check } from './outcome.ts';

/** What is said to a person about a domain, over HTTP and on the command line. */
const LABELS: Partial<Record<Check['check'], string>> = {
  dkim: 'DKIM',
  spf: 'SPF',
  dmarc: 'DMARC',
  mx: 'MX',
};

const SENTENCES: Record<DomainStatus, (name: string, trouble: string) => string> = {
  PENDING: (name, trouble) => `The verification of ${name} is still pending: ${trouble} yet.`,
  SUCCESS: (name) => `${name} is verified: mail may be sent from it.`,
  TEMPORARY_FAILURE: (name, trouble) =>
    `${name} was verified, but ${trouble} any more. Mail is still sent; after 72 hours of this it stops.`,
  FAILED: (name, trouble) =>
    `${name} has failed: ${trouble}, and no mail is sent from it. It may send again as soon as all checks pass.`,
};

/** The result of a verification in a sentence or two. */
export function verificationMessage(domain: DomainRow, checks: readonly Check[]): string {
  const failing = checks.flatMap(({ check, passed }) => (passed ? [] : (LABELS[check] ?? [])));
  const trouble = `${listed(failing)} ${failing.length === 1 ? 'does' : 'do'} not pass`;
  return SENTENCES[domain.status](domain.name, trouble);
}
