// Long: waits for the intervals between attempts.
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { TimelineEntry } from '../support/api-client.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { publishMailHost } from '../support/recipients.ts';
import { type SendingSetup, startSendingSetup, startSetupForTest } from '../support/sending-setup.ts';
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
      { 'delivery.retry.first': '6s' },
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

describe('with short delays', () => {
  let setup: SendingSetup;

  beforeAll(async () => {
    setup = await startSendingSetup(
      { 'delivery.retry.first': '500ms', 'delivery.retry.factor': 3 },
      { recipients: { 'thrice@': rejectTimes(3, '451 4.3.0 not now') } },
    );
  });
  afterAll(() => setup?.stop());

  it('a recipient who is rejected temporarily is retried after increasing delays', async () => {
    const { send, waitForStatus } = setup;
    const { timeline } = await waitForStatus(await send('thrice'), 'delivered');
    const delays = timeline
      .filter(({ event }) => event === 'email_delayed')
      .map(({ nextAttemptAt, timestamp }) => Date.parse(String(nextAttemptAt)) - Date.parse(timestamp));
    expect(delays).toHaveLength(3);
    // The factor is 3, with a jitter of ±10 %.
    for (const [n, delay] of delays.entries())
      expect(Math.abs(delay / (500 * 3 ** n) - 1)).toBeLessThan(0.15);
  });

  it('a host that is down receives the message when it is up again', async () => {
    const { dns, sink, send, waitForStatus, daemon } = setup;
    const host = '127.0.0.6';
    publishMailHost(dns, 'down.example', host);
    const messageId = await send('down', 'down.example');
    const { timeline } = await waitForStatus(messageId, 'deferred');
    expect(timeline.at(-1)).toMatchObject({ event: 'email_delayed', classification: 'network-error' });
    const restored = await startSink({ host, port: sink.port });
    onTestFinished(() => restored.close());
    await waitForStatus(messageId, 'delivered');
    expect(restored.count).toBe(1);
    expect(await faultsInEvents(daemon.api)).toEqual([]);
  });
});

describe('with a long delay', () => {
  let setup: SendingSetup;

  beforeAll(async () => {
    setup = await startSendingSetup(
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
  });
  afterAll(() => setup?.stop());

  it('a host that closes the connection after the greeting is retried', async () => {
    const { dns, sink, send, waitForStatus } = setup;
    const closing = await startSink({ host: '127.0.0.7', port: sink.port, script: { ehlo: 'drop' } });
    onTestFinished(() => closing.close());
    publishMailHost(dns, 'closing.example', closing.host);
    const { timeline } = await waitForStatus(await send('dropped', 'closing.example'), 'deferred');
    expect(timeline.at(-1)).toMatchObject({ event: 'email_delayed', classification: 'network-error' });
  });

  it('a message is retried sooner after greylisting', async () => {
    const { send, waitForStatus, sink } = setup;
    const { timeline } = await waitForStatus(await send('greylisted'), 'delivered');
    expect(timeline.find(({ event }) => event === 'email_delayed')).toMatchObject({
      classification: 'greylisted',
    });
    expect(sink.count).toBe(1);
  });

  it('a message is delivered to the next MX when one is down', async () => {
    const { dns, send, waitForStatus, sink } = setup;
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
