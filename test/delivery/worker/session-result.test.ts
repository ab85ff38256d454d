import { describe, expect, it } from 'vitest';
import {
  insecure,
  moreSignificant,
  nextStep,
  type SessionResult,
  type StepAfterSession,
} from '../../../src/delivery/worker/session-result.ts';
import type { SmtpPhase } from '../../../src/mail/reply.ts';

const answered = (phase: SmtpPhase, code: number): SessionResult => ({
  kind: 'replied',
  phase,
  reply: { code, enhanced: null, text: '' },
});
const broken = (phase: SmtpPhase, code?: number): SessionResult => ({
  kind: 'unreachable',
  phase,
  reply: code === undefined ? null : { code, enhanced: null, text: '' },
  error: 'lost',
});
const unanswered: SessionResult = { kind: 'unanswered', phase: 'dot', reply: null, error: 'lost' };
const noUtf8: SessionResult = {
  kind: 'refused-locally',
  phase: 'ehlo',
  reply: { code: 553, enhanced: '5.6.7', text: '' },
  nextHost: true,
};

describe('the step after a result', () => {
  const CASES: [outcome: SessionResult, next: StepAfterSession][] = [
    [answered('dot', 250), 'conclude'],
    [answered('greeting', 554), 'next-host'],
    [answered('ehlo', 550), 'next-host'],
    [answered('auth', 535), 'next-host'],
    [answered('mail', 451), 'next-host'],
    [answered('mail', 550), 'next-host'],
    [answered('rcpt', 451), 'next-host'],
    [answered('rcpt', 550), 'conclude'],
    [answered('data', 451), 'next-host'],
    [answered('data', 554), 'conclude'],
    [answered('dot', 451), 'next-host'],
    [answered('dot', 554), 'conclude'],
    [broken('connect'), 'next-address'],
    [broken('greeting'), 'next-host'],
    [broken('rcpt', 421), 'next-host'],
    [broken('data'), 'next-host'],
    [unanswered, 'conclude'],
    [noUtf8, 'next-host'],
    [{ ...noUtf8, nextHost: false }, 'conclude'],
    [insecure('starttls', 'no TLS'), 'next-host'],
  ];
  it.each(CASES)('%o: %s', (outcome, next) => {
    expect(nextStep(outcome)).toBe(next);
  });
});

describe('the more significant of two results', () => {
  /** From the most to the least significant. */
  const ORDER: SessionResult[] = [
    answered('rcpt', 450),
    answered('greeting', 450),
    broken('mail', 421),
    insecure('starttls', 'no TLS'),
    answered('mail', 550),
  ];
  it.each(ORDER.slice(1).map((lesser, index) => ({ greater: ORDER[index]!, lesser })))(
    '$greater.kind $greater.phase before $lesser.kind $lesser.phase, whichever came first',
    ({ greater, lesser }) => {
      expect(moreSignificant(greater, lesser)).toBe(greater);
      expect(moreSignificant(lesser, greater)).toBe(greater);
    },
  );

  it('is a refusal before a failed connection, but the failed connection of a preferred host', () => {
    for (const refusal of [answered('mail', 550), answered('greeting', 521), noUtf8]) {
      const failed = broken('connect');
      expect(moreSignificant(refusal, failed)).toBe(refusal);
      expect(moreSignificant(failed, refusal)).toBe(failed);
    }
  });

  it('is any other result before one without a source address', () => {
    const egress = { kind: 'egress-failed', phase: 'connect', reply: null, error: 'no address' } as const;
    const failed = broken('connect');
    expect(moreSignificant(failed, egress)).toBe(failed);
    expect(moreSignificant(egress, failed)).toBe(failed);
  });

  it('is the later of equals', () => {
    const [one, two] = [answered('rcpt', 450), answered('dot', 452)];
    expect(moreSignificant(one, two)).toBe(two);
    expect(moreSignificant(null, one)).toBe(one);
  });
});
