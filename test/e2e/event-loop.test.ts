import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOSTNAME, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { hostileBodies } from '../support/hostile-bodies.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * No request holds up the others: whatever a body holds, no turn of the daemon's event loop is long. What is
 * measured is CPU time of the main thread (support/event-loop-probe.js), compared with that of work that the same
 * thread did when it started: so neither other programs nor the machine's speed decide.
 *
 *   test ──HTTP, made to be expensive──▶ postrider, with a probe in its event loop
 */
const PROBE = new URL('../support/event-loop-probe.js', import.meta.url).pathname;
const OWN = { from: 'a@kunde.example', to: `delivered@simulator.${HOSTNAME}` };
const BODIES = hostileBodies(OWN);
/** Turns of this many times the reference are too long: some 50 ms where the reference takes 20. */
const MAX_REFERENCES = 2.5;
/** The shortest of the longest turns counts: a garbage collection may come at any time. */
const TRIES = 4;
const MIB = 1024 * 1024;

let dns: DnsServer;
let daemon: RunningDaemon;
const dir = mkdtempSync(join(tmpdir(), 'postrider-turns-'));
const turnsFile = join(dir, 'turns');
let referenceMs = 0;

beforeAll(async () => {
  writeFileSync(turnsFile, '');
  dns = await startDnsServer();
  const settings = {
    'dns.resolvers': [dns.address],
    'delivery.allowPrivateNetworks': true,
    'log.level': 'info',
  };
  daemon = await startDaemon(settings, { NODE_OPTIONS: `--import ${PROBE}`, TEST_TURNS_FILE: turnsFile });
  referenceMs = Number(/^reference (.*)$/m.exec(readFileSync(turnsFile, 'utf8'))?.[1]);
  await verifiedDomain(daemon, dns, 'kunde.example');
});
afterAll(async () => {
  await daemon?.stop();
  await dns?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** The answer, and the longest turn that the daemon took meanwhile, ms. */
async function turnsOf(name: string, text: string) {
  const { path, headers = {} } = BODIES[name] ?? { path: '' };
  writeFileSync(turnsFile, '');
  const answer = await daemon.api.call('POST', path, { rawBody: text, headers });
  await daemon.metric('postrider_queue_messages');
  const turns = readFileSync(turnsFile, 'utf8').split('\n').map(Number);
  return { answer, longest: Math.max(...turns) };
}

describe('a turn of the event loop stays short', () => {
  it.each(Object.keys(BODIES))('with %s', async (name) => {
    const text = BODIES[name]?.body() ?? '';
    let shortest = Number.POSITIVE_INFINITY;
    for (let tried = 0; tried < TRIES && shortest > referenceMs * MAX_REFERENCES; tried++) {
      const { answer, longest } = await turnsOf(name, text);
      expect(answer.status).toBeLessThan(500);
      // Of a batch, 500 errors of their own.
      expect(answer.text.length).toBeLessThan(answer.status < 300 ? MIB : 16 * 1024);
      shortest = Math.min(shortest, longest);
    }
    expect(shortest / referenceMs).toBeLessThan(MAX_REFERENCES);
  });
});

it('a batch of 590,000 attachments takes a few times its own size of memory', async () => {
  const name = 'a batch of one message with 590,000 attachments';
  const text = BODIES[name]?.body() ?? '';
  const resident = () => daemon.metric('process_resident_memory_bytes');
  const before = await resident();
  for (let round = 0; round < 4; round++) await turnsOf(name, text);
  expect(((await resident()) - before) / text.length).toBeLessThan(8);
});
