import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { SMTP_TIMEOUTS, type SmtpTimeouts } from '../../../src/delivery/worker/socket.ts';
import type { SinkPhase } from '../../support/smtp-sink-session.ts';
import { client, deliver, job, lastError, sink, sinks, summary } from './setup.ts';

/** Larger than all buffers between two sockets of one machine. */
const HUGE = Buffer.concat([
  Buffer.from('Subject: huge\r\n\r\n'),
  Buffer.alloc(24_000_000, 'lorem ipsum dolor sit\r\n'),
]);

/** Also the time that the server has for the replies before the one that it does not give. */
const TIMEOUT_MS = 1000;

describe('a silent server', () => {
  const CASES: [phase: SinkPhase, limit: keyof SmtpTimeouts, summary: string, waiting: string][] = [
    ['greeting', 'greeting', 'unreachable greeting', 'the greeting'],
    ['ehlo', 'command', 'unreachable ehlo', 'the reply to EHLO'],
    ['mail', 'command', 'unreachable mail', 'the reply to MAIL'],
    ['rcpt', 'command', 'unreachable rcpt', 'the reply to RCPT'],
    ['data', 'data', 'unreachable data', 'the reply to DATA'],
    ['dot', 'dot', 'unanswered dot', 'the reply to the message'],
  ];
  it.each(CASES)('at %s: timeout %s, %s', async (phase, limit, expected, waiting) => {
    const to = await sink({ script: { [phase]: 'silent' } });
    const report = await deliver(client({ [limit]: TIMEOUT_MS }), job(to));
    expect(summary(report)).toBe(expected);
    expect(lastError(report)).toBe(`timed out after 1 s waiting for ${waiting}`);
    await expect.poll(() => to.open).toBe(0);
  });

  it('is followed by the next host unless it may have the message', async () => {
    const [one, two] = await sinks({ script: { mail: 'silent' } }, {});
    expect(summary(await deliver(client({ command: TIMEOUT_MS }), job([one!, two!])))).toBe(
      'replied dot 250',
    );
    one?.program({ script: { dot: 'silent' } });
    expect(summary(await deliver(client({ dot: TIMEOUT_MS }), job([one!, two!])))).toBe('unanswered dot');
    expect(two?.count).toBe(1);
  });
});

it('connecting to an address that never answers ends after the connect timeout', async () => {
  const to = await sink();
  const report = await deliver(client({ connect: TIMEOUT_MS }, { dial: () => new Socket() }), job(to));
  expect(summary(report)).toBe('unreachable connect');
  expect(lastError(report)).toBe('timed out after 1 s waiting for the connection');
});

describe('a server that replies byte by byte', () => {
  it('does not restart a timeout with each byte', async () => {
    const to = await sink({ script: { mail: { reply: `250 ${'x'.repeat(400)}`, bytesPerSecond: 200 } } });
    const report = await deliver(client({ command: TIMEOUT_MS }), job(to));
    expect(lastError(report)).toBe('timed out after 1 s waiting for the reply to MAIL');
  });

  it('is ended by the time limit of the message although it meets each timeout', async () => {
    // Together they need 1.5 s more than the limit, so that a busy machine cannot change which comes first.
    const late = { reply: '250 ok', delayMs: 1500 };
    const [one, two] = await sinks({ script: { ehlo: late, mail: late, rcpt: late } }, {});
    const report = await deliver(client({ message: 3000 }), job([one!, two!]));
    expect(report.conclusion).toBe('unreachable');
    expect(lastError(report)).toMatch(
      /^gave up after 3 s in total, while waiting for the reply to (EHLO|MAIL|RCPT)$/,
    );
    expect(two?.sessions).toHaveLength(0);
  });

  it('leaves the message unanswered when the time limit ends after the final dot', async () => {
    const to = await sink({ script: { dot: { reply: '250 ok', bytesPerSecond: 1 } } });
    const report = await deliver(client({ message: 3000 }), job(to));
    expect(summary(report)).toBe('unanswered dot');
    expect(lastError(report)).toBe('gave up after 3 s in total, while waiting for the reply to the message');
  });

  it('has a separate time limit for each message on a reused connection', async () => {
    const to = await sink();
    let now = 0;
    const by = client({ message: 450_000 }, { monotonic: { now: () => now } });
    for (let round = 0; round < 6; round++) {
      expect(summary(await deliver(by, job(to)))).toBe('replied dot 250');
      now += 300_000;
    }
    expect(to.sessions).toHaveLength(1);
  });
});

describe('a server that does not read the message', () => {
  it('is closed after the timeout of one block', async () => {
    const to = await sink({ bodyBytesPerSecond: 1 });
    const report = await deliver(client({ block: TIMEOUT_MS }), job(to), { body: HUGE });
    expect(summary(report)).toBe('unreachable data');
    expect(lastError(report)).toBe('timed out after 1 s: the server accepted no data');
  });

  it('is ended by the time limit of the message when it reads too slowly', async () => {
    const to = await sink({ bodyBytesPerSecond: 1_000_000 });
    const report = await deliver(client({ message: 3000 }), job(to), { body: HUGE });
    expect(summary(report)).toBe('unreachable data');
    expect(lastError(report)).toBe('gave up after 3 s in total, while waiting for the reply to DATA');
  });

  it('gets the whole message when it is merely slow', async () => {
    const bytes = HUGE.subarray(0, 8_000_000);
    const to = await sink({ bodyBytesPerSecond: 16_000_000 });
    expect(summary(await deliver(client(), job(to), { body: bytes }))).toBe('replied dot 250');
    expect(to.messages[0]?.raw.length).toBeGreaterThanOrEqual(bytes.length);
  });
});

it('the default timeouts are not below the minimums of RFC 5321 §4.5.3.2', () => {
  const minute = 60_000;
  expect(SMTP_TIMEOUTS).toMatchObject({
    command: 5 * minute,
    data: 2 * minute,
    block: 3 * minute,
    dot: 10 * minute,
    message: 15 * minute,
  });
});
