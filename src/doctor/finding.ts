import { toZoneFile } from '../dns/zone-file.ts';
import type { ZoneRecord } from '../dns/zone-record.ts';

/** unknown: the state could not be determined, such as when DNS does not answer. */
export type FindingStatus = 'ok' | 'warning' | 'failure' | 'unknown';

/** Worst first. */
export const FINDING_STATUSES: readonly FindingStatus[] = ['failure', 'warning', 'unknown', 'ok'];

/** A result of a check for one subject. */
export interface Finding {
  /** Id of the check. */
  check: string;
  /** An address, a DNS name, a file or a setting. */
  subject: string;
  status: FindingStatus;
  /** A sentence. */
  reason: string;
  /** The command, the setting (TOML) or the DNS records (zone file lines) that repair it. */
  fix?: string;
}

/** A finding before the runner adds the id of its check. */
export type Result = Omit<Finding, 'check'>;

/** A result without a problem and without a fix. `reason`: a sentence, as for the others. */
export function ok(subject: string, reason: string): Result {
  return { subject, status: 'ok', reason };
}

/**
 * A problem that does not stop the service, or does not yet. `fix`: see `Finding`; it is omitted from the result when
 * undefined.
 */
export function warning(subject: string, reason: string, fix?: string): Result {
  return result(subject, 'warning', reason, fix);
}

/** A problem because of which mail or a part of the service does not work, or data may be lost. */
export function failure(subject: string, reason: string, fix?: string): Result {
  return result(subject, 'failure', reason, fix);
}

/** The state could not be determined; `reason` states why. It proves no problem. */
export function unknown(subject: string, reason: string, fix?: string): Result {
  return result(subject, 'unknown', reason, fix);
}

function result(subject: string, status: FindingStatus, reason: string, fix: string | undefined): Result {
  return { subject, status, reason, ...(fix === undefined ? {} : { fix }) };
}

/** Records as lines of a zone file. */
export function zoneLines(records: readonly ZoneRecord[]): string {
  return toZoneFile(records).trimEnd().replaceAll('\t', ' ');
}

/** The fix of checks that need the permissions of the daemon's user. */
export const AS_DAEMON =
  'Run doctor as the user of the daemon (with the package also as root), who must own the data directory';

/** TTL of the records in fixes, in seconds. */
export const FIX_TTL = 3600;

/** Untrusted text (a greeting, a TXT record) for quoting: without control characters, at most `max` characters. */
export function quoted(text: string, max = 200): string {
  const clean = text.replaceAll(/\p{Cc}+/gu, ' ').trim();
  return clean.length > max ? `${clean.slice(0, max).toWellFormed()}…` : clean;
}
