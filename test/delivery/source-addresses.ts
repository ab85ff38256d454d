import { loadConfig } from '../../src/config/load.ts';
import { createLog } from '../../src/core/log.ts';
import type { AddressBlock } from '../../src/delivery/address-health.ts';
import { type AttemptResult, localResult } from '../../src/delivery/attempt-result.ts';
import { createEgressPools } from '../../src/delivery/egress-pools.ts';
import { createEgress, type EgressMail, type EgressTicket } from '../../src/delivery/source-address.ts';
import type { SessionRecord } from '../../src/delivery/worker/protocol.ts';
import { classify } from '../../src/mail/classify/classify.ts';
import type { SmtpPhase } from '../../src/mail/reply.ts';
import { heldClock, startStore } from '../support/store.ts';

export const HOSTS = [{ name: 'gmail-smtp-in.l.google.com', addresses: ['192.0.2.200'] }];
export const DAY_ONE = Date.UTC(2026, 11, 1, 8);
export const SITE = { key: '*.google.com via default', pool: 'default' };

export const marketing = (provider = 'Google'): EgressMail => ({ provider, priority: 1, hosts: HOSTS });
export const transactional = (provider = 'Google'): EgressMail => ({ provider, priority: 0, hosts: HOSTS });

type Settings = Record<string, string>;

/** Source addresses over a real store, with a clock that the test sets. `entries`: TOML. */
export function createTestEgress(entries: string, settings: Settings = {}) {
  const store = startStore(heldClock(DAY_ONE));
  const env = Object.entries({ 'delivery.egress': entries, ...settings }).map(([path, value]) => [
    `POSTRIDER_${path.replaceAll('.', '__').toUpperCase()}`,
    value,
  ]);
  const config = loadConfig({ cwd: store.dir, env: Object.fromEntries(env) });
  const pools = createEgressPools(config);
  const { clock, tables, writer } = store;
  const log = createLog({ level: 'silent', hashAddresses: true });
  const unresolved = new Set<string>();
  const start = () =>
    createEgress(
      { config, clock, monotonic: clock, log, tables, writer },
      {
        pools,
        proxies: { isResolved: ({ name }) => name === null || !unresolved.has(name) },
        onRefused: (_, block) => void blocks.push(block),
      },
    );
  const blocks: AddressBlock[] = [];
  let egress = start();

  const settle = async (
    ticket: EgressTicket,
    result: AttemptResult,
    conclusion: 'replied' | 'egress-failed',
    address = '192.0.2.200',
    phase: SmtpPhase = 'rcpt',
  ) => {
    const sessions = [session(conclusion, address)];
    const settlement = egress.settle(ticket, result, { conclusion, sessions, phase });
    await writer.run((tx) => settlement.record(tx));
    return settlement;
  };
  const take = (mail: EgressMail, slot = 0) => egress.take(SITE, slot, mail);
  return {
    ...store,
    config,
    pools,
    unresolved,
    /** What was announced as blocked. */
    blocks,
    egress: () => egress,
    /** As after a crash: only what is stored is known. */
    restart: () => {
      egress = start();
    },
    take,
    settle,
    /** Sends messages until none can be sent; returns how many left from which entry. */
    sendAll: async (mail: EgressMail, most = 1000, reply: AttemptResult = DELIVERED) => {
      const sent: Record<string, number> = {};
      for (let n = 0; n < most; n++) {
        const ticket = take(mail, n);
        if (ticket === null) break;
        const name = ticket.entry.name ?? '';
        sent[name] = (sent[name] ?? 0) + 1;
        await settle(ticket, reply, 'replied');
      }
      return sent;
    },
    counts: (entry: string, provider = 'Google') =>
      tables.egressCounts.get({ day: Date.UTC(2026, 11, 1), entry, provider }),
  };
}

function session(conclusion: string, address: string): SessionRecord {
  return {
    host: 'mx',
    address,
    port: 25,
    localAddress: '10.0.0.1',
    tls: null,
    phase: 'connect',
    reply: null,
    error: conclusion === 'egress-failed' ? 'proxy 192.0.2.9:1080: connection refused' : null,
    startedAt: 0,
    endedAt: 0,
  };
}

export function replied(
  code: number,
  enhanced: string,
  text: string,
  phase: SmtpPhase = 'rcpt',
): AttemptResult {
  const reply = { code, enhanced, text };
  return { classification: classify({ phase, reply }), reply, source: 'smtp' };
}

export const DELIVERED = replied(250, '2.0.0', 'OK');
export const THROTTLED = replied(
  421,
  '4.7.28',
  'Our system has detected an unusual rate of unsolicited mail',
);
export const UNKNOWN_USER = replied(550, '5.1.1', 'no such user');
export const listed = (address: string) =>
  replied(550, '5.7.1', `Service unavailable, Client host [${address}] blocked using Spamhaus`);
export const EGRESS_FAILED = localResult('egress-failed');
