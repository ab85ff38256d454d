import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, SECOND } from '../../core/clock.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { HygieneKind } from '../../store/contacts/hygiene.ts';
import {
  disposableDomains,
  isDisposable,
  isRole,
  knownTypo,
  likelyTypo,
  mailboxOf,
  partsOf,
  syntaxFault,
} from './addresses.ts';
import { createMailService, type MailService } from './mail-service.ts';

export interface HygieneFinding {
  kind: HygieneKind;
  /** The fault of the syntax, why the domain has no mail service, or the provider that a typo stands for. */
  detail: string | null;
  /** Of a duplicate: the first address of the mailbox, as `examine` was given it. */
  of: number | null;
}

/** An address in a run. `id`: of the caller, such as the line of a file or the number of a contact. */
export interface ExaminedAddress {
  id: number;
  email: string;
}

export interface ExaminedBatch {
  /** The findings of each address, in the order of the addresses. */
  findings: HygieneFinding[][];
  /** Addresses whose domain could not be looked up in time. */
  unchecked: number;
}

/** Domains that a run looks up at a time; the resolver shares its concurrent queries among the accounts. */
const CONCURRENT_LOOKUPS = 16;
/** A run looks up no further domain after so many. */
const MAX_LOOKUPS = 50_000;
/** How long a batch waits for look-ups; domains without an answer are unchecked. */
const BATCH_WAIT_MS = 5 * SECOND;
/** Mailboxes that a run remembers, about 60 bytes each; duplicates of further ones are not found. */
const MAX_MAILBOXES = 200_000;

/** `monotonic`: for the cache of the domains, which all runs share. */
export function createAddressChecks({
  resolver,
  monotonic,
}: {
  resolver: Pick<Resolver, 'mx' | 'a' | 'aaaa'>;
  monotonic: Clock;
}) {
  const services = createMailService(resolver, monotonic);

  /** Looks up the domains of a batch, within the limits; those without an answer in time are absent. */
  async function servicesOf(
    domains: ReadonlySet<string>,
    accountId: string,
    budget: RunBudget,
  ): Promise<Map<string, MailService>> {
    const found = new Map<string, MailService>();
    const unknown: string[] = [];
    for (const domain of domains) {
      const cached = services.cached(domain);
      if (cached !== null) found.set(domain, cached);
      else if (budget.lookups-- > 0) unknown.push(domain);
    }
    if (unknown.length === 0 || budget.waitMs <= 0) return found;
    const worker = async () => {
      for (let domain = unknown.pop(); domain !== undefined; domain = unknown.pop())
        found.set(domain, await services.of(domain, accountId));
    };
    const workers = Array.from({ length: Math.min(CONCURRENT_LOOKUPS, unknown.length) }, worker);
    const timer = new AbortController();
    const began = performance.now();
    const waitMs = Math.min(BATCH_WAIT_MS, budget.waitMs);
    const wait = sleep(waitMs, 'over', { signal: timer.signal }).catch(() => null);
    const ended = await Promise.race([Promise.all(workers), wait]);
    // Workers end after their current look-up.
    unknown.length = 0;
    timer.abort();
    // A timer may end a little before its time.
    budget.waitMs -= ended === 'over' ? waitMs : performance.now() - began;
    return new Map(found);
  }

  return {
    /** Begins to examine the addresses of an account. `waitMs`: how long all batches together wait for DNS; default: any time. */
    begin: (accountId: string, { waitMs = Number.POSITIVE_INFINITY }: { waitMs?: number } = {}) => {
      const budget: RunBudget = { lookups: MAX_LOOKUPS, waitMs };
      /** The first address of each mailbox of a provider with rules. */
      const mailboxes = new Map<string, number>();

      function duplicateOf(mailbox: string, id: number): number | null {
        const first = mailboxes.get(mailbox);
        if (first !== undefined) return first === id ? null : first;
        if (mailboxes.size < MAX_MAILBOXES) mailboxes.set(mailbox, id);
        return null;
      }

      return {
        examine: async (addresses: readonly ExaminedAddress[]): Promise<ExaminedBatch> => {
          const disposable = await disposableDomains();
          const parts = addresses.map(({ email }) => partsOf(email));
          const known = await servicesOf(new Set(parts.map(({ domain }) => domain)), accountId, budget);
          let unchecked = 0;
          const findings = addresses.map(({ id, email }, n) => {
            const part = parts[n];
            const found: HygieneFinding[] = [];
            const add = (kind: HygieneKind, detail: string | null = null, of: number | null = null) =>
              found.push({ kind, detail, of });
            const fault = syntaxFault(email);
            if (part === undefined || fault !== null) {
              add('syntax', fault);
              return found;
            }
            const service = known.get(part.domain) ?? 'unknown';
            const isWithout = service !== 'exists' && service !== 'unknown';
            if (service === 'unknown') unchecked++;
            if (isWithout) add('no_mail_service', service);
            const typo = knownTypo(part.domain) ?? (isWithout ? likelyTypo(part.domain) : null);
            // Owners of mistyped domains are in the list of disposable ones.
            if (typo === null && isDisposable(part.domain, disposable)) add('disposable');
            if (typo !== null) add('typo', typo);
            if (isRole(part)) add('role');
            const mailbox = mailboxOf(part);
            const first = mailbox === null ? null : duplicateOf(mailbox, id);
            if (first !== null) add('duplicate', null, first);
            return found;
          });
          return { findings, unchecked };
        },
      };
    },
  };
}

/** What is left of the limits of a run. */
interface RunBudget {
  lookups: number;
  waitMs: number;
}

export type AddressChecks = ReturnType<typeof createAddressChecks>;
export type AddressRun = ReturnType<AddressChecks['begin']>;

/** Counts of a run. */
export type HygieneCounts = Record<HygieneKind, number> & {
  /** Addresses that were examined. */
  examined: number;
  /** Of them, those whose domain could not be looked up. */
  unchecked: number;
};

export const NO_HYGIENE: HygieneCounts = {
  examined: 0,
  unchecked: 0,
  syntax: 0,
  no_mail_service: 0,
  disposable: 0,
  typo: 0,
  role: 0,
  duplicate: 0,
};

/** Adds a batch to the counts of a run. */
export function withBatch(counts: HygieneCounts, { findings, unchecked }: ExaminedBatch): HygieneCounts {
  const total = {
    ...counts,
    examined: counts.examined + findings.length,
    unchecked: counts.unchecked + unchecked,
  };
  for (const { kind } of findings.flat()) total[kind]++;
  return total;
}
