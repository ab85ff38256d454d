import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../../src/core/clock.ts';
import {
  FAILURE_GRACE_MS,
  nextCheckAt,
  type Round,
  roundOf,
  TRANSITIONS,
} from '../../../src/domains/verification/status.ts';
import type { DomainRow, DomainStatus } from '../../../src/store/domains/domains.ts';

const NOW = Date.UTC(2026, 0, 15);

function domain(wish: Partial<DomainRow>): DomainRow {
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
    ...wish,
  } as DomainRow; // what these functions read
}

describe('the life of a domain', () => {
  it.each<[DomainStatus, Round, DomainStatus, string | null]>([
    ['PENDING', 'passing', 'SUCCESS', 'domain_verified'],
    ['PENDING', 'failing', 'PENDING', null],
    ['PENDING', 'overdue', 'PENDING', null],
    ['SUCCESS', 'passing', 'SUCCESS', null],
    ['SUCCESS', 'failing', 'TEMPORARY_FAILURE', 'domain_failing'],
    ['SUCCESS', 'overdue', 'TEMPORARY_FAILURE', 'domain_failing'],
    ['TEMPORARY_FAILURE', 'passing', 'SUCCESS', 'domain_verified'],
    ['TEMPORARY_FAILURE', 'failing', 'TEMPORARY_FAILURE', null],
    ['TEMPORARY_FAILURE', 'overdue', 'FAILED', 'domain_failed'],
    ['FAILED', 'passing', 'SUCCESS', 'domain_verified'],
    ['FAILED', 'failing', 'FAILED', null],
    ['FAILED', 'overdue', 'FAILED', null],
  ])('%s, %s: %s', (from, round, to, event) => {
    expect(TRANSITIONS[from][round]).toEqual({ to, event });
  });
});

describe('a round of checks', () => {
  it.each<[string, Partial<DomainRow>, boolean, Round]>([
    ['all four pass', {}, true, 'passing'],
    ['one does not', { mx_configured: 0 }, true, 'failing'],
    ['long enough', { mx_configured: 0, failing_since: NOW - FAILURE_GRACE_MS }, true, 'overdue'],
    [
      'not quite long enough',
      { mx_configured: 0, failing_since: NOW - FAILURE_GRACE_MS + 1 },
      true,
      'failing',
    ],
    [
      'long enough, but DNS does not answer now',
      { mx_configured: 0, failing_since: NOW - FAILURE_GRACE_MS },
      false,
      'failing',
    ],
  ])('%s', (_, wish, certain, round) => {
    expect(roundOf(domain(wish), certain, NOW)).toBe(round);
  });
});

describe('the next check of a domain', () => {
  const QUIET = { hasUnknown: false, pendingKeySince: null };
  const OLD = NOW - 20 * DAY;

  it.each<[string, Partial<DomainRow>, number]>([
    ['pending, new', {}, MINUTE],
    ['pending, after one check', { check_count: 1 }, 2 * MINUTE],
    ['pending, after five', { check_count: 5 }, 32 * MINUTE],
    ['pending, after six and more', { check_count: 6 }, HOUR],
    ['pending, after very many', { check_count: 10_000 }, HOUR],
    ['pending for two weeks', { check_count: 300, created_at: NOW - 14 * DAY }, DAY],
    ['in order', { status: 'SUCCESS', created_at: OLD }, DAY],
    ['in order, the secondary lane awaited', { status: 'SUCCESS', alt_status: 'PENDING' }, HOUR],
    [
      'in order, the secondary lane never set up',
      { status: 'SUCCESS', alt_status: 'PENDING', created_at: OLD },
      DAY,
    ],
    ['just failing', { status: 'TEMPORARY_FAILURE', failing_since: NOW }, 10 * MINUTE],
    ['failing for long', { status: 'TEMPORARY_FAILURE', check_count: 20, failing_since: NOW - DAY }, HOUR],
    [
      'failing, its time nearly over',
      { status: 'TEMPORARY_FAILURE', check_count: 80, failing_since: NOW - FAILURE_GRACE_MS + MINUTE },
      MINUTE,
    ],
    ['just failed', { status: 'FAILED' }, HOUR],
    ['failed long ago', { status: 'FAILED', check_count: 9 }, DAY],
  ])('%s', (_, wish, wait) => {
    expect(nextCheckAt(domain(wish), QUIET, NOW) - NOW).toBe(wait);
  });

  it('comes within the hour when DNS did not answer', () => {
    expect(
      nextCheckAt(domain({ status: 'SUCCESS', created_at: OLD }), { ...QUIET, hasUnknown: true }, NOW) - NOW,
    ).toBe(HOUR);
  });

  it.each([
    [MINUTE, MINUTE],
    [HOUR, 5 * MINUTE],
    [DAY, HOUR],
    [30 * DAY, DAY],
  ])('with a new key of age %i ms comes after %i ms', (age, wait) => {
    const details = { ...QUIET, pendingKeySince: NOW - age };
    expect(nextCheckAt(domain({ status: 'SUCCESS', created_at: OLD }), details, NOW) - NOW).toBe(wait);
  });
});
