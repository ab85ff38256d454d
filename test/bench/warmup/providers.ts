import { DAY } from '../../../src/core/clock.ts';
import type { AttemptReport, DeliveryJob } from '../../../src/delivery/worker/protocol.ts';

/* The mailbox providers of the simulated month, in place of the worker threads: their replies by day and source address. */

export const MONTH_PROVIDERS: Readonly<Record<string, string>> = {
  Google: 'gmail.com',
  Microsoft: 'outlook.com',
  Yahoo: 'yahoo.com',
  Apple: 'icloud.com',
  'United Internet': 'gmx.de',
  Telekom: 't-online.de',
  Orange: 'orange.fr',
  Comcast: 'comcast.net',
};
export const MONTH_ADDRESSES: Readonly<Record<string, string>> = {
  'out-1': '192.0.2.1',
  'out-2': '192.0.2.2',
  'out-3': '192.0.2.3',
};
/** Yahoo defers this share of the messages on these days. */
const THROTTLED = { provider: 'Yahoo', fromDay: 8, toDay: 11, share: 0.4 };
/** Microsoft lists this address on these days. */
const LISTED = { provider: 'Microsoft', entry: 'out-2', fromDay: 9, toDay: 13 };
export const STARTED = Date.UTC(2026, 11, 1);
/** Every n-th recipient does not exist. */
export const EVERY_NTH_UNKNOWN = 200;

export const DOMAINS = Object.values(MONTH_PROVIDERS);
const HOSTS = new Map(
  DOMAINS.map((domain) => [domain, [{ name: `mx.${domain}`, addresses: ['192.0.2.200'] }]]),
);

export function hostsOf(domain: string): DeliveryJob['hosts'] {
  const hosts = HOSTS.get(domain);
  if (hosts === undefined) throw new Error(`no provider has the domain ${domain}`);
  return hosts;
}

export function jobFor(
  id: number,
  to: string,
  slot: string,
  hosts: DeliveryJob['hosts'],
  { hostname, address }: { hostname: string; address?: string | undefined },
): DeliveryJob {
  return {
    id,
    slot,
    content: { bytes: new Uint8Array(0), encoding: 'json', size: 0 },
    copy: {
      kind: 'marketing',
      recipient: to,
      unsubscribeUrl: '',
      reportAbuseUrl: '',
      unsubscribeAddress: '',
      signedId: '',
      feedbackAddress: '',
      feedbackId: '',
    },
    envelope: { from: 'b@example.com', to },
    signers: [],
    hosts,
    port: 25,
    tls: 'none',
    tlsSource: 'default',
    chunking: true,
    egress: { hostname, ...(address === undefined ? {} : { address }) },
    messagesPerConnection: 100,
    idleMs: 0,
  };
}

/** The providers: their replies, and the messages that they accepted. */
export function createProviders(now: () => number) {
  const dayNow = () => Math.floor((now() - STARTED) / DAY) + 1;
  /** 1 for each recipient whose message was accepted, by the number in the address. */
  let acceptedOnce = new Uint8Array(1 << 16);
  let received = 0;
  let duplicates = 0;
  let replies = 0;
  const throttledDomain = MONTH_PROVIDERS[THROTTLED.provider];
  const listingDomain = MONTH_PROVIDERS[LISTED.provider];

  function accept(to: string): void {
    const n = Number(/\d+/.exec(to)?.[0]);
    if (n >= acceptedOnce.length) {
      const larger = new Uint8Array(2 * n);
      larger.set(acceptedOnce);
      acceptedOnce = larger;
    }
    if (acceptedOnce[n] === 1) duplicates++;
    else received++;
    acceptedOnce[n] = 1;
  }

  function decide(
    to: string,
    domain: string,
    address: string,
  ): { code: number; enhanced: string; text: string } {
    const day = dayNow();
    if (
      domain === listingDomain &&
      address === MONTH_ADDRESSES[LISTED.entry] &&
      day >= LISTED.fromDay &&
      day <= LISTED.toDay
    )
      return {
        code: 550,
        enhanced: '5.7.1',
        text: `5.7.1 Unfortunately, messages from [${address}] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3150).`,
      };
    // Deterministic: four of ten.
    const isThrottled = replies % 10 < THROTTLED.share * 10;
    if (domain === throttledDomain && day >= THROTTLED.fromDay && day <= THROTTLED.toDay && isThrottled)
      return {
        code: 421,
        enhanced: '4.7.0',
        text: `4.7.0 [TSS04] Messages from ${address} temporarily deferred due to unexpected volume or user complaints - 4.16.55.1`,
      };
    if (to.startsWith('gone'))
      return { code: 550, enhanced: '5.1.1', text: '5.1.1 The account does not exist' };
    accept(to);
    return { code: 250, enhanced: '2.0.0', text: '2.0.0 OK' };
  }

  return {
    reply: ({ id, hosts, envelope: { to }, egress }: DeliveryJob): AttemptReport => {
      const address = egress.address ?? '';
      const domain = to.slice(to.indexOf('@') + 1);
      const reply = decide(to, domain, address);
      replies++;
      const session = {
        host: hosts[0]?.name ?? '',
        address: '192.0.2.200',
        port: 25,
        localAddress: address,
        tls: null,
        phase: reply.code === 250 ? ('dot' as const) : ('rcpt' as const),
        reply,
        error: null,
        startedAt: now(),
        endedAt: now(),
      };
      return { id, conclusion: 'replied', phase: session.phase, reply, sessions: [session] };
    },
    count: () => replies,
    received: () => received,
    duplicates: () => duplicates,
  };
}
