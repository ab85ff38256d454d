import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { HOSTNAME } from '../support/daemon.ts';
import type { DnsServer } from '../support/dns-server.ts';
import { freePort } from '../support/free-port.ts';
import { faultsInEvents, readLedger } from '../support/ledger.ts';
import { publishMailHost } from '../support/recipients.ts';
import { type SendingSetup, startSendingSetup } from '../support/sending-setup.ts';

/*
 * Messages to domains without a usable host: no connection is opened, and the outcome states the reason.
 *
 *   test ──HTTP──▶ postrider ──DNS──▶ programmable name server
 *                      └──(never)──▶ sink
 */
let setup: SendingSetup;
let accepted = 0;
const outcomes: Record<string, number> = { bounced: 0, failed: 0, deferred: 0 };

beforeAll(async () => {
  // The default: no delivery to private networks.
  setup = await startSendingSetup({ 'delivery.allowPrivateNetworks': false, 'dns.timeoutMs': 2000 });
});
afterAll(() => setup?.stop());

/** Sends to a domain; waits for the status and returns the last event. */
async function lastEvent(domain: string, status: string) {
  const messageId = await setup.send('a', domain);
  accepted++;
  const { timeline } = await setup.waitForStatus(messageId, status);
  outcomes[status] = (outcomes[status] ?? 0) + 1;
  expect(timeline.find(({ type }) => type === 'attempt')).toMatchObject({ sessions: [] });
  return timeline.at(-1);
}

describe('a message to a domain', () => {
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
      'whose MX is this server',
      (dns, domain) => dns.set(domain, 'MX', [`10 ${HOSTNAME}`]),
      'failed',
      { event: 'email_failed', reason: 'loop', enhancedCode: '5.4.6' },
    ],
    [
      'whose most preferred MX is this server',
      (dns, domain) => dns.set(domain, 'MX', [`10 ${HOSTNAME}`, `20 mx.empfang.example`]),
      'failed',
      { event: 'email_failed', reason: 'loop', enhancedCode: '5.4.6' },
    ],
    ['answered with SERVFAIL', (dns, domain) => dns.set(domain, '*', 'SERVFAIL'), 'deferred', DELAYED],
    ['whose queries time out', (dns, domain) => dns.set(domain, '*', 'silent'), 'deferred', DELAYED],
    [
      'whose queries for the MX host time out',
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

describe('a domain that resolves to a reserved address', () => {
  const UNREACHABLE = { event: 'email_bounced', enhancedCode: '5.4.4', source: 'local', suppressed: false };

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
  ])('bounces without a suppression: %s', async (address) => {
    const domain = `to-${address.replaceAll('.', '-')}.example`;
    publishMailHost(setup.dns, domain, address);
    expect(await lastEvent(domain, 'bounced')).toMatchObject(UNREACHABLE);
  });

  it('bounces when the MX record contains the address', async () => {
    setup.dns.set('literal.example', 'MX', ['10 127.0.0.1']);
    expect(await lastEvent('literal.example', 'bounced')).toMatchObject(UNREACHABLE);
  });

  it('bounces when the domain has an A record only', async () => {
    setup.dns.set('bare.example', 'A', ['127.0.0.1']);
    expect(await lastEvent('bare.example', 'bounced')).toMatchObject(UNREACHABLE);
  });
});

describe('the SMTP listener of the daemon as destination', () => {
  it('is a loop, also when private networks are allowed', async () => {
    const port = await freePort();
    const looping = await startSendingSetup({ 'delivery.port': port, 'mx.listen': `127.0.0.1:${port}` });
    onTestFinished(() => looping.stop());
    publishMailHost(looping.dns, 'loop.example');
    const messageId = await looping.send('a', 'loop.example');
    const { timeline } = await looping.waitForStatus(messageId, 'failed');
    expect(timeline.at(-1)).toMatchObject({ event: 'email_failed', reason: 'loop', enhancedCode: '5.4.6' });
  });
});

describe('after all messages', () => {
  it('every message has its outcome, and no connection was opened', async () => {
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
