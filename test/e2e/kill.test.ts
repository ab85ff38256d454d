import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { onDisk } from '../support/on-disk.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { type SinkProcess, startSinkProcess } from '../support/sink-process.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * The power goes off, twice, in the middle of 2,000 sends.
 *
 *   test: 16 senders ──HTTP──▶ postrider (kill -9, start, kill -9, start) ──SMTP──▶ sink, a process of its own
 *
 * A sender that gets no answer asks again with the same Idempotency-Key, as a client would.
 */
const SENDS = 2000;
const SENDERS = 16;
const KILL_AT = [600, 1300];

let dns: DnsServer;
let sink: SinkProcess;
let daemon: RunningDaemon;

beforeAll(async () => {
  dns = await startDnsServer();
  sink = await startSinkProcess({ delayMs: 5 });
  daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
    'log.level': 'warn',
  });
  publishMailHost(dns, 'empfang.example');
  await verifiedDomain(daemon, dns, 'kunde.example');
});
afterAll(async () => {
  await daemon?.stop();
  await sink?.stop();
  await dns?.close();
});

describe('kill -9 in the middle of 2,000 sends', () => {
  it('loses none of the accepted messages, and repeats at most those that were in flight', async () => {
    const accepted = new Map<number, string>();
    const kills: Kill[] = [];
    let restarted = Promise.resolve();

    const killAndRestart = async () => {
      const answered = accepted.size;
      await daemon.kill('SIGKILL');
      // The sink hears of the dead connections at once; what it took by then, it counts.
      const counts = await eventually('the sink to be alone', async () => {
        const now = await sink.counts();
        return now.open === 0 ? now : null;
      });
      const { delivered, sending } = onDisk(daemon.dataDir);
      kills.push({ answered, inHand: sending, unrecorded: counts.ids - delivered });
      await daemon.restart();
    };

    let next = 0;
    const sender = async () => {
      while (next < SENDS) {
        const number = next++;
        const messageId = await sendUntilAnswered(number, () => restarted);
        accepted.set(number, messageId);
        if (accepted.size === KILL_AT[kills.length]) restarted = killAndRestart();
      }
    };
    await Promise.all(Array.from({ length: SENDERS }, sender));
    await restarted;
    expect(kills).toHaveLength(KILL_AT.length);
    expect(accepted.size).toBe(SENDS);

    await eventually(
      'the queue to be empty',
      async () => (await daemon.metric('postrider_queue_messages')) === 0,
      {
        ms: 90_000,
        everyMs: 250,
      },
    );
    const messages = await daemon.api.allMessages();
    const status = new Map(messages.map((message) => [message.messageId, message.status]));
    const lost = [...accepted.values()].filter((messageId) => status.get(messageId) !== 'delivered');
    const counts = await sink.counts();
    const unrecorded = kills.reduce((sum, kill) => sum + kill.unrecorded, 0);
    const each = (number: keyof Kill) => kills.map((kill) => kill[number]).join(' and ');
    console.log(
      `killed after ${each('answered')} of ${SENDS} answers, with ${each('inHand')} messages taken from the queue, ` +
        `${each('unrecorded')} of them at the destination already: lost ${lost.length}, sent twice ${counts.duplicates}`,
    );

    expect(lost).toEqual([]);
    // Sent twice is exactly what the destination had taken and the disk did not know of yet; and that is never
    // more than what was in hand.
    expect(counts.duplicates).toBe(unrecorded);
    for (const kill of kills) expect(kill.unrecorded).toBeLessThanOrEqual(kill.inHand);
    // Both ends agree: one message for each key, each at the sink, none but the repeated ones twice.
    expect(await readLedger(daemon.api)).toEqual({
      accepted: SENDS,
      delivered: SENDS,
      bounced: 0,
      failed: 0,
      queued: 0,
    });
    expect(counts).toMatchObject({ ids: SENDS, recipients: SENDS, messages: SENDS + counts.duplicates });
    expect(await faultsInEvents(daemon.api)).toEqual([]);
  });
});

/** Sends until there is an answer, over as many restarts as it takes; returns the message id. */
async function sendUntilAnswered(number: number, restarted: () => Promise<void>): Promise<string> {
  const key = randomUUID();
  const mail = { ...SHORT_MAIL, from: 'a@kunde.example', to: `user${number}@empfang.example` };
  for (;;) {
    try {
      const answer = await daemon.api.send(mail, { 'Idempotency-Key': key });
      if (answer.status === 200) return answer.data.messageId;
      throw new Error(`refused: ${answer.text}`);
    } catch (error) {
      // fetch: the connection was refused or broke off. Whether the mail was accepted, the key will tell.
      if (!(error instanceof TypeError)) throw error;
      await restarted();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

interface Kill {
  /** Sends answered with 200 by then. */
  answered: number;
  /** Messages taken from the queue, without an outcome on disk. */
  inHand: number;
  /** Of those, the ones that the sink had taken. */
  unrecorded: number;
}
