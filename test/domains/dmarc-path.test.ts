import { describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { dmarcPath } from '../../src/domains/dmarc-path.ts';
import { dmarcProgress } from '../../src/domains/reports.ts';
import { type Policy, parseDmarc } from '../../src/domains/verification/checks/dmarc-record.ts';
import type { DmarcReportHistory } from '../../src/store/domains/dmarc-reports.ts';

const NOW = Date.UTC(2026, 0, 31);
const SUBJECT = { domain: 'example.org', reportTo: 'dmarc@return-a.example.org', policy: 'any' as const };
const NONE: DmarcReportHistory = { firstAt: null, lastAt: null, lastFailureAt: null, unverified: 0 };
const CLEAN: DmarcReportHistory = {
  firstAt: NOW - 20 * DAY,
  lastAt: NOW - DAY,
  lastFailureAt: null,
  unverified: 0,
};

function published(policy: Policy, tags = '', at = 'example.org') {
  const text = `v=DMARC1; p=${policy}${tags}`;
  return {
    found: { record: parseDmarc(text), at, policy, tag: 'p' as const },
    own: at === 'example.org' ? [text] : [],
    fault: null,
    unknown: null,
  };
}
const NOTHING = { found: null, own: [], fault: null, unknown: null };

describe('the way to a strict DMARC policy', () => {
  it('begins with p=none, or with p=quarantine where p=none does not suffice to send', () => {
    expect(dmarcPath(SUBJECT, NOTHING, NONE, NOW)).toMatchObject({
      policy: null,
      published: null,
      next: { policy: 'none', isReady: true, record: { name: '_dmarc.example.org' } },
    });
    const enforced = dmarcPath({ ...SUBJECT, policy: 'enforced' }, NOTHING, NONE, NOW);
    expect(enforced.next).toMatchObject({
      policy: 'quarantine',
      isReady: true,
      record: { value: 'v=DMARC1; p=quarantine; rua=mailto:dmarc@return-a.example.org' },
    });
  });

  it.each<[string, DmarcReportHistory, boolean, number | null]>([
    ['two weeks of reports without failures permit it', CLEAN, true, NOW - 6 * DAY],
    ['a failure three days ago delays it', { ...CLEAN, lastFailureAt: NOW - 3 * DAY }, false, NOW + 11 * DAY],
    [
      'reports since yesterday do not suffice',
      { ...CLEAN, firstAt: NOW - DAY, lastAt: NOW },
      false,
      NOW + 13 * DAY,
    ],
    ['without reports it is not known', NONE, false, null],
    [
      'reports that ended a month ago prove nothing',
      { ...CLEAN, firstAt: NOW - 90 * DAY, lastAt: NOW - 30 * DAY },
      false,
      null,
    ],
  ])('from p=none to p=quarantine: %s', (_, history, isReady, readyAt) => {
    expect(dmarcPath(SUBJECT, published('none'), history, NOW).next).toMatchObject({
      policy: 'quarantine',
      isReady,
      readyAt,
    });
  });

  it('keeps the tags of the published record, and adds our address for reports', () => {
    const path = dmarcPath(SUBJECT, published('quarantine', '; sp=none; rua=mailto:a@b.example'), CLEAN, NOW);
    expect(path.published).toBe('v=DMARC1; p=quarantine; sp=none; rua=mailto:a@b.example');
    expect(path.next?.record.value).toBe(
      'v=DMARC1; p=reject; sp=none; rua=mailto:a@b.example,mailto:dmarc@return-a.example.org',
    );
  });

  it('publishes a separate record below a domain whose policy is inherited', () => {
    const path = dmarcPath(
      { ...SUBJECT, domain: 'mail.example.org' },
      published('none', '', 'above'),
      CLEAN,
      NOW,
    );
    expect(path.publishedAt).toBe('_dmarc.above');
    expect(path.next?.record).toMatchObject({
      name: '_dmarc.mail.example.org',
      value: 'v=DMARC1; p=quarantine; rua=mailto:dmarc@return-a.example.org',
    });
  });

  it('ends with p=reject, and has no next step while the policy is not known', () => {
    expect(dmarcPath(SUBJECT, published('reject'), CLEAN, NOW)).toMatchObject({
      policy: 'reject',
      message: 'DMARC reports show no unauthenticated mail since 2026-01-11.',
      next: null,
    });
    expect(dmarcPath(SUBJECT, { ...NOTHING, unknown: 'no answer' }, CLEAN, NOW)).toMatchObject({
      policy: null,
      unknown: 'no answer',
      next: null,
    });
  });
});

it('states the progress in a sentence', () => {
  expect(dmarcProgress(NONE, NOW)).toContain('No DMARC reports yet');
  expect(dmarcProgress(CLEAN, NOW)).toContain('since 2026-01-11: a p=none policy may be raised');
  expect(dmarcProgress({ ...CLEAN, lastFailureAt: NOW - DAY }, NOW)).toContain(
    'a policy below p=reject may be raised after 2026-02-13',
  );
  expect(dmarcProgress({ ...CLEAN, lastAt: NOW - 15 * DAY }, NOW)).toContain(
    'No DMARC reports since 2026-01-16',
  );
});
