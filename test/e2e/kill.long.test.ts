// Long: kills the daemon while 16 senders repeat their requests.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Kill, type KillSetup, startKillSetup } from '../support/kill-setup.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { SHORT_MAIL } from '../support/recipients.ts';

/*
 * The daemon is killed twice during 400 sends.
 *
 *   test: 16 senders ──HTTP──▶ postrider (kill -9, start, kill -9, start) ──SMTP──▶ sink, a separate process
 *
 * A sender that gets no response repeats its request with the same Idempotency-Key, as a client does.
 */
const SENDS = 400;
const SENDERS = 16;
const KILL_AT = [120, 260];

let setup: KillSetup;

beforeAll(async () => {
  setup = await startKillSetup(['empfang.example'], { useCaseId: 'tx-local', delayMs: 5 });
});
afterAll(() => setup?.stop());

describe(`kill -9 during ${SENDS} sends`, () => {
  it('loses no accepted message, and repeats at most the messages in flight', async () => {
    const { daemon, sink } = setup;
    const accepted = new Map<number, string>();
    /** `answered`: sends answered with 200. */
    const kills: (Kill & { answered: number })[] = [];
    let restarted = Promise.resolve();

    const killAndRestart = async () => {
      const answered = accepted.size;
      kills.push({ answered, ...(await setup.kill()) });
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
        everyMs: 250,
      },
    );
    const messages = await daemon.api.allMessages();
    const status = new Map(messages.map((message) => [message.messageId, message.status]));
    const lost = [...accepted.values()].filter((messageId) => status.get(messageId) !== 'delivered');
    const counts = await sink.counts();
    const unrecorded = kills.reduce((sum, kill) => sum + kill.unrecorded, 0);
    const each = (number: keyof (typeof kills)[number]) => kills.map((kill) => kill[number]).join(' and ');
    console.log(
      `killed after ${each('answered')} of ${SENDS} responses, with ${each('inFlight')} messages in flight, ` +
        `${each('unrecorded')} of them accepted by the destination: lost ${lost.length}, sent twice ${counts.duplicates}`,
    );

    expect(lost).toEqual([]);
    // A message is sent twice only when the destination accepted it before the outcome was stored.
    expect(counts.duplicates).toBe(unrecorded);
    for (const kill of kills) expect(kill.unrecorded).toBeLessThanOrEqual(kill.inFlight);
    // One message for each key, each at the sink, only the repeated ones twice.
    expect(await readLedger(daemon.api)).toEqual({
      accepted: SENDS,
      delivered: SENDS,
      bounced: 0,
      failed: 0,
      queued: 0,
    });
    expect(counts).toMatchObject({ ids: SENDS, recipients: SENDS, messages: SENDS + counts.duplicates });
    expect(await faultsInEvents(daemon.api)).toEqual([]);
    // The counts by hour are committed with what they count: each message once, also those that were sent twice.
    const { total } = JSON.parse(await daemon.cli('stats', '--json'));
    const deferred = (await daemon.api.allEvents({ event: 'email_delayed' })).length;
    expect(total).toMatchObject({ accepted: SENDS, delivered: SENDS, bounced: 0, failed: 0, deferred });
  });
});

/** Repeats a send across restarts until there is a response; returns the message id. */
async function sendUntilAnswered(number: number, restarted: () => Promise<void>): Promise<string> {
  const key = randomUUID();
  const mail = { ...SHORT_MAIL, from: 'a@kunde.example', to: `user${number}@empfang.example` };
  for (;;) {
    try {
      return (await setup.daemon.api.send(mail, { 'Idempotency-Key': key })).data.messageId;
    } catch (error) {
      // A TypeError of fetch: no connection, or it was closed. The key makes the repetition safe.
      if (!(error instanceof TypeError)) throw error;
      await restarted();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
