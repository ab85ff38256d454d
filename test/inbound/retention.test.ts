import { expect, it, onTestFinished } from 'vitest';
import { DAY } from '../../src/core/clock.ts';
import { createLog } from '../../src/core/log.ts';
import { createRetention } from '../../src/events/retention.ts';
import { eventually } from '../support/eventually.ts';
import { granted } from '../support/refusal.ts';
import { startInboundMx, storeMail } from './setup.ts';

const INBOUND_DAYS = 30;
/** Tables of received mail, and those that belong to it. */
const TABLES = ['inbound_mails', 'inbound_sources', 'inbound_parts', 'inbound_routes'] as const;

async function start() {
  const mx = await startInboundMx({ parses: false });
  const config = { limits: { bodyDays: 7, eventDays: 90, inboundDays: INBOUND_DAYS } };
  const log = createLog({ level: 'silent', hashAddresses: true });
  const retention = createRetention({ ...mx, log, config });
  onTestFinished(() => retention.stop());
  const store = (receivedAt: number, parts = 1) =>
    mx.writer.run((tx) => {
      const id = storeMail(mx, { receivedAt });
      const source = tx.inbound.byId(id)?.source_seq ?? 0;
      for (let n = 1; n < parts; n++) tx.inbound.insertPart(source, n, Buffer.alloc(1000, 'x'));
      return { id, source };
    });
  return {
    ...mx,
    retention,
    store,
    rows: () =>
      TABLES.map((table) => mx.db.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get()),
    storedBytes: () => mx.tables.accountLimits.storedBytes('acct_one'),
  };
}

it('deletes old mail with its bytes, and nothing else', async () => {
  const mx = await start();
  await mx.route('support@in.example.com');
  const now = mx.clock.now();
  const before = mx.storedBytes();
  await mx.store(now - 90 * DAY);
  await mx.store(now - INBOUND_DAYS * DAY - 1, 5);
  const old = mx.storedBytes() - before;
  const young = await mx.store(now - INBOUND_DAYS * DAY);
  // It takes more when it is parsed, which would be at the same time.
  await mx.writer.run(() => mx.db.prepare("UPDATE inbound_mails SET status = 'parsed'").run());
  const all = mx.storedBytes();
  expect(await mx.retention.run()).toMatchObject({ inboundMails: 2, events: 0, messages: 0 });
  mx.inbound.background.start();
  await eventually('the bytes to be deleted', () => mx.rows()[1] === 1);
  expect(mx.rows()).toEqual([1, 1, 1, 1]);
  expect(mx.storedBytes()).toBe(all - old);
  const { bytes } = granted(await mx.inbound.file('acct_one', young.id, 'raw'));
  expect(bytes.toString()).toContain('Subject: Hello');
});

it('completes a deletion and a reception that a crash interrupted', async () => {
  const mx = await start();
  const old = await mx.store(mx.clock.now() - 90 * DAY, 6);
  const kept = await mx.store(mx.clock.now(), 3);
  expect(await mx.retention.run()).toMatchObject({ inboundMails: 1 });
  // Each commit of a deletion is a state that a crash can leave.
  await mx.writer.run((tx) => {
    expect(tx.inbound.removeParts(old.source, 2)).toBe(2);
    const begun = tx.inbound.insertSource('acct_one', 500_000);
    tx.inbound.insertPart(begun, 0, Buffer.alloc(256 * 1024));
  });
  expect(await mx.inbound.file('acct_one', old.id, 'raw')).toMatchObject({ code: 'INBOUND_NOT_FOUND' });
  mx.inbound.background.start();
  await eventually('the rest to be deleted', () => mx.rows()[1] === 1);
  expect(mx.rows()).toEqual([1, 1, 3, 0]);
  expect(granted(await mx.inbound.file('acct_one', kept.id, 'raw')).bytes.length).toBeGreaterThan(2000);
});
