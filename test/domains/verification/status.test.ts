import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../../src/core/clock.ts';
import {
  FAILURE_GRACE_MS,
  nextCheckAt,
  type Round,
  roundOf,
} from '../../../src/domains/verification/status.ts';
import type { DomainRow } from '../../../src/store/domains/domains.ts';

const NOW = Date.UTC(2026, 0, 15);

function domain(columns: Partial<DomainRow>): DomainRow {
  return {
    status: 'PENDING',
    dkim_enabled: 1,
    spf_configured: 1,
    dmarc_configured: 1,
    mx_configured: 1,
    alt_status: 'ACTIVE',
    check_count: 0,
    failing_since: null,
    created_at: NOW,
    ...columns,
  } as DomainRow; // the columns that these functions read
}

describe('a round of checks', () => {
  it.each<[string, Partial<DomainRow>, boolean, Round]>([
    ['all four pass', {}, true, 'passing'],
    ['one fails', { mx_configured: 0 }, true, 'failing'],
    [
      'failing for the grace period',
      { mx_configured: 0, failing_since: NOW - FAILURE_GRACE_MS },
      true,
      'overdue',
    ],
    [
      'failing for less than the grace period',
      { mx_configured: 0, failing_since: NOW - FAILURE_GRACE_MS + 1 },
      true,
      'failing',
    ],
    [
      'failing for the grace period, without a DNS answer now',
      { mx_configured: 0, failing_since: NOW - FAILURE_GRACE_MS },
      false,
      'failing',
    ],
  ])('%s', (_, columns, certain, round) => {
    expect(roundOf(domain(columns), certain, NOW)).toBe(round);
  });
});

describe('the next check of a domain', () => {
  const ROUTINE = { hasUnknown: false, pendingKeySince: null };
  const OLD = NOW - 20 * DAY;

  it.each<[string, Partial<DomainRow>, number]>([
    ['pending, new', {}, MINUTE],
    ['pending, after one check', { check_count: 1 }, 2 * MINUTE],
    ['pending, after five', { check_count: 5 }, 32 * MINUTE],
    ['pending, after six and more', { check_count: 6 }, HOUR],
    ['pending, after very many', { check_count: 10_000 }, HOUR],
    ['pending for two weeks', { check_count: 300, created_at: NOW - 14 * DAY }, DAY],
    ['verified', { status: 'SUCCESS', created_at: OLD }, DAY],
    ['verified, the secondary lane pending', { status: 'SUCCESS', alt_status: 'PENDING' }, HOUR],
    [
      'verified, the secondary lane abandoned',
      { status: 'SUCCESS', alt_status: 'PENDING', created_at: OLD },
      DAY,
    ],
    ['just failing', { status: 'TEMPORARY_FAILURE', failing_since: NOW }, 10 * MINUTE],
    ['failing for long', { status: 'TEMPORARY_FAILURE', check_count: 20, failing_since: NOW - DAY }, HOUR],
    [
      'failing, at the end of the grace period',
      { status: 'TEMPORARY_FAILURE', check_count: 80, failing_since: NOW - FAILURE_GRACE_MS + MINUTE },
      MINUTE,
    ],
    ['just failed', { status: 'FAILED' }, HOUR],
    ['failed long ago', { status: 'FAILED', check_count: 9 }, DAY],
  ])('%s', (_, columns, wait) => {
    expect(nextCheckAt(domain(columns), ROUTINE, NOW) - NOW).toBe(wait);
  });

  it('is due within an hour when DNS did not answer', () => {
    expect(
      nextCheckAt(domain({ status: 'SUCCESS', created_at: OLD }), { ...ROUTINE, hasUnknown: true }, NOW) -
        NOW,
    ).toBe(HOUR);
  });

  it.each([
    [MINUTE, MINUTE],
    [HOUR, 5 * MINUTE],
    [DAY, HOUR],
    [30 * DAY, DAY],
  ])('of a new key of age %i ms is due after %i ms', (age, wait) => {
    const details = { ...ROUTINE, pendingKeySince: NOW - age };
    expect(nextCheckAt(domain({ status: 'SUCCESS', created_at: OLD }), details, NOW) - NOW).toBe(wait);
  });
});
