import { describe, expect, it, onTestFinished } from 'vitest';
import type { TimelineEntry } from '../support/api-client.ts';
import { freePort } from '../support/free-port.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { startSetupForTest } from '../support/sending-setup.ts';
import { startSink } from '../support/smtp-sink.ts';

/*
 * Messages that cannot be delivered at the first attempt.
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ sink, which replies 4xx, or is down
 */
const kindsOf = (timeline: TimelineEntry[]) => timeline.map(({ type, event }) => event ?? type);

describe('a recipient who is rejected temporarily', () => {
  it('is retried at the announced time, also after kill -9', async () => {
    const { daemon, sink, send, waitForStatus } = await startSetupForTest(
      { 'delivery.retry.first': '3s' },
      { script: { rcpt: '451 4.3.0 come back later' } },
    );
    const messageId = await send('later');
    const { nextAttemptAt = '', timeline } = await waitForStatus(messageId, 'deferred');
    expect(timeline.at(-1)).toMatchObject({
      event: 'email_delayed',
      attempt: 1,
      nextAttemptAt,
      smtpCode: 451,
      enhancedCode: '4.3.0',
      diagnostic: 'come back later',
    });
    sink.program({ script: {} });

    await daemon.kill('SIGKILL');
    await daemon.restart();
    expect(await daemon.api.message(messageId)).toMatchObject({ status: 'deferred', nextAttemptAt });

    const done = await waitForStatus(messageId, 'delivered');
    expect(kindsOf(done.timeline)).toEqual([
      'email_sent',
      'attempt',
      'email_delayed',
      'attempt',
      'email_delivered',
    ]);
    expect(done.attempts).toBe(2);
    const second = done.timeline.filter(({ type }) => type === 'attempt')[1];
    expect(Date.parse(second?.timestamp ?? '')).toBeGreaterThanOrEqual(Date.parse(nextAttemptAt));
    expect(sink.count).toBe(1);
    expect(await readLedger(daemon.api)).toMatchObject({ accepted: 1, delivered: 1, queued: 0 });
  });

  it('is retried after increasing delays', async () => {
    const { send, waitForStatus } = await startSetupForTest(
      { 'delivery.retry.first': '500ms', 'delivery.retry.factor': 3 },
      { recipients: { 'thrice@': rejectTimes(3, '451 4.3.0 not now') } },
    );
    const { timeline } = await waitForStatus(await send('thrice'), 'delivered');
    const delays = timeline
      .filter(({ event }) => event === 'email_delayed')
      .map(({ nextAttemptAt, timestamp }) => Date.parse(String(nextAttemptAt)) - Date.parse(timestamp));
    expect(delays).toHaveLength(3);
    // The factor is 3, with a jitter of ±10 %.
    for (const [n, delay] of delays.entries())
      expect(Math.abs(delay / (500 * 3 ** n) - 1)).toBeLessThan(0.15);
  });

  it('fails with the last reply when the message expires', async () => {
    const { send, waitForStatus, sink, daemon } = await startSetupForTest(
      {
        'delivery.retry.first': '1s',
        'delivery.retry.max': '1s',
        'delivery.retry.expireTransactional': '3s',
      },
      { script: { rcpt: '451 4.3.0 never' } },
    );
    const { timeline } = await waitForStatus(await send('never'), 'failed');
    expect(timeline.at(-1)).toMatchObject({
      event: 'email_failed',
      reason: 'expired',
      lastDiagnostic: 'never',
    });
    expect(sink.count).toBe(0);
    expect(await readLedger(daemon.api)).toEqual({
      accepted: 1,
      delivered: 0,
      bounced: 0,
      failed: 1,
      queued: 0,
    });
  });
});

describe('a host that is down', () => {
  it('receives the message when it is up again', async () => {
    const port = await freePort();
    const { send, waitForStatus, daemon } = await startSetupForTest({
      'delivery.port': port,
      'delivery.retry.first': '1s',
      'delivery.retry.max': '1s',
    });
    const messageId = await send('down');
    const { timeline } = await waitForStatus(messageId, 'deferred');
    expect(timeline.at(-1)).toMatchObject({ event: 'email_delayed', classification: 'network-error' });
    const sink = await startSink({ port });
    onTestFinished(() => sink.close());
    await waitForStatus(messageId, 'delivered');
    expect(sink.count).toBe(1);
    expect(await faultsInEvents(daemon.api)).toEqual([]);
  });

  it('is retried when it closes the connection after the greeting', async () => {
    const { send, waitForStatus } = await startSetupForTest(
      { 'delivery.retry.first': '1h' },
      { script: { ehlo: 'drop' } },
    );
    const { timeline } = await waitForStatus(await send('dropped'), 'deferred');
    expect(timeline.at(-1)).toMatchObject({ event: 'email_delayed', classification: 'network-error' });
  });
});

describe('a delivery', () => {
  it('is retried sooner after greylisting, and uses the next MX when one is down', async () => {
    const { dns, send, waitForStatus, sink } = await startSetupForTest(
      { 'delivery.retry.first': '1h', 'delivery.retry.greylisted': '1s' },
      {
        recipients: {
          'greylisted@': rejectTimes(
            1,
            '450 4.2.0 <greylisted@empfang.example>: Recipient address rejected: Greylisted',
          ),
        },
      },
    );
    const greylisted = await waitForStatus(await send('greylisted'), 'delivered');
    expect(greylisted.timeline.find(({ event }) => event === 'email_delayed')).toMatchObject({
      classification: 'greylisted',
    });
    expect(sink.count).toBe(1);

    dns.set('two.example', 'MX', ['10 down.two.example', '20 mx.two.example']);
    dns.set('down.two.example', 'A', ['127.0.0.99']);
    dns.set('mx.two.example', 'A', [sink.host]);
    const { timeline } = await waitForStatus(await send('a', 'two.example'), 'delivered');
    expect(timeline.find(({ type }) => type === 'attempt')).toMatchObject({
      sessions: [
        { host: 'down.two.example', reply: null, error: expect.stringContaining('refused') },
        { host: 'mx.two.example', reply: { code: 250 } },
      ],
    });
  });
});

/** Replies `reply` the first `times` times, then accepts. */
function rejectTimes(times: number, reply: string): () => string | undefined {
  let left = times;
  return () => (left-- > 0 ? reply : undefined);
}
