// Long: kills the daemon while an account with a full queue is disabled and enabled.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { publishMailHost, SHORT_MAIL } from '../support/recipients.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * An operator disables an account that has queued messages, and enables it again; the daemon is killed in between.
 *
 *   postrider account disable ─┐
 *   test ──HTTP──▶ postrider (kill -9, start) ──SMTP──▶ sink
 */
const MESSAGES = 40;

let dns: DnsServer;
let sink: Sink;
let daemon: RunningDaemon;

beforeAll(async () => {
  dns = await startDnsServer();
  sink = await startSink();
  daemon = await startDaemon({
    'dns.resolvers': [dns.address],
    'delivery.port': sink.port,
    'delivery.allowPrivateNetworks': true,
    // Deferred messages are due again soon.
    'delivery.retry.first': '1s',
    'log.level': 'warn',
  });
  publishMailHost(dns, 'empfang.example');
  await verifiedDomain(daemon, dns, 'kunde.example');
});
afterAll(async () => {
  await daemon?.stop();
  await sink?.close();
  await dns?.close();
});

const send = (to: string) =>
  daemon.api.send({ from: 'Shop <shop@kunde.example>', to, useCase: 'tx', ...SHORT_MAIL });
const heldCount = async () => daemon.metric('postrider_queue_held_messages');

describe('disabling an account', () => {
  it('refuses requests, holds queued messages across a kill -9, and sends each once when it is enabled', async () => {
    const { accountId } = daemon.api;
    // Without an answer from DNS the messages wait in the queue.
    dns.set('empfang.example', 'MX', 'SERVFAIL');
    const ids: string[] = [];
    for (let n = 0; n < MESSAGES; n++) ids.push((await send(`u${n}@empfang.example`)).data.messageId);
    await daemon.cli('account', 'disable', accountId);
    expect(await send('late@empfang.example')).toMatchObject({
      status: 403,
      error: { code: 'ACCOUNT_DISABLED' },
    });

    publishMailHost(dns, 'empfang.example');
    await daemon.kill('SIGKILL');
    await daemon.restart();
    await eventually('all messages to be held', async () => (await heldCount()) === MESSAGES);
    expect((await daemon.tryCli('queue', 'retry', ids[0] ?? '')).stderr).toContain('its account is disabled');
    expect(sink.messages).toEqual([]);

    const [first = ''] = ids;
    expect(await daemon.cli('message', 'show', first)).toContain('account_disabled');
    expect(JSON.parse(await daemon.cli('queue', 'show', first, '--json'))).toMatchObject({
      state: 'held',
      heldBecause: 'account_disabled',
      nextAttemptAt: null,
    });
    expect(await daemon.cli('queue', 'list', '--account', accountId)).toMatch(/│ held +│/);
    const ready = JSON.stringify(await (await fetch(`${daemon.baseUrl}/readyz`)).json());
    expect(ready).toContain(`"held":${MESSAGES}`);

    await daemon.cli('account', 'enable', accountId);
    await eventually('a delivery', () => sink.messages.length > 0);
    await daemon.kill('SIGKILL');
    await daemon.restart();
    await eventually(
      'the queue to be empty',
      async () => (await daemon.metric('postrider_queue_messages')) === 0,
    );
    // A message whose result the killed daemon could not record arrives twice.
    expect(new Set(sink.messages.flatMap(({ to }) => to)).size).toBe(MESSAGES);
    // Held messages are counted every few seconds.
    await eventually('no message to be held', async () => (await heldCount()) === 0);
  });
});
