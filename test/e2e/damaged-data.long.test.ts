// Long: waits for the grace period of a stop whose results cannot be recorded.
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * Parts of the database cannot be read or written: messages that depend on them wait, all others are delivered.
 *
 *   test ──HTTP──▶ postrider ──SMTP──▶ sink
 *   test ──SQL───▶ database of postrider, to damage it
 */
let setup: SendingSetup;

beforeAll(async () => {
  setup = await startSendingSetup();
});
afterAll(() => setup?.stop());

function damage(sql: string): void {
  const db = new Database(join(setup.daemon.dataDir, 'postrider.db'), { timeout: 5000 });
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
}

describe('an events table that cannot be written', () => {
  it('rejects sends with 503 and sends nothing until it can be written', async () => {
    const { daemon, sink, send, waitForStatus } = setup;
    damage('ALTER TABLE events RENAME TO events_damaged');
    const mail = { ...SHORT_MAIL, from: 'a@kunde.example', to: 'x@empfang.example' };
    const acceptedBefore: string[] = [];
    const rejected = await eventually('sends to be rejected', async () => {
      const response = await daemon.api.send(mail);
      if (response.status === 200) acceptedBefore.push(response.data.messageId);
      return response.status === 503 ? response : null;
    });
    expect(rejected.text).toContain('outcomes of deliveries cannot be recorded');
    expect((await fetch(`${daemon.baseUrl}/readyz`)).status).toBe(503);
    expect(sink.count).toBe(0);
    damage('ALTER TABLE events_damaged RENAME TO events');
    const messageId = await eventually('sends to be accepted', async () => {
      const response = await daemon.api.send(mail);
      return response.status === 200 ? response.data.messageId : null;
    });
    for (const id of [...acceptedBefore, messageId, await send('later')])
      await waitForStatus(id, 'delivered');
  });
});

describe('SIGTERM while outcomes cannot be recorded', () => {
  /** Sends two messages, and damages a table before the destination has accepted them. Resolves when it has. */
  async function acceptedWhile(table: string): Promise<string[]> {
    const { sink, send } = setup;
    const transactions = () =>
      sink.sessions.flatMap(({ commands }) => commands.filter((command) => command === 'DATA')).length;
    const before = { transactions: transactions(), messages: sink.count };
    sink.program({ script: { dot: { reply: '250 2.0.0 OK', delayMs: 1000 } } });
    const messageIds = [await send('a'), await send('b')];
    await eventually('the transactions to begin', () => transactions() === before.transactions + 2);
    damage(`ALTER TABLE ${table} RENAME TO ${table}_damaged`);
    await sink.waitFor(before.messages + 2);
    return messageIds;
  }

  it('retries until the end of the grace period, logs their number, and exits with 1', async () => {
    const { daemon, sink, waitForStatus } = setup;
    const messageIds = await acceptedWhile('queue');
    expect(await daemon.kill('SIGTERM')).toEqual({ code: 1, signal: null });
    expect(daemon.log()).toMatch(/"messages":2,"msg":"outcomes could not be recorded before the stop/);
    damage('ALTER TABLE queue_damaged RENAME TO queue');
    sink.program({ script: {} });
    await daemon.restart();
    for (const messageId of messageIds) await waitForStatus(messageId, 'delivered');
  });

  it('records the status of messages whose attempts cannot be stored, and sends them once', async () => {
    const { daemon, sink, waitForStatus } = setup;
    const messageIds = await acceptedWhile('attempts');
    const { count } = sink;
    expect(await daemon.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(daemon.log()).toContain('outcome cannot be recorded; recorded only the status of its message');
    damage('ALTER TABLE attempts_damaged RENAME TO attempts');
    sink.program({ script: {} });
    await daemon.restart();
    for (const messageId of messageIds) await waitForStatus(messageId, 'delivered');
    expect(sink.count).toBe(count);
  });
});

describe('a DKIM key that cannot be decrypted', () => {
  it('parks only the messages of its domain', async () => {
    const { daemon, dns, sink, send } = setup;
    const before = sink.count;
    await verifiedDomain(daemon, dns, 'zweit.example');
    await daemon.kill('SIGKILL');
    // A changed byte in the authentication tag of the encrypted key.
    damage(
      `UPDATE dkim_keys SET private_key = CAST(substr(private_key, 1, length(private_key) - 1) || x'00' AS BLOB)
       WHERE lane = 'primary' AND domain_id = (SELECT domain_id FROM domains WHERE name = 'kunde.example')`,
    );
    await daemon.restart();
    const stuck = await Promise.all(Array.from({ length: 5 }, (_, n) => send(`stuck${n}`)));
    const others = Array.from({ length: 30 }, (_, n) =>
      daemon.api.send({ ...SHORT_MAIL, from: 'a@zweit.example', to: `user${n}@empfang.example` }),
    );
    await Promise.all(others);
    await sink.waitFor(before + 30);
    await eventually('the domain to be parked', async () => {
      const text = await (await fetch(`${daemon.baseUrl}/metrics`)).text();
      return text.includes('postrider_delivery_parked{kind="domain"} 1');
    });
    for (const id of stuck) expect((await daemon.api.message(id)).status).toBe('queued');
    expect(await daemon.metric('postrider_deliveries_in_flight')).toBe(0);
    expect(daemon.log()).toContain('message cannot be prepared');
    // The same after a start with these messages in the queue.
    await daemon.kill('SIGKILL');
    await daemon.restart();
    const again = await daemon.api.send({ ...SHORT_MAIL, from: 'a@zweit.example', to: 'x@empfang.example' });
    expect(again.status).toBe(200);
    await sink.waitFor(before + 31);
    expect(sink.count).toBe(before + 31);
  });
});
