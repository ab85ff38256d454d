// Serial: compares the turns of the event loop under the largest requests.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOSTNAME, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { hostileBodies } from '../support/hostile-bodies.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * No request body causes a long turn of the daemon's event loop. The test measures the CPU time of the main thread
 * (support/event-loop-probe.js) relative to that of a reference that the same thread runs right after it, so that
 * neither other processes nor the speed of the machine decide.
 *
 *   test ──HTTP, expensive bodies──▶ postrider, with a probe in its event loop
 */
const PROBE = new URL('../support/event-loop-probe.js', import.meta.url).pathname;
const BODIES = hostileBodies({ from: 'a@kunde.example', to: `delivered@simulator.${HOSTNAME}` });
/** The longest allowed turn in multiples of the reference: some 50 ms where the reference takes 20. */
const MAX_REFERENCES = 2.5;
/** A garbage collection may lengthen any turn, so a body passes when one of its tries does. */
const MAX_TRIES = 4;
const MIB = 1024 * 1024;

let dns: DnsServer;
let daemon: RunningDaemon;
const dir = mkdtempSync(join(tmpdir(), 'postrider-turns-'));
const turnsFile = join(dir, 'turns');

beforeAll(async () => {
  writeFileSync(turnsFile, '');
  dns = await startDnsServer();
  const settings = {
    'dns.resolvers': [dns.address],
    'delivery.allowPrivateNetworks': true,
    'log.level': 'info',
  };
  daemon = await startDaemon(settings, { NODE_OPTIONS: `--import ${PROBE}`, TEST_TURNS_FILE: turnsFile });
  await verifiedDomain(daemon, dns, 'kunde.example');
});
afterAll(async () => {
  await daemon?.stop();
  await dns?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** Sends a body; returns the response and the longest turn until the next response, in multiples of the reference. */
async function sendBody(name: string, text: string) {
  const { path, headers = {} } = BODIES[name] ?? { path: '' };
  writeFileSync(turnsFile, '');
  const response = await daemon.api.call('POST', path, { rawBody: text, headers });
  await daemon.metric('postrider_queue_messages');
  const turns = readFileSync(turnsFile, 'utf8').split('\n').map(Number);
  return { response, longest: Math.max(...turns) };
}

describe('a turn of the event loop stays short', () => {
  it.each(Object.keys(BODIES))('with %s', async (name) => {
    const text = BODIES[name]?.body() ?? '';
    let shortest = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < MAX_TRIES && shortest > MAX_REFERENCES; tries++) {
      const { response, longest } = await sendBody(name, text);
      expect(response.status).toBeLessThan(500);
      // A batch is answered 200 with up to 500 errors.
      expect(response.text.length).toBeLessThan(response.status < 300 ? MIB : 16 * 1024);
      shortest = Math.min(shortest, longest);
    }
    expect(shortest).toBeLessThan(MAX_REFERENCES);
  });
});

it('a batch of 590,000 attachments takes less memory than eight times its size', async () => {
  const name = 'a batch of one message with 590,000 attachments';
  const text = BODIES[name]?.body() ?? '';
  const resident = () => daemon.metric('process_resident_memory_bytes');
  const before = await resident();
  for (let round = 0; round < 4; round++) await sendBody(name, text);
  expect(((await resident()) - before) / text.length).toBeLessThan(8);
});
