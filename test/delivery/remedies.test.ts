import { describe, expect, it } from 'vitest';
import { explainAttempt } from '../../src/delivery/explain.ts';
import { localRemedy, policyOf, replyRemedy } from '../../src/delivery/remedies.ts';
import { classifyLocal, type LocalFailure } from '../../src/mail/classify/classify.ts';
import { BOUNCE_CLASSES } from '../../src/mail/classify/rules.ts';

/** The advice for an attempt that ended with this failure. `error`: of its session. */
function adviceFor(failure: LocalFailure, conclusion: string, error: string | null = null): string | null {
  const { classification, reply } = classifyLocal(failure);
  const sessions = error === null ? [] : [{ host: 'mx.example', address: '192.0.2.9', reply: null, error }];
  const report = JSON.stringify({ conclusion, classification: classification.bounceClass, reply, sessions });
  return explainAttempt({ message_seq: 1, attempt: 1, at: 0, lane: 'primary', report }).remedy;
}

describe('the advice for a failure on this side', () => {
  it.each([
    ['dns-trouble', 'dns-trouble', null, 'the resolver'],
    ['ipv6-only', 'ipv6-only', null, 'address6'],
    ['egress-failed', 'egress-failed', null, 'delivery.egress'],
    ['unreachable', 'unreachable', "blocked by this machine's own firewall", 'firewall of this machine'],
    ['unreachable', 'unreachable', 'this process has too many open files', 'LimitNOFILE'],
    ['unreachable', 'unreachable', 'network unreachable', 'no route'],
    [
      'unreachable',
      'unreachable',
      'mx.example has only IPv6 addresses, and the source address has none',
      'address6',
    ],
  ] as const)('of %s (%s, %s) names it', (failure, conclusion, error, expected) => {
    const advice = adviceFor(failure, conclusion, error);
    expect(advice).toContain(expected);
    expect(advice).not.toContain('on their side');
  });

  it('of a host that does not answer is that for dead hosts', () => {
    expect(adviceFor('unreachable', 'unreachable', 'connection timed out')).toContain('do not answer');
  });
});

describe('the advice for a reply', () => {
  it.each([
    ['5.7.25', 'The sending IP address has no PTR record'],
    ['5.7.25', 'rejected'],
    [null, 'Client host rejected: cannot find your reverse hostname'],
  ])('about missing reverse DNS (%s %s) names that, and no list and no link', (enhanced, text) => {
    const advice = replyRemedy('reputation-block', { enhanced, text });
    expect(advice).toContain('reverse DNS');
    expect(advice).not.toMatch(/listed|link/);
  });

  it.each([
    ['Denied by policy, see https://example.net/why', 'link'],
    ['Denied by policy, contact abuse@example.net', 'contact in the reply'],
    ['Denied by policy', 'postmaster of the destination'],
  ])('about a policy names a link only where there is one: %s', (text, expected) => {
    const advice = replyRemedy('policy-block', { enhanced: '5.7.1', text });
    expect(advice).toContain(expected);
    expect(advice.includes('Follow the link')).toBe(expected === 'link');
  });

  it.each([
    [
      'mx.example.net does not offer STARTTLS (required by the MTA-STS policy of example.net)',
      'The MTA-STS policy of example.net',
    ],
    [
      'mx.example.net is not a mail host in the MTA-STS policy of example.net, which permits mx1.example.net',
      'The MTA-STS policy of example.net',
    ],
    [
      'mx.example.net: the TLSA records of _25._tcp.mx.example.net could not be looked up (SERVFAIL)',
      'DANE (the TLSA records of _25._tcp.mx.example.net)',
    ],
    ['mx.example.net does not offer STARTTLS', null],
  ])('about TLS names the policy: %s', (text, policy) => {
    expect(policyOf(text)).toBe(policy);
    const advice = replyRemedy('tls-failed', { enhanced: '4.7.5', text });
    if (policy === null) expect(advice).toContain('"tls" of the shaping profile');
    else expect(advice).toContain(policy);
  });
});

it('has advice for every classification', () => {
  const without = BOUNCE_CLASSES.filter((bounceClass) => !replyRemedy(bounceClass, null));
  expect(without).toEqual([]);
});

it('has advice for the failures on this side that have a reason of their own', () => {
  const failures = ['dns-trouble', 'ipv6-only', 'no-mail-service', 'no-mail-host', 'private-network'];
  const others = ['egress-failed', 'rejected-by-operator', 'unanswered', 'worker-lost'];
  expect([...failures, ...others].filter((conclusion) => localRemedy(conclusion) === null)).toEqual([]);
  expect(localRemedy('replied')).toBeNull();
});
