// Long: runs every command of the queue while mail is delivered, across kills.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiResponse } from '../support/api-client.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * An operator pauses, explains, purges, reroutes and rejects queued mail, on the command line and with a key.
 *
 *   postrider queue … ──┐
 *   test ──HTTP──▶ postrider (kill -9, start) ──SMTP──▶ mx (MX host of all destinations)
 *                                              └──────▶ other (next hop of rerouted mail)
 */
let dns: DnsServer;
let mx: Sink;
let other: Sink;
let daemon: RunningDaemon;
let operatorKey: string;

const DESTINATIONS = ['paused', 'purged', 'kept', 'rerouted', 'closed', 'keyed', 'healthy'].map(
  (name) => `${name}.example`,
);

beforeAll(async () => {
  dns = await startDnsServer();
  mx = await startSink({ recipients: { '@paused.example': { reply: '250 2.1.5 OK', delayMs: 200 } } });
  other = await startSink();
  daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'delivery.port': mx.port,
    'delivery.allowPrivateNetworks': true,
    'delivery.shaping': [{ match: 'paused.example', connections: 1 }],
    // A suspension lasts as long, a minute at most: a command ends it before.
    'delivery.retry.first': '10m',
  });
  for (const domain of DESTINATIONS) publishMailHost(dns, domain);
  await verifiedDomain(daemon, dns, 'kunde.example');
  const { accountId } = daemon.api;
  const key = await daemon.cli('key', 'create', '--account', accountId, '--scope', 'operator', '--json');
  operatorKey = JSON.parse(key).key;
});
afterAll(async () => {
  await daemon?.stop();
  await mx?.close();
  await other?.close();
  await dns?.close();
});

async function send(count: number, domain: string): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    const { data } = await daemon.api.send({
      ...SHORT_MAIL,
      from: 'Shop <shop@kunde.example>',
      to: `u${n}@${domain}`,
    });
    ids.push(data.messageId);
  }
  return ids;
}

const queue = async (...args: string[]) => JSON.parse(await daemon.cli('queue', ...args, '--json'));
const received = (sink: Sink, domain: string) =>
  sink.messages.flatMap(({ to }) => to).filter((address) => address.endsWith(`@${domain}`));
const statuses = async (ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await daemon.api.message(id)).status));
const delivered = (ids: readonly string[]) =>
  eventually('all to be delivered', async () =>
    (await statuses(ids)).every((status) => status === 'delivered'),
  );
const asOperator = <Data>(method: string, path: string, body?: object): Promise<ApiResponse<Data>> =>
  daemon.api.call(method, path, {
    ...(body === undefined ? {} : { body }),
    headers: { 'X-Api-Key': operatorKey },
  });

async function readyDetails(): Promise<string> {
  return JSON.stringify(await (await fetch(`${daemon.baseUrl}/readyz`)).json());
}

/** Resolves when a message that was sent after everything before has been delivered. */
async function untilIdle(): Promise<void> {
  await delivered(await send(1, 'healthy.example'));
  await eventually(
    'no delivery in flight',
    async () => (await daemon.metric('postrider_deliveries_in_flight')) === 0,
  );
}

describe('a pause', () => {
  it('stops a delivery in progress, survives a kill -9, and loses and repeats nothing', async () => {
    const ids = await send(30, 'paused.example');
    await eventually('first deliveries', () => received(mx, 'paused.example').length >= 3);
    const control = {
      action: 'pause',
      scope: 'destination',
      target: 'Paused.Example',
      reason: 'maintenance',
    };
    expect((await asOperator('POST', '/web-setup/queue/controls', control)).status).toBe(201);
    expect(await readyDetails()).toContain('"maintenance"');
    expect(await daemon.metric('postrider_queue_controls{action="pause",scope="destination"}')).toBe(1);
    await untilIdle();
    const before = received(mx, 'paused.example').length;
    expect(before).toBeLessThan(30);

    await daemon.kill('SIGKILL');
    const waiting = ids.at(-1) ?? '';
    expect(await queue('explain', waiting)).toMatchObject({
      reasons: [{ code: 'paused', text: expect.stringContaining('maintenance') }],
      route: null,
      unknown: [expect.stringContaining('it is not running')],
    });
    await daemon.restart();
    await untilIdle();
    expect(received(mx, 'paused.example')).toHaveLength(before);

    expect(await queue('explain', waiting)).toMatchObject({ status: 'queued', unknown: expect.any(Array) });
    expect(await daemon.cli('queue', 'explain', waiting)).toContain(
      'postrider queue resume --destination paused.example',
    );
    expect(await queue('explain', 'paused.example')).toMatchObject({
      messages: 30 - before,
      control: { action: 'pause', reason: 'maintenance' },
      reasons: [{ code: 'paused' }],
    });
    expect(await queue('list')).toContainEqual(
      expect.objectContaining({ destination: 'paused.example', control: 'pause' }),
    );
    expect(await queue('show', waiting)).toMatchObject({
      state: 'paused',
      control: expect.stringContaining('maintenance'),
    });
    expect(await queue('pauses')).toMatchObject([
      { target: 'paused.example', createdBy: expect.stringMatching(/^key_/) },
    ]);

    await daemon.cli('queue', 'resume', '--destination', 'paused.example');
    await delivered(ids);
    expect(received(mx, 'paused.example').toSorted()).toEqual(
      Array.from({ length: 30 }, (_, n) => `u${n}@paused.example`).toSorted(),
    );
  });

  it.each([
    ['account', () => daemon.api.accountId],
    ['pool', () => 'default'],
    ['site', () => 'mx.kept.example'],
  ])('of a %s stops its mail until it ends', async (scope, target) => {
    await daemon.cli('queue', 'pause', `--${scope}`, target(), '--reason', 'a test', '--until', '1d');
    await eventually('the pause', async () => (await readyDetails()).includes('"a test"'));
    const before = received(mx, 'kept.example').length;
    const ids = await send(3, 'kept.example');
    const [first = ''] = ids;
    await eventually('an explanation', async () => {
      const { reasons } = await queue('explain', first);
      return reasons[0].code === 'paused';
    });
    expect(received(mx, 'kept.example')).toHaveLength(before);
    await daemon.cli('queue', 'resume', `--${scope}`, target());
    await delivered(ids);
    expect(received(mx, 'kept.example')).toHaveLength(before + 3);
  });

  it('needs one target and a time in the future', async () => {
    const run = (...args: string[]) => daemon.tryCli('queue', 'pause', ...args);
    expect(await run('--reason', 'x')).toMatchObject({ code: 2 });
    expect(await run('--destination', 'a.example', '--account', 'b', '--reason', 'x')).toMatchObject({
      code: 2,
    });
    expect(await run('--destination', 'a.example', '--reason', 'x', '--until', 'soon')).toMatchObject({
      code: 2,
    });
    expect(await run('--pool', 'nowhere', '--reason', 'x')).toMatchObject({ code: 2 });
    expect(await daemon.tryCli('queue', 'resume', '--destination', 'a.example')).toMatchObject({ code: 1 });
    expect(await queue('pauses')).toEqual([]);
  });
});

describe('a purge', () => {
  it('cancels what matches after it was counted, and nothing else', async () => {
    await daemon.cli('queue', 'pause', '--account', daemon.api.accountId, '--reason', 'wrong list');
    await eventually('the pause', async () => (await readyDetails()).includes('"wrong list"'));
    const purged = await send(25, 'purged.example');
    const kept = await send(5, 'kept.example');
    const filter = ['--destination', 'purged.example', '--reason', 'wrong list'];
    expect(await queue('purge', ...filter, '--dry-run')).toEqual({ matched: 25, changed: 0, skipped: 0 });
    expect(await daemon.tryCli('queue', 'purge', ...filter)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Purge 25 waiting messages?'),
    });
    expect(new Set(await statuses(purged))).toEqual(new Set(['queued']));
    expect(await queue('purge', ...filter, '--yes')).toEqual({ matched: 25, changed: 25, skipped: 0 });
    expect(await daemon.tryCli('queue', 'purge', '--reason', 'all')).toMatchObject({ code: 2 });

    await daemon.cli('queue', 'resume', '--account', daemon.api.accountId);
    await delivered(kept);
    expect(new Set(await statuses(purged))).toEqual(new Set(['cancelled']));
    expect(received(mx, 'purged.example')).toEqual([]);
    const [event] = await daemon.api.allEvents({ messageId: purged[0] ?? '' });
    expect(event).toMatchObject({
      event: 'email_failed',
      reason: 'cancelled',
      diagnostic: 'purged by the operator: wrong list',
    });
  });
});

describe('rerouted mail', () => {
  it('is sent to the other next hop, each message once; later mail is not', async () => {
    await daemon.cli('queue', 'pause', '--destination', 'rerouted.example', '--reason', 'slow host');
    await eventually('the pause', async () => (await readyDetails()).includes('"slow host"'));
    const ids = await send(10, 'rerouted.example');
    const filter = ['--destination', 'rerouted.example', '--via', `127.0.0.1:${other.port}`];
    expect(await queue('reroute', ...filter, '--yes')).toEqual({ matched: 10, changed: 10, skipped: 0 });
    await daemon.cli('queue', 'resume', '--destination', 'rerouted.example');
    await delivered(ids);
    expect(received(other, 'rerouted.example')).toHaveLength(10);
    expect(received(mx, 'rerouted.example')).toEqual([]);
    await delivered(await send(1, 'rerouted.example'));
    expect(received(mx, 'rerouted.example')).toHaveLength(1);
    expect(received(other, 'rerouted.example')).toHaveLength(10);
  });

  it('is refused for a wrong next hop or an unknown pool', async () => {
    const run = (...args: string[]) =>
      daemon.tryCli('queue', 'reroute', '--destination', 'a.example', ...args);
    expect(await run('--via', 'not a host')).toMatchObject({ code: 2 });
    expect(await run('--pool', 'nowhere')).toMatchObject({ code: 2 });
    expect(await run()).toMatchObject({ code: 2 });
  });
});

describe('a rejected destination', () => {
  it('bounces its mail with the reason, suppresses nobody, and is accepted again afterwards', async () => {
    await daemon.cli(
      'queue',
      'bounce',
      '--destination',
      'closed.example',
      '--reason',
      'closed down',
      '--yes',
    );
    await eventually('the control', async () => (await readyDetails()).includes('"closed down"'));
    const [id = ''] = await send(1, 'closed.example');
    await eventually('a bounce', async () => (await statuses([id])).includes('bounced'));
    const events = await daemon.api.allEvents({ messageId: id });
    expect(events.at(-1)).toMatchObject({
      event: 'email_bounced',
      bounceType: 'block',
      smtpCode: 550,
      enhancedCode: '5.7.1',
      diagnostic: expect.stringContaining('closed down'),
      source: 'local',
      suppressed: false,
    });
    await daemon.cli('queue', 'resume', '--destination', 'closed.example');
    await eventually('the end', async () => !(await readyDetails()).includes('"closed down"'));
    await delivered(await send(1, 'closed.example'));
    expect(received(mx, 'closed.example')).toEqual(['u0@closed.example']);
  });
});

describe('a retry', () => {
  it('lets a suspended site be tried immediately', async () => {
    const host = '127.0.0.78';
    publishMailHost(dns, 'down.example', host);
    const ids = await send(3, 'down.example');
    const until: string = await eventually('the suspension', async () => {
      const { data } = await asOperator<{ sites: { suspendedUntil: string | null }[] }>(
        'GET',
        '/web-setup/queue/sites?name=down.example',
      );
      return data.sites.find(({ suspendedUntil }) => suspendedUntil !== null)?.suspendedUntil ?? null;
    });
    const repaired = await startSink({ host, port: mx.port });
    try {
      await daemon.cli('queue', 'retry', '--destination', 'down.example', '--yes');
      await eventually('all to be delivered', async () =>
        (await statuses(ids)).every((status) => status === 'delivered'),
      );
      expect(received(repaired, 'down.example').sort()).toEqual(ids.map((_, n) => `u${n}@down.example`));
      const events = await daemon.api.allEvents({ messageId: ids[0] ?? '' });
      expect(events.find(({ event }) => event === 'email_delivered')?.timestamp).toSatisfy(
        (at: string) => at < until,
      );
    } finally {
      await repaired.close();
    }
  });
});

describe('the same with an operator key', () => {
  it('pauses immediately, explains, purges and resumes', async () => {
    const control = { action: 'pause', scope: 'destination', target: 'keyed.example', reason: 'by key' };
    expect(await asOperator('POST', '/web-setup/queue/controls', control)).toMatchObject({ status: 201 });
    const [first = '', ...rest] = await send(4, 'keyed.example');
    expect(await asOperator('GET', `/web-setup/queue/messages/${first}`)).toMatchObject({
      status: 200,
      data: { messageId: first, reasons: [{ code: 'paused' }], ahead: 0 },
    });
    expect(await asOperator('GET', '/web-setup/queue/destinations/keyed.example')).toMatchObject({
      data: { messages: 4, control: { reason: 'by key' } },
    });
    expect(await asOperator('GET', '/web-setup/queue')).toMatchObject({
      data: { stopped: null, controls: [{ target: 'keyed.example' }] },
    });
    expect(await asOperator('GET', '/web-setup/queue/sites?name=healthy')).toMatchObject({
      data: { count: 1, sites: [{ connections: { limit: 10 } }] },
    });
    const change = { filter: { destination: 'keyed.example' }, reason: 'by key', dryRun: true };
    expect(await asOperator('POST', '/web-setup/queue/purge', change)).toMatchObject({
      data: { matched: 4, changed: 0 },
    });
    const via = { filter: { destination: 'keyed.example' }, via: `127.0.0.1:${other.port}` };
    expect(await asOperator('POST', '/web-setup/queue/reroute', via)).toMatchObject({
      data: { matched: 4, changed: 4, next: null },
    });
    expect(await asOperator('DELETE', '/web-setup/queue/controls/destination/keyed.example')).toMatchObject({
      status: 200,
    });
    await delivered([first, ...rest]);
    expect(received(other, 'keyed.example')).toHaveLength(4);
    expect(await asOperator('DELETE', '/web-setup/queue/controls/destination/keyed.example')).toMatchObject({
      status: 404,
    });
  });

  it('is refused to other keys', async () => {
    const headers = { 'X-Api-Key': daemon.api.keys.setup };
    for (const path of ['/web-setup/queue', '/web-setup/queue/controls', '/web-setup/queue/sites'])
      expect(await daemon.api.call('GET', path, { headers })).toMatchObject({
        status: 403,
        error: { code: 'INSUFFICIENT_SCOPE' },
      });
  });
});

describe('the operator socket', () => {
  it('is open to the user of the daemon alone', () => {
    expect(statSync(join(daemon.dataDir, 'operator.sock')).mode & 0o777).toBe(0o600);
  });
});
