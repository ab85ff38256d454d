import { iso, isoOrNull } from '../core/clock.ts';
import { withoutNulls } from '../core/without-nulls.ts';
import type { CountedDomainGroup } from '../store/domains/domain-groups.ts';
import type {
  DkimKeyRow,
  DkimKeyState,
  DomainRow,
  DomainStatus,
  Lane,
  Stream,
} from '../store/domains/domains.ts';
import { SLOTS } from './key-slots.ts';
import { useCaseLabel } from './use-cases.ts';
import { listed } from './verification/checks/check.ts';
import {
  CHECKS,
  type DomainFlags,
  isRequiredCheck,
  mapFlags,
  type RequiredCheck,
  type SecondaryFlags,
} from './verification/checks.ts';
import type { CheckReport } from './verification/status.ts';

/* Domains and domain groups as the API and the command line return them. */

/** A domain as the API returns it. */
export interface Domain extends DomainFlags {
  domain: string;
  domainId: string;
  groupId: string;
  status: DomainStatus;
  useCase: Stream;
  useCaseLabel: string;
  createdAt: string;
  updatedAt: string;
  trackingDomain: string | null;
  enableOpenTracking: boolean;
  enableClickTracking: boolean;
  lastCheckedAt: string | null;
}

export interface DomainGroup {
  groupId: string;
  name: string;
  description?: string;
  color?: string;
  icon?: string;
  ownerId: string;
  isDefault: boolean;
  domainCount: number;
  createdAt: string;
  updatedAt: string;
}

/** A DKIM key of a domain. */
export interface PresentedKey {
  selector: string;
  lane: Lane;
  algorithm: 'rsa' | 'ed25519';
  /** active: signs. pending: not found in DNS yet. retiring, revoked: signed before. */
  state: DkimKeyState;
  since: string;
  /** Whose zone has the record. */
  publishedBy: 'owner' | 'platform';
}

/**
 * In the order of `rows`. `since`: when the key entered its state. Keys without a slot are RSA keys in the owner's
 * zone.
 */
export function presentKeys(rows: readonly DkimKeyRow[]): PresentedKey[] {
  return rows.map(({ selector, lane, slot, state, changed_at: since }) => ({
    selector,
    lane,
    algorithm: slot === null ? 'rsa' : SLOTS[slot].algorithm,
    state,
    since: iso(since),
    publishedBy: slot === null ? 'owner' : 'platform',
  }));
}

/** Whether each check of the primary lane passed last, by the field of the API. */
export function presentFlags(row: DomainRow): DomainFlags {
  return mapFlags('primary', (column) => row[column] === 1);
}

/** Whether each check of the secondary lane passed last, by the field of the API. */
export function presentSecondaryFlags(row: DomainRow): SecondaryFlags {
  return mapFlags('secondary', (column) => row[column] === 1);
}

/** What sends from the domain track that do not state it. */
export function presentTracking(row: Pick<DomainRow, 'track_opens' | 'track_clicks'>) {
  return { enableOpenTracking: row.track_opens === 1, enableClickTracking: row.track_clicks === 1 };
}

/**
 * Without the account and the flags of the secondary lane. `lastCheckedAt` null: not checked yet; `trackingDomain`
 * null: the default host.
 */
export function presentDomain(row: DomainRow): Domain {
  return {
    domain: row.name,
    domainId: row.domain_id,
    groupId: row.group_id,
    status: row.status,
    ...presentFlags(row),
    useCase: row.use_case,
    useCaseLabel: useCaseLabel(row.use_case),
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
    trackingDomain: row.tracking_domain,
    ...presentTracking(row),
    lastCheckedAt: isoOrNull(row.last_checked_at),
  };
}

/** `ownerId`: the account. `domainCount`: the number of its domains when the row was read. */
export function presentDomainGroup(row: CountedDomainGroup): DomainGroup {
  return withoutNulls({
    groupId: row.group_id,
    name: row.name,
    description: row.description,
    color: row.color,
    icon: row.icon,
    ownerId: row.account_id,
    isDefault: row.is_default === 1,
    domainCount: row.domain_count,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  });
}

const MESSAGES: Record<DomainStatus, (name: string, problem: string) => string> = {
  PENDING: (name, problem) => `The verification of ${name} is still pending: ${problem} yet.`,
  SUCCESS: (name) => `${name} is verified: mail may be sent from it.`,
  TEMPORARY_FAILURE: (name, problem) =>
    `${name} was verified, but ${problem} anymore. Mail is still sent; it stops after 72 hours of failures.`,
  FAILED: (name, problem) =>
    `${name} has failed: ${problem}, and no mail is sent from it. It may send again as soon as all checks pass.`,
};

/** The result of a verification in a sentence or two. */
export function verificationMessage(domain: DomainRow, checks: readonly CheckReport[]): string {
  const failed = failingRequired(checks);
  const failing = failed.map(({ check }) => CHECKS[check].label);
  if (failed.length > 0 && failed.every(({ result }) => result === 'unknown'))
    return `${domain.name} could not be verified: DNS did not answer for ${listed(failing)}. The previous results are kept.`;
  const problem = `${listed(failing)} ${failing.length === 1 ? 'does' : 'do'} not pass`;
  return MESSAGES[domain.status](domain.name, problem);
}

/** The required checks that do not pass. */
export function failingRequired(
  checks: readonly CheckReport[],
): (Pick<CheckReport, 'hint' | 'result'> & { check: RequiredCheck })[] {
  return checks.flatMap(({ check, passed, hint, result }) =>
    !passed && isRequiredCheck(check) ? [{ check, hint, result }] : [],
  );
}
