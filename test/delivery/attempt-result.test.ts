import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE, SECOND } from '../../src/core/clock.ts';
import { createExpiryClock } from '../../src/core/expiry-clock.ts';
import {
  createAttemptResults,
  evaluateReport,
  localResult,
  retryWait,
  siteStateOf,
} from '../../src/delivery/attempt-result.ts';
import type { AttemptReport, Conclusion, SessionRecord } from '../../src/delivery/worker/protocol.ts';
import { classify } from '../../src/mail/classify/classify.ts';
import { enqueue, heldClock, startStore } from '../support/store.ts';

const schedule = {
  first: 5 * MINUTE,
  greylisted: 2 * MINUTE,
  factor: 2,
  max: 4 * HOUR,
  expireMarketing: 0,
  expireTransactional: 0,
};
const plain = { retryAfterMs: null, greylisted: false };
const fixed = (value: number) => ({ bytes: () => Buffer.alloc(0), below: () => value });
const reply250 = { code: 250, enhanced: '2.0.0', text: 'ok' };
const reply550 = { code: 550, enhanced: '5.1.1', text: 'no such user' };
const reply451 = { code: 451, enhanced: '4.3.0', text: 'try again later' };
const [earliest, middle, latest] = [fixed(0), fixed(5000), fixed(10_000)];

describe('the retry schedule', () => {
  it.each([
    [1, 5 * MINUTE],
    [2, 10 * MINUTE],
    [3, 20 * MINUTE],
    [6, 160 * MINUTE],
    [7, 4 * HOUR],
    [8, 4 * HOUR],
    [500, 4 * HOUR],
  ])('waits after attempt %i for its step, spread by 10 %%', (attempts, expected) => {
    expect(retryWait(schedule, attempts, plain, middle)).toBe(expected);
    expect(retryWait(schedule, attempts, plain, earliest)).toBe(Math.round(expected * 0.9));
    expect(retryWait(schedule, attempts, plain, latest)).toBe(Math.round(expected * 1.1));
  });

  it('waits less after the first greylisting reply', () => {
    expect(retryWait(schedule, 1, { ...plain, greylisted: true }, middle)).toBe(2 * MINUTE);
    expect(retryWait(schedule, 2, { ...plain, greylisted: true }, middle)).toBe(10 * MINUTE);
  });

  it('waits at least as long as the reply requests', () => {
    const named = { retryAfterMs: 90 * SECOND, greylisted: true };
    expect(retryWait(schedule, 1, named, earliest)).toBe(90 * SECOND);
    expect(retryWait(schedule, 1, named, latest)).toBe(99 * SECOND);
  });

  it('waits as long as the site required from other greylisted mail, unless the reply names a time', () => {
    const learned = { retryAfterMs: null, greylisted: true, greylistMs: 7 * MINUTE };
    expect(retryWait(schedule, 1, learned, earliest)).toBe(7 * MINUTE);
    expect(retryWait(schedule, 1, { ...learned, retryAfterMs: MINUTE }, earliest)).toBe(MINUTE);
  });

  it('does not follow a short wait that the replies name again and again', () => {
    const named = { ...plain, retryAfterMs: SECOND };
    const waits = [1, 5, 6, 7].map((attempts) => retryWait(schedule, attempts, named, earliest));
    expect(waits).toEqual([SECOND, SECOND, 160 * MINUTE, 4 * HOUR]);
    const long = { ...plain, retryAfterMs: 20 * HOUR };
    expect(retryWait(schedule, 6, long, earliest)).toBe(20 * HOUR);
  });
});

describe('the result of an attempt', () => {
  const refused = (code: number, enhanced: string, text: string): AttemptReport => ({
    id: 1,
    conclusion: 'refused-locally',
    phase: 'ehlo',
    reply: { code, enhanced, text },
    sessions: [],
  });

  it.each([
    [552, '5.3.4', 'the message has 2000 bytes, mx.example accepts 1000 at most', 'message-too-large'],
    [553, '5.6.7', 'mx.example does not support internationalized addresses (SMTPUTF8)', 'protocol-error'],
  ])('is final when this side cannot offer the message: %i %s', (code, enhanced, text, bounceClass) => {
    expect(evaluateReport(refused(code, enhanced, text), classify)).toMatchObject({
      source: 'local',
      classification: { action: 'bounce', scope: 'message', bounceClass, suppress: 'never' },
    });
  });

  it('is a deferral when the required encryption is not available', () => {
    expect(
      evaluateReport(refused(454, '4.7.5', 'mx.example does not offer STARTTLS'), classify),
    ).toMatchObject({
      source: 'local',
      classification: { action: 'defer', bounceClass: 'tls-failed' },
    });
  });
});

describe('the state of the site after an attempt', () => {
  const session: SessionRecord = {
    host: 'mx.example.test',
    address: '192.0.2.1',
    port: 25,
    localAddress: null,
    tls: null,
    phase: 'dot',
    reply: null,
    error: null,
    startedAt: 0,
    endedAt: 1,
  };
  const EXPECTED: Record<Conclusion, [afterSession: string | null, withoutSession: string | null]> = {
    replied: ['answered', null],
    unanswered: ['answered', null],
    'refused-locally': ['answered', null],
    'not-composed': ['answered', null],
    'egress-failed': [null, null],
    unreachable: ['answered', 'unreachable'],
  };

  it('is known only if a host was contacted', () => {
    const stateAfter = (conclusion: string, sessions: SessionRecord[]) =>
      siteStateOf({
        id: 1,
        conclusion: conclusion as Conclusion, // a key of EXPECTED
        phase: 'connect',
        reply: null,
        sessions,
      });
    const states = Object.keys(EXPECTED).map((conclusion) => [
      conclusion,
      [stateAfter(conclusion, [session]), stateAfter(conclusion, [])],
    ]);
    expect(Object.fromEntries(states)).toEqual(EXPECTED);
  });

  it.each([
    ['connect', 'unreachable'],
    ['greeting', 'unreachable'],
    ['ehlo', 'unreachable'],
    ['mail', 'unreachable'],
    ['rcpt', 'answered'],
    ['data', 'answered'],
    ['dot', 'answered'],
  ] as const)('after a session that broke at %s is %s', (phase, state) => {
    const sessions = [{ ...session, phase, reply: null }];
    expect(siteStateOf({ id: 1, conclusion: 'unreachable', phase, reply: null, sessions })).toBe(state);
  });
});

describe('a result of which only the status can be recorded', () => {
  it.each([
    ['accepted', reply250, 'delivered'],
    ['refused', reply550, 'bounced'],
    ['deferred', reply451, 'deferred'],
  ] as const)('%s: the message is not sent again, or later', async (_, reply, expected) => {
    const { tables, recorder, writer, clock } = startStore();
    const { seq } = enqueue(tables, clock.now(), { expires_at: clock.now() + 48 * HOUR });
    const expiry = createExpiryClock(clock, clock);
    const results = createAttemptResults({ clock, expiry, random: earliest }, { recorder, retry: schedule });
    const outcome = await writer.run((tx) => {
      const message = tx.messages.bySeq(seq);
      if (message !== null) recorder.message(tx, message, { kind: 'email_sent', fields: {} });
      const classification = classify({ phase: 'data', reply, mxHost: null });
      return results.recordStatus(tx, seq, { classification, reply, source: 'smtp' });
    });
    expect(outcome?.status).toBe(expected);
    expect(tables.messages.bySeq(seq)).toMatchObject({ status: expected, attempts: 1 });
    const queued = tables.queue.get(seq);
    if (expected === 'deferred') expect(queued?.due_at).toBe(clock.now() + schedule.max);
    else expect(queued).toBeNull();
  });
});

it('announces a retry that is as far from its event as the schedule requires, however long the recording takes', async () => {
  const held = heldClock();
  // Each reading of the clock is a second later than the one before.
  const clock = { ...held, now: () => (held.advance(SECOND), held.now()) };
  const { tables, recorder, writer } = startStore(clock);
  const { seq } = enqueue(tables, clock.now(), { recipient: 'ada@destination.test' });
  const results = createAttemptResults(
    { clock, expiry: createExpiryClock(clock, held), random: earliest },
    { recorder, retry: schedule },
  );
  await writer.run((tx) => {
    const message = tx.messages.bySeq(seq);
    if (message !== null) recorder.message(tx, message, { kind: 'email_sent', fields: {} });
    const log = { lane: 'primary', conclusion: 'unreachable', sessions: [] } as const;
    results.record(tx, seq, localResult('unreachable'), log);
  });
  const delayed = tables.events.ofMessage(seq).find(({ kind }) => kind === 'email_delayed');
  const { nextAttemptAt } = JSON.parse(delayed?.data ?? '{}');
  expect(Date.parse(nextAttemptAt) - (delayed?.at ?? 0)).toBe(0.9 * schedule.first);
});
