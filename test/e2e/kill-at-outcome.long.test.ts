// Long: kills the daemon at chosen moments of a delivery.
import { expect, it } from 'vitest';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { startSetupForTest } from '../support/sending-setup.ts';
import type { SinkPhase } from '../support/smtp-sink-session.ts';

/*
 * The daemon is killed at a chosen moment of one delivery.
 *
 *   test ──HTTP──▶ postrider (kill -9, start) ──SMTP──▶ sink, which kills it before it replies
 */
it.each<[moment: string, phase: SinkPhase, copies: number]>([
  ['before the message, sends it once', 'data', 1],
  // The window of the guarantee: the destination has the message, and its reply is not on disk.
  ['between the acceptance and its commit, sends the message again', 'dot', 2],
])('a daemon that is killed %s', async (_moment, phase, copies) => {
  const { daemon, sink, send, waitForStatus, waitForEmptyQueue } = await startSetupForTest();
  let isFirst = true;
  const killed = new Promise<unknown>((resolve) => {
    const kill = () => {
      if (isFirst) resolve(daemon.kill('SIGKILL'));
      isFirst = false;
      return undefined;
    };
    sink.program({ script: { [phase]: kill } });
  });
  const messageId = await send('ada');
  await killed;
  expect(sink.count).toBe(copies - 1);

  await daemon.restart();
  const { attempts, timeline } = await waitForStatus(messageId, 'delivered');
  await waitForEmptyQueue();
  // The attempt that was killed has left no trace but the start of the delivery.
  expect(attempts).toBe(1);
  expect(timeline.map(({ type, event }) => event ?? type)).toEqual([
    'email_sent',
    'attempt',
    'email_delivered',
  ]);
  expect(sink.count).toBe(copies);
  expect(new Set(sink.messages.map(({ to }) => to.join()))).toEqual(new Set(['ada@empfang.example']));
  expect(await readLedger(daemon.api)).toMatchObject({ accepted: 1, delivered: 1, queued: 0 });
  expect(await faultsInEvents(daemon.api)).toEqual([]);
});
