import type { CheckColumn, DomainRow, Lane } from '../../store/domains/domains.ts';
import type { DnsRecord, RecordContext } from '../dns-record.ts';
import { checkBimi } from './checks/bimi.ts';
import type { CheckContext, CheckResult } from './checks/check.ts';
import { checkDkim, checkSecondaryDkim, dkimRecord, secondaryDkimRecord } from './checks/dkim.ts';
import { checkDmarc, dmarcRecord } from './checks/dmarc.ts';
import { checkMx, mxRecord } from './checks/mx.ts';
import {
  checkDomainSpf,
  checkReturnPathSpf,
  checkSecondarySpf,
  returnPathSpfRecord,
  spfRecord,
} from './checks/spf.ts';
import { checkTracking, trackingRecord } from './checks/tracking.ts';

/*
 * The DNS checks of a domain, in the order of a verification's report. Verification, status, the records to publish,
 * the API and the command line derive from this table. A new check is a function in checks/ and an entry here; a check
 * with a flag also needs a column (CHECK_COLUMNS in store/domains/domains.ts, and a migration).
 */

interface CheckBase {
  /** For people. */
  label: string;
  /** Whether the report of a verification lists the check. */
  isReported: boolean;
  /** The record that the check looks up, and its position among the required ones; 0: a recommended record. */
  record: { position: number; build: (context: RecordContext) => DnsRecord } | null;
  run: (context: CheckContext) => Promise<CheckResult>;
}

/** A check whose last result is a column, shown by the API. */
interface FlaggedCheck extends CheckBase {
  flag: { column: CheckColumn; field: string; lane: Lane };
  /** Whether a domain is verified only while the check passes. */
  isRequired: boolean;
}

/** A check whose last result derives from other columns. */
interface DerivedCheck extends CheckBase {
  flag: null;
  isRequired: false;
  passedBefore: (row: DomainRow) => boolean;
}

type Check = FlaggedCheck | DerivedCheck;

export const CHECKS = {
  dkim: {
    label: 'DKIM',
    isRequired: true,
    isReported: true,
    flag: { column: 'dkim_enabled', field: 'dkimEnabled', lane: 'primary' },
    record: { position: 1, build: dkimRecord },
    run: checkDkim,
  },
  spf: {
    label: 'SPF',
    isRequired: true,
    isReported: true,
    flag: { column: 'spf_configured', field: 'spfConfigured', lane: 'primary' },
    record: { position: 2, build: spfRecord },
    run: checkDomainSpf,
  },
  dmarc: {
    label: 'DMARC',
    isRequired: true,
    isReported: true,
    flag: { column: 'dmarc_configured', field: 'dmarcConfigured', lane: 'primary' },
    record: { position: 4, build: dmarcRecord },
    run: checkDmarc,
  },
  mx: {
    label: 'MX',
    isRequired: true,
    isReported: true,
    flag: { column: 'mx_configured', field: 'mxConfigured', lane: 'primary' },
    record: { position: 5, build: mxRecord },
    run: checkMx,
  },
  tracking: {
    label: 'Tracking',
    isRequired: false,
    isReported: true,
    flag: null,
    passedBefore: (row) => row.tracking_host !== null,
    record: { position: 3, build: trackingRecord },
    run: checkTracking,
  },
  altDkim: {
    label: 'Secondary DKIM',
    isRequired: false,
    isReported: true,
    flag: { column: 'alt_dkim_enabled', field: 'altDkimEnabled', lane: 'secondary' },
    record: { position: 6, build: secondaryDkimRecord },
    run: checkSecondaryDkim,
  },
  altSpf: {
    label: 'Secondary SPF',
    isRequired: false,
    isReported: false,
    flag: { column: 'alt_spf_configured', field: 'altSpfConfigured', lane: 'secondary' },
    record: null,
    run: checkSecondarySpf,
  },
  altDmarc: {
    label: 'Secondary DMARC',
    isRequired: false,
    isReported: false,
    flag: { column: 'alt_dmarc_configured', field: 'altDmarcConfigured', lane: 'secondary' },
    record: null,
    // One policy applies to both lanes.
    run: checkDmarc,
  },
  returnPathSpf: {
    label: 'Return path SPF',
    isRequired: false,
    isReported: true,
    flag: null,
    // The domain's own return path is used while its SPF passes.
    passedBefore: (row) => row.last_checked_at !== null && row.return_path === 'customer',
    record: { position: 0, build: returnPathSpfRecord },
    run: checkReturnPathSpf,
  },
  bimi: {
    label: 'BIMI',
    isRequired: false,
    isReported: true,
    flag: null,
    passedBefore: () => false,
    record: null,
    run: checkBimi,
  },
} as const satisfies Record<string, Check>;

type Checks = typeof CHECKS;
export type CheckName = keyof Checks;

type NamesWhere<T> = { [Name in CheckName]: Checks[Name] extends T ? Name : never }[CheckName];
export type ReportedCheck = NamesWhere<{ isReported: true }>;
export type RequiredCheck = NamesWhere<{ isRequired: true }>;

/** The columns that the checks write. */
export type FlagColumn = Extract<Checks[CheckName], FlaggedCheck>['flag']['column'];

type FieldOf<L extends Lane> = Extract<
  Checks[CheckName],
  { flag: { field: string; lane: L } }
>['flag']['field'];
/** Flags of the primary lane as API fields. */
export type DomainFlags = Record<FieldOf<'primary'>, boolean>;
/** Flags of the secondary lane as API fields. */
export type SecondaryFlags = Record<FieldOf<'secondary'>, boolean>;

/** The table without its literal types. */
const TABLE: Record<CheckName, Check> = CHECKS;
export const CHECK_NAMES = Object.keys(CHECKS) as CheckName[]; // the table has no other keys

/** The entry of CHECKS with the common type: for code that treats all checks alike. */
export function checkOf(name: CheckName): Check {
  return TABLE[name];
}

export const REPORTED_CHECKS = CHECK_NAMES.filter((name): name is ReportedCheck => TABLE[name].isReported);

export const REQUIRED_CHECKS: readonly { name: CheckName; column: CheckColumn }[] = CHECK_NAMES.flatMap(
  (name) => {
    const { isRequired, flag } = TABLE[name];
    return isRequired && flag !== null ? [{ name, column: flag.column }] : [];
  },
);

/** Whether a domain is verified only while the check passes. Narrows the type of the name. */
export function isRequiredCheck(name: CheckName): name is RequiredCheck {
  return TABLE[name].isRequired;
}

/** A value for each API field of a lane's flags. */
export function mapFlags<L extends Lane, T>(
  lane: L,
  value: (column: CheckColumn) => T,
): Record<FieldOf<L>, T> {
  const entries = CHECK_NAMES.flatMap((name) => {
    const { flag } = TABLE[name];
    return flag?.lane === lane ? [[flag.field, value(flag.column)]] : [];
  });
  return Object.fromEntries(entries) as Record<FieldOf<L>, T>; // the fields of the table
}

/** The builders of the required records, in their order. */
export function requiredRecordBuilders(): ((context: RecordContext) => DnsRecord)[] {
  return CHECK_NAMES.flatMap((name) => TABLE[name].record ?? [])
    .filter(({ position }) => position > 0)
    .toSorted((one, two) => one.position - two.position)
    .map(({ build }) => build);
}

export type CheckResults = Record<CheckName, CheckResult>;

/**
 * Runs all checks at the same time, with `context.view` for DNS. What DNS does not answer is the verdict `unknown`;
 * writes nothing. Rejects only with an internal error of a check.
 */
export async function runChecks(context: CheckContext): Promise<CheckResults> {
  const results = await Promise.all(
    CHECK_NAMES.map(async (name) => [name, await TABLE[name].run(context)] as const),
  );
  return Object.fromEntries(results) as CheckResults; // a result for each name
}
