// Long: stops the daemon under load, with deliveries that do not end.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Exit } from '../support/child.ts';
import { eventually } from '../support/eventually.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';

/*
 * SIGTERM while the daemon accepts and delivers messages.
 *
 *   test: 8 senders ──HTTP──▶ postrider (SIGTERM, start again) ──SMTP──▶ sink
 */
let setup: SendingSetup;

beforeAll(async () => {
  setup = await startSendingSetup({}, { script: { dot: { reply: '250 2.0.0 OK', delayMs: 5 } } });
});
afterAll(() => setup?.stop());

describe('SIGTERM during sends', () => {
  it('exits with 0, and loses and repeats no message', async () => {
    const { daemon, sink, waitForEmptyQueue } = setup;
    const mails = Array.from({ length: 240 }, (_, n) => ({
      key: randomUUID(),
      to: `user${n}@empfang.example`,
    }));
    const answered: string[] = [];
    const stopped: Promise<Exit>[] = [];

    const sendAll = async (queue: typeof mails) => {
      const left: typeof mails = [];
      const sender = async () => {
        for (let mail = queue.shift(); mail !== undefined; mail = queue.shift()) {
          const { key, to } = mail;
          const body = { ...SHORT_MAIL, from: 'a@kunde.example', to };
          const status = await daemon.api.send(body, { 'Idempotency-Key': key }).then(
            (response) => response.status,
            () => 0,
          );
          // 503 or no connection: the daemon is shutting down and has not accepted the message.
          if (status !== 200) left.push(mail);
          else if (answered.push(to) === 90) stopped.push(daemon.kill('SIGTERM'));
        }
      };
      await Promise.all(Array.from({ length: 8 }, sender));
      return left;
    };

    const left = await sendAll([...mails]);
    expect(await Promise.all(stopped)).toEqual([{ code: 0, signal: null }]);
    expect(left.length).toBeGreaterThan(0);
    const answeredBefore = answered.length;
    await daemon.restart();
    expect((await readLedger(daemon.api)).accepted).toBe(answeredBefore);

    expect(await sendAll(left)).toEqual([]);
    await sink.waitFor(mails.length);
    await waitForEmptyQueue();
    const accepted = mails.length;
    expect(await readLedger(daemon.api)).toEqual({
      accepted,
      delivered: accepted,
      bounced: 0,
      failed: 0,
      queued: 0,
    });
    expect(sink.count).toBe(accepted);
    expect(new Set(sink.messages.flatMap(({ to }) => to)).size).toBe(accepted);
    expect(await faultsInEvents(daemon.api)).toEqual([]);
  });

  it('completes an SMTP transaction in progress', async () => {
    const { daemon, sink, send } = setup;
    const before = sink.count;
    sink.program({ script: { dot: { reply: '250 2.0.0 at last', delayMs: 1500 } } });
    const messageId = await send('slow');
    await eventually('the transaction to begin', () =>
      sink.sessions.some(({ commands }) => {
        const rcpt = commands.findIndex((command) => command.includes('<slow@'));
        return rcpt !== -1 && commands.indexOf('DATA', rcpt) !== -1;
      }),
    );
    expect(await daemon.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(sink.count).toBe(before + 1);
    await daemon.restart();
    expect((await daemon.api.message(messageId)).status).toBe('delivered');
    expect(sink.count).toBe(before + 1);
    sink.program({ script: {} });
  });
});

describe('a second daemon on the same data', () => {
  it('does not start, until the first was killed', async () => {
    const { daemon, send, waitForStatus } = setup;
    const second = await daemon.tryCli('serve');
    expect(second.code).toBe(1);
    expect(second.stderr + second.stdout).toMatch(/another|already|running|in use/i);
    await waitForStatus(await send('still'), 'delivered');
    await daemon.kill('SIGKILL');
    await daemon.restart();
    await waitForStatus(await send('again'), 'delivered');
  });
});
