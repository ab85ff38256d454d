import { describe, expect, it } from 'vitest';
import { createTestScheduling } from './setup.ts';

/*
 * What it costs to find the next messages while many sites with much mail share a few sessions, in counts, which do not
 * depend on the machine. A change that reads rows which are not sent soon, or the same rows again, fails here.
 */
const SITES = 60;
const DESTINATIONS_PER_SITE = 4;
const MESSAGES_PER_KEY = 12;
const SESSIONS = 30;
const SESSION_MS = 100;
const SCAN_INTERVAL_MS = 1000;
/** Some are dropped after a while and read again, above all marketing mail. */
const MAX_MESSAGES_READ = 1.4;
const MAX_PAGES = 0.5;
const MAX_ROWS_WALKED = 3;
const MAX_KEYS_WALKED = 1.2;

interface Reads {
  messages: number;
  pages: number;
  rows: number;
  keys: number;
}

/** Delivers everything over `SESSIONS` sessions that all sites share. */
async function deliverAll(priorities: readonly (0 | 1)[]) {
  let sent = 0;
  const siteOf = (destination: string) => Number(/\d+/.exec(destination)?.[0]) % SITES;
  const env: ReturnType<typeof createTestScheduling> = createTestScheduling({
    connections: 20,
    isOneSite: false,
    routeOf: (destination) => ({
      kind: 'hosts',
      hosts: [{ name: `mx${siteOf(destination)}.test`, addresses: ['192.0.2.1'] }],
      route: null,
      ttl: 60,
    }),
    admits: () => env.started.length < SESSIONS,
  });
  const { tables, clock, put, runScan, started, finish } = env;
  const reads: Reads = { messages: 0, pages: 0, rows: 0, keys: 0 };
  const { ready, readySeqs, keyAfter } = tables.queue;
  tables.queue.ready = (seq) => {
    reads.messages++;
    return ready(seq);
  };
  tables.queue.readySeqs = (key, limit, afterSeq) => {
    const seqs = readySeqs(key, limit, afterSeq);
    reads.pages++;
    reads.rows += seqs.length;
    return seqs;
  };
  tables.queue.keyAfter = (priority, after) => {
    reads.keys++;
    return keyAfter(priority, after);
  };
  const destinations = Array.from({ length: SITES * DESTINATIONS_PER_SITE }, (_, n) => `d${n}.test`);
  for (const priority of priorities)
    for (let n = 0; n < MESSAGES_PER_KEY; n++)
      put(
        destinations.map((name) => `u${n}@${name}`),
        { priority },
      );
  const total = priorities.length * destinations.length * MESSAGES_PER_KEY;
  let scanIn = 0;
  while (sent < total && tables.queue.count() > 0) {
    if (scanIn <= 0) {
      await runScan();
      scanIn = SCAN_INTERVAL_MS;
    }
    for (const { assignment } of started) tables.queue.remove(assignment.message.seq);
    sent += started.length;
    finish(started.length);
    clock.advance(SESSION_MS);
    scanIn -= SESSION_MS;
  }
  return { sent, total, reads };
}

describe('the reads for each message', () => {
  it.each([
    { name: 'many sites share few sessions', priorities: [0] },
    { name: 'marketing mail waits behind transactional mail', priorities: [0, 1] },
  ] as const)('are bounded while $name', async ({ priorities }) => {
    const { sent, total, reads } = await deliverAll(priorities);
    expect(sent).toBe(total);
    expect(reads.messages / sent).toBeLessThanOrEqual(MAX_MESSAGES_READ);
    expect(reads.pages / sent).toBeLessThanOrEqual(MAX_PAGES);
    expect(reads.rows / sent).toBeLessThanOrEqual(MAX_ROWS_WALKED);
    expect(reads.keys / sent).toBeLessThanOrEqual(MAX_KEYS_WALKED);
  });
});
