import type { DnsView } from '../../../dns/dns-view.ts';
import type { DkimKeyRow, DomainRow } from '../../../store/domains/domains.ts';
import type { FetchedFile } from '../../platform/brand-files.ts';
import type { HttpsProbe } from '../../platform/https-probe.ts';
import type { Platform } from '../../platform/platform.ts';

/** `unknown`: DNS gave no usable answer, so the last result remains. */
export type Verdict = 'pass' | 'fail' | 'unknown';

/** The result of one DNS check of one domain. The check itself changes nothing. */
export interface CheckResult {
  verdict: Verdict;
  /** The record that passes; where the name already has a record of the kind, merged with it. */
  expected: string;
  /** The published records, one per line; null: none. */
  found: string | null;
  /** What is wrong and how to correct it, for the person who edits the zone; '' when nothing needs to be done. */
  hint: string;
  /** The report does not contain the check: it does not apply to the domain. */
  isOmitted?: boolean;
  /** New values of columns that follow from the result. */
  changes?: Partial<Pick<DomainRow, 'tracking_host' | 'return_path'>>;
  /** The pending DKIM key whose record was found (its key_id). */
  promotedKey?: number;
}

/** A result before its expected record is known. */
export type Judgment = Pick<CheckResult, 'verdict' | 'found' | 'hint'>;

export interface CheckContext {
  /** Answers each query once, so that all checks of a verification see the same zone. */
  view: DnsView;
  platform: Platform;
  domain: DomainRow;
  keys: readonly DkimKeyRow[];
  /** Whether a host answers over HTTPS with a certificate that is valid for its name. */
  answersHttps: HttpsProbe;
  /** For the files that a BIMI record names, which are judged as of `now`; null: they are not fetched. */
  files: { fetch: (url: URL) => Promise<FetchedFile>; now: number } | null;
}

/** The parts of the context that a check uses. */
export interface CheckSubject<P extends keyof Platform, D extends keyof DomainRow> {
  view: DnsView;
  platform: Pick<Platform, P>;
  domain: Pick<DomainRow, D>;
}

/** The judgment that a check passes. `found`: the value in DNS; null: none. `hint`: what could be improved. */
export function pass(found: string | null, hint = ''): Judgment {
  return { verdict: 'pass', found, hint };
}

/** The judgment that a check fails. `found`: the value in DNS; null: none. `hint`: what to change. */
export function fail(found: string | null, hint: string): Judgment {
  return { verdict: 'fail', found, hint };
}

/** The judgment that a check has no result, because DNS gave no answer. `reason`: a clause. */
export function unknown(reason: string): Judgment {
  return {
    verdict: 'unknown',
    found: null,
    hint: `No result at present: ${reason}. The last result is kept, and the check is repeated soon.`,
  };
}

/** "a", "a and b", "a, b and c". */
export function listed(items: readonly string[]): string {
  return items.length < 2 ? (items[0] ?? '') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;
}
