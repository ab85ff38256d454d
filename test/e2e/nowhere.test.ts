import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { HOSTNAME } from '../support/daemon.ts';
import type { DnsServer } from '../support/dns-server.ts';
import { freePort } from '../support/free-port.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { publishMailHost } from '../support/recipients.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';

/*
 * Mail that can go nowhere: no connection is made, and the sender is told why.
 *
 *   test ──HTTP──▶ postrider ──DNS──▶ programmable server, which has no way to offer
 *                      └──(never)──▶ sink
 */
let setup: SendingSetup;
let accepted = 0;
const outcomes: Record<string, number> = { bounced: 0, failed: 0, deferred: 0 };

beforeAll(async () => {
  // As it is installed: private networks are not delivered to.
  setup = await startSendingSetup({ 'delivery.allowPrivateNetworks': false, 'dns.timeoutMs': 500 });
});
afterAll(() => setup?.stop());

/** Sends to a domain and returns the last event once there is an outcome. */
async function lastEvent(domain: string, status: string) {
  const messageId = await setup.send('a', domain);
  accepted++;
  const { timeline } = await setup.waitForStatus(messageId, status);
  outcomes[status] = (outcomes[status] ?? 0) + 1;
  expect(timeline.find(({ type }) => type === 'attempt')).toMatchObject({ sessions: [] });
  return timeline.at(-1);
}

describe('a domain', () => {
  const BOUNCED = { event: 'email_bounced', source: 'local' };
  const DELAYED = { event: 'email_delayed', enhancedCode: '4.4.3', classification: 'network-error' };

  it.each<[what: string, publish: (dns: DnsServer, domain: string) => void, status: string, last: object]>([
    ['that does not exist', () => {}, 'bounced', { ...BOUNCED, enhancedCode: '5.1.2' }],
    [
      'with a null MX',
      (dns, domain) => dns.set(domain, 'MX', ['0 .']),
      'bounced',
      { ...BOUNCED, enhancedCode: '5.1.10' },
    ],
    [
      'whose MX host has no address',
      (dns, domain) => {
        dns.set(domain, 'MX', [`10 mx.${domain}`]);
        dns.set(`mx.${domain}`, 'TXT', ['nothing else']);
      },
      'bounced',
      { ...BOUNCED, enhancedCode: '5.4.4' },
    ],
    [
      'whose MX is ourselves',
      (dns, domain) => dns.set(domain, 'MX', [`10 ${HOSTNAME}`]),
      'failed',
      { event: 'email_failed', reason: 'loop', enhancedCode: '5.4.6' },
    ],
    [
      'whose hosts before us are ourselves again, and behind us others',
      (dns, domain) => dns.set(domain, 'MX', [`10 ${HOSTNAME}`, `20 mx.empfang.example`]),
      'failed',
      { event: 'email_failed', reason: 'loop', enhancedCode: '5.4.6' },
    ],
    ['that DNS breaks down over', (dns, domain) => dns.set(domain, '*', 'SERVFAIL'), 'deferred', DELAYED],
    ['that DNS says nothing about', (dns, domain) => dns.set(domain, '*', 'silent'), 'deferred', DELAYED],
    [
      'whose MX host DNS says nothing about',
      (dns, domain) => {
        dns.set(domain, 'MX', [`10 mx.${domain}`]);
        dns.set(`mx.${domain}`, '*', 'silent');
      },
      'deferred',
      DELAYED,
    ],
  ])('%s', async (what, publish, status, last) => {
    const domain = `${what.replaceAll(/[^a-z]/gi, '').slice(-50)}.example`;
    publish(setup.dns, domain);
    expect(await lastEvent(domain, status)).toMatchObject(last);
  });
});

describe('a public name that leads to', () => {
  const TRAPPED = { event: 'email_bounced', enhancedCode: '5.4.4', source: 'local', suppressed: false };

  it.each([
    '127.0.0.1',
    '127.255.255.254',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '255.255.255.255',
    '224.0.0.1',
  ])('%s is a permanent failure, and nobody is suppressed for it', async (address) => {
    const domain = `to-${address.replaceAll('.', '-')}.example`;
    publishMailHost(setup.dns, domain, address);
    expect(await lastEvent(domain, 'bounced')).toMatchObject(TRAPPED);
  });

  it('127.0.0.1, written into the MX record itself, is one as well', async () => {
    setup.dns.set('literal.example', 'MX', ['10 127.0.0.1']);
    expect(await lastEvent('literal.example', 'bounced')).toMatchObject(TRAPPED);
  });

  it('127.0.0.1 without any MX record is one as well', async () => {
    setup.dns.set('bare.example', 'A', ['127.0.0.1']);
    expect(await lastEvent('bare.example', 'bounced')).toMatchObject(TRAPPED);
  });
});

describe('our own SMTP listener', () => {
  it('is a loop, even where private networks are allowed', async () => {
    const port = await freePort();
    const open = await startSendingSetup({ 'delivery.port': port, 'mx.listen': `127.0.0.1:${port}` });
    onTestFinished(() => open.stop());
    publishMailHost(open.dns, 'trap.example');
    const { timeline } = await open.waitForStatus(await open.send('a', 'trap.example'), 'failed');
    expect(timeline.at(-1)).toMatchObject({ event: 'email_failed', reason: 'loop', enhancedCode: '5.4.6' });
  });
});

describe('in the end', () => {
  it('every message has its outcome, and nobody was connected to', async () => {
    const { bounced, failed, deferred } = outcomes;
    expect(await readLedger(setup.daemon.api)).toEqual({
      accepted,
      delivered: 0,
      bounced,
      failed,
      queued: deferred,
    });
    expect(await faultsInEvents(setup.daemon.api)).toEqual([]);
    expect(setup.sink.sessions).toEqual([]);
  });
});
