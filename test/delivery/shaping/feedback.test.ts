import { describe, expect, it } from 'vitest';
import { replyRules } from '../../../src/config/reply-rules.ts';
import { HOUR, MINUTE, SECOND } from '../../../src/core/clock.ts';
import { createLog } from '../../../src/core/log.ts';
import { evaluateReport } from '../../../src/delivery/attempt-result.ts';
import { createSite, type SlotReservation } from '../../../src/delivery/scheduling/site.ts';
import { createFeedback, signalOf } from '../../../src/delivery/shaping/feedback.ts';
import { createHostAnswers } from '../../../src/delivery/shaping/profiles.ts';
import type { AttemptReport } from '../../../src/delivery/worker/protocol.ts';
import { createClassifier } from '../../../src/mail/classify/classifier.ts';
import { type Classify, classify } from '../../../src/mail/classify/classify.ts';
import type { SmtpPhase, SmtpReply } from '../../../src/mail/reply.ts';
import { heldClock } from '../../support/store.ts';
import { readyMessage } from '../messages.ts';

function reply(line: string): SmtpReply {
  const [, code = '0', enhanced, text = ''] = /^(\d{3}) (?:([245]\.\d+\.\d+) )?(.*)$/.exec(line) ?? [];
  return { code: Number(code), enhanced: enhanced ?? null, text };
}

function reportOf(
  line: string,
  phase: SmtpPhase = 'rcpt',
  conclusion: AttemptReport['conclusion'] = 'replied',
): AttemptReport {
  const session = {
    host: 'mx.one.test',
    address: '192.0.2.1',
    port: 25,
    localAddress: null,
    tls: null,
    phase,
    reply: reply(line),
    error: null,
    startedAt: 0,
    endedAt: 1,
  };
  return { id: 1, conclusion, phase, reply: reply(line), sessions: [session] };
}

function createTestFeedback({ isShared = false, addressPauseMs = 0 } = {}) {
  const clock = heldClock();
  const profile = {
    connections: 8,
    messagesPerConnection: 100,
    perSecond: 0,
    idleMs: MINUTE,
    tls: 'none',
    chunking: true,
    addressPauseMs,
  } as const;
  const site = createSite({
    key: 'mx.one.test via default',
    number: 0,
    pool: 'default',
    isShared,
    profile,
    clock,
    firstSuspensionMs: MINUTE,
  });
  const unclassified: string[] = [];
  const log = createLog({ level: 'silent', hashAddresses: true });
  const feedback = createFeedback(
    { monotonic: clock, log },
    {
      hostAnswers: createHostAnswers(),
      onUnclassified: (report, host) => void unclassified.push(`${host} ${report.reply?.text}`),
    },
  );
  let seq = 0;
  const begin = (account_id = 'acct_one'): SlotReservation => {
    const message = readyMessage(++seq, { account_id });
    site.add({ message, hosts: [], route: null, lane: 'primary', provider: null, readAt: clock.now() });
    const next = site.reserve(() => true);
    if (typeof next === 'string') throw new Error(next);
    return next.reservation;
  };
  /** Ends a session with a reply. */
  const end = (reservation: SlotReservation, report: AttemptReport, message = readyMessage(seq)) => {
    site.release(reservation);
    return feedback.apply(report, evaluateReport(report, classify), reservation, message);
  };
  /** The same with other rules. */
  const endWith = (reservation: SlotReservation, report: AttemptReport, rules: Classify) => {
    site.release(reservation);
    return feedback.apply(report, evaluateReport(report, rules), reservation, readyMessage(seq));
  };
  const mayStart = (account_id: string) => {
    site.add({
      message: readyMessage(++seq, { account_id }),
      hosts: [],
      route: null,
      lane: 'primary',
      provider: null,
      readAt: clock.now(),
    });
    const next = site.reserve(() => true);
    if (typeof next !== 'string') site.release(next.reservation);
    site.drop();
    return next !== 'full' && next !== 'refused';
  };
  return { clock, site, feedback, unclassified, begin, end, endWith, mayStart };
}

describe('what a reply means for the site', () => {
  const signal = (...args: Parameters<typeof reportOf>) => {
    const report = reportOf(...args);
    return signalOf(report, evaluateReport(report, classify));
  };

  it.each([
    ['250 2.0.0 Ok', 'dot', 'replied', 'answered'],
    ['550 5.1.1 User unknown', 'rcpt', 'replied', 'answered'],
    ['421 4.7.0 Too many connections', 'greeting', 'unreachable', 'throttled'],
    ['421 4.3.2 Service not available', 'greeting', 'unreachable', 'unreachable'],
    ['421 4.7.1 <a@one.test> Greylisted, please try again in 5 minutes', 'rcpt', 'unreachable', 'answered'],
    ['452 4.3.1 Too many messages in this connection, slow down', 'mail', 'replied', 'throttled'],
    ['550 Connection frequency limited', 'mail', 'replied', 'throttled'],
    // The sender, as the server knows it after MAIL.
    ['421 4.7.28 unusual rate of unsolicited mail', 'dot', 'unreachable', 'sender-throttled'],
    ['451 4.7.650 temporarily rate limited due to IP reputation', 'mail', 'replied', 'throttled'],
    ['421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred', 'mail', 'unreachable', 'throttled'],
    [
      '421 4.7.28 an unusual rate of unsolicited mail originating from your IP address',
      'dot',
      'unreachable',
      'throttled',
    ],
    [
      '550 5.7.1 you have sent to too many recipients this hour. IB607',
      'rcpt',
      'replied',
      'sender-throttled',
    ],
    // About one domain of the account: the message is tried again later, and nothing else changes.
    ['450 4.1.8 Sender address rejected: Domain not found', 'rcpt', 'replied', 'answered'],
    [
      '421 4.7.32 rate limited because the From header is not aligned with SPF or DKIM',
      'dot',
      'replied',
      'sender-throttled',
    ],
    // Before MAIL the server knows the address, which all accounts share.
    ['421 4.7.0 [TSS04] unexpected volume or user complaints', 'greeting', 'unreachable', 'throttled'],
    // About one recipient.
    ['450 4.2.1 The user is receiving mail too quickly', 'rcpt', 'replied', 'answered'],
    ['450 4.2.0 Greylisted', 'rcpt', 'replied', 'answered'],
    // Permanent: the message bounces, and there is nothing to wait for.
    ['550 5.7.1 blocked using zen.spamhaus.org', 'rcpt', 'replied', 'answered'],
    ['451 4.5.0 lost', 'dot', 'unanswered', 'answered'],
  ] as const)('%s at %s (%s): %s', (line, phase, conclusion, expected) => {
    expect(signal(line, phase, conclusion)).toBe(expected);
  });
});

describe('a site that replies that mail comes too fast', () => {
  it('is paused for the time that the reply names, with half of its connections after it', () => {
    const { clock, site, begin, end, mayStart } = createTestFeedback();
    end(
      begin(),
      reportOf('421 4.7.0 Too many connections, retry after 90 seconds', 'greeting', 'unreachable'),
    );
    expect(site.isHalted()).toBe(true);
    expect(site.isSuspended()).toBe(false);
    expect([site.limitedMs(), site.capacity(0), mayStart('acct_one')]).toEqual([90 * SECOND, 0, false]);
    clock.advance(90 * SECOND);
    expect(site.limits()).toMatchObject({ connections: 4, level: 1, limitedMs: 0 });
    clock.advance(SECOND);
    expect(mayStart('acct_one')).toBe(true);
  });

  it('has its connections again after hundreds of accepted messages', () => {
    const { clock, site, begin, end } = createTestFeedback();
    for (let n = 0; n < 2; n++) {
      end(begin(), reportOf('450 4.7.1 rate limit exceeded', 'mail'));
      clock.advance(site.limitedMs() + SECOND);
    }
    const steps: number[] = [];
    for (let n = 0; n < 200; n++) {
      clock.advance(site.rateWaitMs());
      end(begin(), reportOf('250 2.0.0 Ok', 'dot'));
      if (n % 100 === 99) steps.push(site.limits().connections);
    }
    expect(steps).toEqual([4, 8]);
  });
});

describe('a throttle that names our address', () => {
  const TSS04 = '421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume';

  it('stops the mail of all accounts to the site for the pause of its profile, then one connection is used', () => {
    const { clock, site, begin, end, mayStart } = createTestFeedback({ addressPauseMs: 2 * HOUR });
    // Sessions that are in progress belong to the same event; a new site has two connections.
    const sessions = Array.from({ length: 2 }, (_, n) => begin(`acct_${n}`));
    for (const session of sessions) end(session, reportOf(TSS04, 'mail', 'unreachable'));
    expect(Array.from({ length: 8 }, (_, n) => mayStart(`acct_${n}`))).toEqual(Array(8).fill(false));
    expect(site.limits()).toMatchObject({ limitedMs: 2 * HOUR, connections: 1, accounts: 0 });
    clock.advance(2 * HOUR + SECOND);
    expect(mayStart('acct_0')).toBe(true);
    expect(site.limits().connections).toBe(1);
  });

  it('follows a longer time that the reply names', () => {
    const { site, begin, end } = createTestFeedback({ addressPauseMs: HOUR });
    end(begin(), reportOf(`${TSS04}; try again in 3 hours`, 'mail', 'unreachable'));
    expect(site.limitedMs()).toBe(3 * HOUR);
  });
});

describe('a rule with an automation', () => {
  const reportWith = (then: string, after = 3) => {
    const env = createTestFeedback();
    const rules = replyRules.parse([
      { match: 'mumble', meaning: 'server error', automation: { after, within: '1h', then } },
    ]);
    const mumble = (account = 'acct_one') =>
      env.endWith(env.begin(account), reportOf('451 4.3.0 Mumble', 'rcpt'), createClassifier({ rules }));
    return { ...env, mumble };
  };

  it('suspends the site after enough replies within its time, and begins to count again', () => {
    const { clock, site, mumble } = reportWith('suspend 2h');
    mumble();
    mumble();
    clock.advance(HOUR);
    mumble();
    mumble();
    expect(site.limitedMs()).toBe(0);
    mumble();
    expect(site.limitedMs()).toBe(2 * HOUR);
    clock.advance(2 * HOUR);
    expect(site.limits().connections).toBe(1);
  });

  it.each([
    ['connections 2', { connections: 2 }],
    ['perMinute 30', { perSecond: 0.5 }],
  ])('limits the site: %s', (then, limits) => {
    const { site, mumble } = reportWith(then, 1);
    mumble();
    expect(site.limitedMs()).toBe(0);
    expect(site.limits()).toMatchObject(limits);
  });
});

describe('a reply about one sender', () => {
  it('slows its account alone', () => {
    const { clock, site, begin, end, mayStart } = createTestFeedback();
    end(begin('acct_bad'), reportOf('421 4.7.28 unusual rate of unsolicited mail', 'dot', 'unreachable'));
    expect(site.isHalted()).toBe(false);
    expect([mayStart('acct_bad'), mayStart('acct_good')]).toEqual([false, true]);
    expect([site.accountLimitedMs('acct_bad'), site.accountLimitedMs('acct_good')]).toEqual([MINUTE, 0]);
    expect(site.limits()).toMatchObject({ connections: 8, perSecond: null, accounts: 1 });
    clock.advance(MINUTE + SECOND);
    expect(mayStart('acct_bad')).toBe(true);
  });

  it('leaves the account fewer connections after the pause', () => {
    const { clock, site, begin, end } = createTestFeedback();
    for (let n = 0; n < 3; n++) {
      end(begin('acct_bad'), reportOf('421 4.7.28 unusual rate of unsolicited mail', 'dot', 'unreachable'));
      clock.advance(30 * MINUTE);
    }
    expect(site.memory().accounts.get('acct_bad')).toBeUndefined();
    for (let n = 0; n < 3; n++) {
      end(begin('acct_bad'), reportOf('421 4.7.28 unusual rate of unsolicited mail', 'dot', 'unreachable'));
      clock.advance(site.accountLimitedMs('acct_bad') + 20 * SECOND);
    }
    begin('acct_bad');
    expect(() => begin('acct_bad')).toThrow('refused');
    begin('acct_good');
  });
});

describe('a host of a shared site that cannot be reached', () => {
  const UNREACHABLE = (() => {
    const report = reportOf('421 no reply', 'connect', 'unreachable');
    const sessions = report.sessions.map((session) => ({ ...session, reply: null, error: 'timed out' }));
    return { ...report, reply: null, sessions };
  })();

  it('does not suspend the site when it has never replied', () => {
    const { site, begin, end } = createTestFeedback({ isShared: true });
    for (let n = 0; n < 5; n++) end(begin(), UNREACHABLE);
    expect(site.isSuspended()).toBe(false);
  });

  it('suspends the site when it has replied before', () => {
    const { site, begin, end } = createTestFeedback({ isShared: true });
    end(begin(), reportOf('250 2.0.0 Ok', 'dot'));
    for (let n = 0; n < 2; n++) end(begin(), UNREACHABLE);
    expect(site.isSuspended()).toBe(true);
  });
});

describe('greylisting', () => {
  const GREYLISTED = reportOf('450 4.2.0 Greylisted');
  const ACCEPTED = reportOf('250 2.0.0 Ok', 'dot');

  it('is remembered: the next message waits as long as the first one had to', () => {
    const { clock, site, begin, end } = createTestFeedback();
    const first = readyMessage(1000, { attempts: 0 });
    expect(end(begin(), GREYLISTED, first).greylistMs).toBeUndefined();
    clock.advance(2 * MINUTE);
    expect(end(begin(), GREYLISTED, { ...first, attempts: 1 }).greylistMs).toBeUndefined();
    clock.advance(3 * MINUTE);
    end(begin(), ACCEPTED, { ...first, attempts: 2 });
    expect(site.greylistMs()).toBe(5 * MINUTE);

    const second = readyMessage(1001, { attempts: 0 });
    expect(end(begin(), GREYLISTED, second).greylistMs).toBe(5 * MINUTE);
    clock.advance(MINUTE);
    expect(end(begin(), GREYLISTED, { ...second, attempts: 1 }).greylistMs).toBe(4 * MINUTE);
  });

  it('is forgotten when the remembered wait is not enough', () => {
    const { clock, site, begin, end } = createTestFeedback();
    site.learnGreylisting(5 * MINUTE);
    const message = readyMessage(1000, { attempts: 0 });
    end(begin(), GREYLISTED, message);
    clock.advance(5 * MINUTE);
    expect(end(begin(), GREYLISTED, { ...message, attempts: 1 }).greylistMs).toBeUndefined();
    expect(site.greylistMs()).toBeNull();
  });

  it('learns the shortest wait, and nothing from a message that came hours later or was greylisted before', () => {
    const { clock, site, begin, end } = createTestFeedback();
    const send = (seq: number, waitMs: number, attempts = 0) => {
      const message = readyMessage(seq, { attempts });
      end(begin(), GREYLISTED, message);
      clock.advance(waitMs);
      end(begin(), ACCEPTED, { ...message, attempts: attempts + 1 });
      return site.greylistMs();
    };
    expect([send(1, 5 * HOUR), send(2, MINUTE, 3), send(3, 10 * MINUTE), send(4, 6 * MINUTE)]).toEqual([
      null,
      null,
      10 * MINUTE,
      6 * MINUTE,
    ]);
  });
});

it('passes on replies without known wording', () => {
  const { begin, end, unclassified } = createTestFeedback();
  end(begin(), reportOf('451 mumble'));
  end(begin(), reportOf('450 4.2.0 Greylisted'));
  end(begin(), reportOf('250 Ok', 'dot'));
  expect(unclassified).toEqual(['mx.one.test mumble']);
});

it('passes on the host that gave an unclassified reply, although a later one was tried', () => {
  const { begin, end, unclassified } = createTestFeedback();
  const report = reportOf('451 mumble');
  const [deciding] = report.sessions;
  if (deciding === undefined) throw new Error('the report has no session');
  const later = { ...deciding, host: 'mx2.one.test' };
  const unreachable = { ...later, phase: 'connect', reply: null, error: 'connection refused' } as const;
  const busy = { ...later, phase: 'greeting', reply: reply('451 busy') } as const;
  for (const last of [unreachable, busy]) end(begin(), { ...report, sessions: [deciding, last] });
  expect(unclassified).toEqual(['mx.one.test mumble', 'mx.one.test mumble']);
});
