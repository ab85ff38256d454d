import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { createMailReader } from '../../src/smtp/parse-pool.ts';
import { dsn } from './mails.ts';
import { startReader } from './mx-house.ts';

const log = createLog({ level: 'silent', hashAddresses: false });

/** A thread that answers every mail but three: at one it hangs, at one it dies, at one it eats all memory. */
const FRAGILE = `
const { parentPort } = require('node:worker_threads');
parentPort.on('message', ({ raw }) => {
  const text = Buffer.from(raw).toString();
  if (text === 'hang') for (;;);
  if (text === 'die') process.exit(1);
  if (text === 'throw') throw new Error('broken');
  if (text === 'eat') for (const all = []; ; ) all.push(new Array(1e5).fill(text));
  parentPort.postMessage({ parsed: { kind: text }, fingerprint: new Uint8Array(16) });
});`;

function reader(startThread: () => Worker, timeMs?: number) {
  let started = 0;
  const made = createMailReader({
    purpose: 'incoming',
    startThread: () => {
      started++;
      return startThread();
    },
    log,
    ...(timeMs === undefined ? {} : { timeMs }),
  });
  onTestFinished(() => made.stop());
  return {
    read: async (text: string, isProven = true) => made.read(Buffer.from(text), isProven),
    isFull: () => made.read(Buffer.from('x'), true) === null,
    started: () => started,
    stop: made.stop,
  };
}

const fragile = () => new Worker(FRAGILE, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 32 } });

describe('the thread that reads', () => {
  it('says what a mail is, and knows it again by its body', async () => {
    const { read } = reader(startReader);
    const mail = dsn();
    const readings = await Promise.all(
      [mail, `Received: by another\r\n${mail}`, `${mail} `].map((text) => read(text)),
    );
    const fingerprints = readings.map((reading) => {
      if (reading === null || 'unreadable' in reading) throw new Error('not read');
      expect(reading.parsed.kind).toBe('dsn');
      return Buffer.from(reading.fingerprint).toString('hex');
    });
    expect(fingerprints[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(fingerprints[1]).toBe(fingerprints[0]);
    expect(fingerprints[2]).not.toBe(fingerprints[0]);
  });

  it('reads what is proven ours before the mass of what anybody may send', async () => {
    const { read } = reader(fragile);
    const order: string[] = [];
    const noted = (text: string, isProven: boolean) => read(text, isProven).then(() => order.push(text));
    const strange = Array.from({ length: 50 }, (_, n) => noted(`strange ${n}`, false));
    const ours = Array.from({ length: 50 }, (_, n) => noted(`ours ${n}`, true));
    await Promise.all([...strange, ...ours]);
    // Four were with the thread already.
    expect(order.indexOf('ours 0')).toBe(4);
    expect(order.filter((text) => text.startsWith('ours'))).toEqual(
      Array.from({ length: 50 }, (_, n) => `ours ${n}`),
    );
    expect(order.filter((text) => text.startsWith('strange'))).toEqual(
      Array.from({ length: 50 }, (_, n) => `strange ${n}`),
    );
  });

  it.each([
    ['hang', 'too-long', 1],
    ['die', 'failed', 2],
    ['throw', 'failed', 2],
    ['eat', 'failed', 2],
  ])(
    'a mail that makes it %s is unreadable: %s; those behind it are read',
    async (poison, unreadable, deaths) => {
      const { read, started } = reader(fragile, 1500);
      const [before, bad, after] = await Promise.all([read('one'), read(poison), read('two')]);
      expect(before).toMatchObject({ parsed: { kind: 'one' } });
      expect(bad).toEqual({ unreadable });
      expect(after).toMatchObject({ parsed: { kind: 'two' } });
      expect(started()).toBe(deaths + 1);
    },
    20_000,
  );

  it('takes no more mails than it can remember', async () => {
    const { isFull } = reader(fragile);
    const full = Array.from({ length: 5100 }, isFull);
    expect(full.indexOf(true)).toBeGreaterThan(4000);
  });

  it('looks at nothing more once it is stopped', async () => {
    const { read, stop } = reader(fragile);
    const waiting = [read('hang'), read('one')];
    await stop();
    expect(await Promise.all(waiting)).toEqual([{ unreadable: 'stopping' }, { unreadable: 'stopping' }]);
  });
});
