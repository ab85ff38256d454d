import { iso } from '../core/clock.ts';
import type { CountedDomainGroup } from '../store/domains/domain-groups.ts';
import type { DomainRow, DomainStatus, UseCase } from '../store/domains/domains.ts';
import { useCaseLabel } from './use-cases.ts';

/** Domains and groups as callers see them (interface.md: Domain; contract §4), over HTTP and on the command line. */
export interface ShownFlags {
  dkimEnabled: boolean;
  spfConfigured: boolean;
  dmarcConfigured: boolean;
  mxConfigured: boolean;
}

export interface ShownAltFlags {
  altDkimEnabled: boolean;
  altSpfConfigured: boolean;
  altDmarcConfigured: boolean;
}

export interface ShownDomain extends ShownFlags {
  domain: string;
  domainId: string;
  groupId: string;
  status: DomainStatus;
  useCase: UseCase;
  useCaseLabel: string;
  createdAt: string;
  updatedAt: string;
  trackingDomain: string | null;
  lastCheckedAt: string | null;
}

export interface ShownGroup {
  groupId: string;
  name: string;
  description: string | null;
  color: string | null;
  icon: string | null;
  ownerId: string;
  isDefault: boolean;
  domainCount: number;
  createdAt: string;
  updatedAt: string;
}

export function shownFlags(row: DomainRow): ShownFlags {
  return {
    dkimEnabled: row.dkim_enabled === 1,
    spfConfigured: row.spf_configured === 1,
    dmarcConfigured: row.dmarc_configured === 1,
    mxConfigured: row.mx_configured === 1,
  };
}

export function shownAltFlags(row: DomainRow): ShownAltFlags {
  return {
    altDkimEnabled: row.alt_dkim_enabled === 1,
    altSpfConfigured: row.alt_spf_configured === 1,
    altDmarcConfigured: row.alt_dmarc_configured === 1,
  };
}

export function shownDomain(row: DomainRow): ShownDomain {
  return {
    domain: row.name,
    domainId: row.domain_id,
    groupId: row.group_id,
    status: row.status,
    ...shownFlags(row),
    useCase: row.use_case,
    useCaseLabel: useCaseLabel(row.use_case),
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
    trackingDomain: row.tracking_domain,
    lastCheckedAt: row.last_checked_at === null ? null : iso(row.last_checked_at),
  };
}

export function shownGroup(row: CountedDomainGroup): ShownGroup {
  return {
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
  };
}
