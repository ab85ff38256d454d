import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, MINUTE } from '../../src/core/clock.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type Dante, startDante } from '../support/dante.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * Source addresses of the built program, seen by the destination:
 *
 *   postrider ──127.0.0.11 (warm-up, 3 a day)────────────────▶ sink
 *             ──Dante, which connects from 127.0.0.12────────▶ sink
 */
const required = requirePrograms('dante');
const NEAR = '127.0.0.11';
const FAR = '127.0.0.12';
const DOMAIN = 'gmail.com';
/** Maximum duration of this file on a busy machine. */
const DURATION_MS = MINUTE;

describe.skipIf(required.missing)(`source addresses${required.reason}`, () => {
  let dns: DnsServer;
  let sink: Sink;
  let dante: Dante;
  let daemon: RunningDaemon;

  beforeAll(async () => {
    // The limit applies to each day (UTC): all tests run on one day.
    const restOfDayMs = DAY - (Date.now() % DAY);
    if (restOfDayMs < DURATION_MS) await sleep(restOfDayMs);
    dns = await startDnsServer();
    sink = await startSink();
    dante = await startDante({ external: FAR });
    publishMailHost(dns, DOMAIN, sink.host);
    daemon = await startDaemon({
      'dns.resolvers': [dns.address],
      'delivery.port': sink.port,
      'delivery.allowPrivateNetworks': true,
      'delivery.warmup.schedule': [3, 3],
      'delivery.retry.first': '1s',
      // Each message has a separate connection, so that none uses one that a stopped proxy still relays.
      'delivery.shaping': [{ match: `mx.${DOMAIN}`, connections: 4, idleSeconds: 0 }],
      'delivery.egress': [
        { name: 'near', address: NEAR, publicAddress: '192.0.2.25', warmup: { started: today(), days: 30 } },
        { name: 'far', address: FAR, publicAddress: '192.0.2.25', proxy: dante.url },
      ],
    });
    await verifiedDomain(daemon, dns, 'kunde.example');
  });
  afterAll(async () => {
    await daemon?.stop();
    await dante?.stop();
    await sink?.close();
    await dns?.close();
  });

  const send = async (count: number) => {
    const before = sink.count;
    for (let n = 0; n < count; n++)
      await daemon.api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to: `u${before + n}@${DOMAIN}` });
  };
  const delivered = (count: number) =>
    eventually(`${count} messages at the sink`, () => (sink.count === count ? true : null));
  const sources = () => {
    const counts: Record<string, number> = {};
    for (const { remoteAddress, messages } of sink.sessions)
      counts[remoteAddress] = (counts[remoteAddress] ?? 0) + messages;
    return counts;
  };

  it('sends as much as the warm-up allows from the new address, and the rest through the proxy', async () => {
    await send(8);
    await delivered(8);
    const seen = sources();
    expect(Object.keys(seen).every((address) => [NEAR, FAR].includes(address))).toBe(true);
    expect(seen[NEAR] ?? 0).toBeLessThanOrEqual(3);
    expect(seen[FAR] ?? 0).toBeGreaterThanOrEqual(5);
    const list = JSON.parse(await daemon.cli('egress', 'list', '--json'));
    expect(list).toMatchObject([
      { entry: 'near', warmup: 'day 1 of 30', today: { delivered: seen[NEAR] ?? 0 } },
      { entry: 'far', proxy: `127.0.0.1:${dante.port}`, today: { delivered: seen[FAR] } },
    ]);
  });

  it('shows the entry and the address of the proxy in the timeline of a message', async () => {
    const { data } = await daemon.api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to: `t@${DOMAIN}` });
    const message = await eventually('delivery', async () => {
      const shown = JSON.parse(await daemon.cli('message', 'show', data.messageId, '--json'));
      return shown.status === 'delivered' ? shown : null;
    });
    const attempt = message.timeline.find(({ type }: { type: string }) => type === 'attempt');
    const expected = attempt.egress === 'far' ? FAR : NEAR;
    expect(attempt).toMatchObject({ provider: 'Google', sessions: [{ localAddress: expected }] });
  });

  it('counts durably: after kill -9 the address sends no more than its limit', async () => {
    await daemon.kill('SIGKILL');
    await daemon.restart();
    const before = sink.count;
    await send(6);
    await delivered(before + 6);
    expect(sources()[NEAR] ?? 0).toBeLessThanOrEqual(3);
  });

  it('sends from the other address while the proxy is down, and bounces nothing', async () => {
    await daemon.cli('warmup', 'skip', 'near');
    await dante.stop();
    const before = sink.count;
    const ofNear = sources()[NEAR] ?? 0;
    await send(6);
    await delivered(before + 6);
    expect((sources()[NEAR] ?? 0) - ofNear).toBe(6);
    const events = await daemon.api.allEvents({});
    expect(events.some(({ event }) => event === 'email_bounced' || event === 'email_failed')).toBe(false);
  });
});

function today(): string {
  return new Date().toISOString().slice(0, 10);
}
