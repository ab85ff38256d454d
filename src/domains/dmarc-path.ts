import type { DmarcReportHistory } from '../store/domains/dmarc-reports.ts';
import { type DnsRecord, txtRecord } from './dns-record.ts';
import { dmarcProgress, raiseAt } from './reports.ts';
import type { DmarcSubject } from './verification/checks/dmarc.ts';
import { type Discovery, mergedDmarc, type Policy } from './verification/checks/dmarc-record.ts';

/** The way to a strict DMARC policy: p=none, which only requests reports, then p=quarantine, then p=reject. */
export interface DmarcPath {
  /** The policy that applies to the domain; null: none, or not known. */
  policy: Policy | null;
  /** The record with it, as published. */
  published: string | null;
  /** The name that has the record: of the domain, or of a domain above it. */
  publishedAt: string | null;
  /** Why the policy is not known, a phrase; null when it is. */
  unknown: string | null;
  /** What the reports say about the next step, in a sentence. */
  message: string;
  /** Null: the policy is p=reject, or not known. */
  next: DmarcStep | null;
}

/** A stricter policy, and the record that has it. */
export interface DmarcStep {
  policy: Policy;
  record: DnsRecord;
  /** Whether the reports permit the step now. */
  isReady: boolean;
  /** When they do if no more unauthenticated mail is reported, epoch ms; null: not known before the first report. */
  readyAt: number | null;
}

const STRICTER: Record<Policy, Policy | null> = { none: 'quarantine', quarantine: 'reject', reject: null };

/** `history`: of the reports about the domain. */
export function dmarcPath(
  { domain, reportTo, policy: requirement }: DmarcSubject,
  { found, own, unknown }: Discovery,
  history: DmarcReportHistory,
  now: number,
): DmarcPath {
  const policy = unknown === null ? (found?.policy ?? null) : null;
  const state = {
    policy,
    published: found?.record.text ?? (own.length === 0 ? null : own.join('\n')),
    publishedAt: found === null ? (own.length === 0 ? null : `_dmarc.${domain}`) : `_dmarc.${found.at}`,
    unknown,
    message: dmarcProgress(history, now, policy === 'reject'),
  };
  // The first record needs no reports. Where p=none does not suffice to send, the path begins with p=quarantine.
  const next = policy === null ? (requirement === 'any' ? 'none' : 'quarantine') : STRICTER[policy];
  if (unknown !== null || next === null) return { ...state, next: null };
  const readyAt = policy === null ? now : raiseAt(history, now);
  return {
    ...state,
    next: {
      policy: next,
      record: txtRecord({
        name: `_dmarc.${domain}`,
        value: mergedDmarc(own, reportTo, next),
        description: EFFECTS[next],
        purpose: 'DMARC',
      }),
      isReady: readyAt !== null && readyAt <= now,
      readyAt,
    },
  };
}

const EFFECTS: Record<Policy, string> = {
  none: 'Receivers send reports and treat mail as before.',
  quarantine: 'Receivers deliver mail in your name that is not authenticated to the spam folder.',
  reject: 'Receivers reject mail in your name that is not authenticated.',
};
