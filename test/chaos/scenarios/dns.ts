import type { DnsBehavior } from '../../support/dns-server.ts';
import { publishMailHost } from '../../support/recipients.ts';
import type { Scenario } from '../scenario.ts';
import { pause } from '../stage.ts';
import { DOMAINS, startWorld } from '../world.ts';

/**
 * The name servers of some destinations fail, each in its way. None of this says anything about the recipients:
 * mail waits, none bounces.
 */
const TIMEOUT_MS = 1000;
const FAULTS: Record<string, DnsBehavior> = {
  dead: 'silent',
  servfail: 'SERVFAIL',
  refused: 'REFUSED',
  'wrong-id': 'wrong id',
  'wrong-question': 'wrong question',
  garbage: 'bad bytes',
  referral: 'referral',
};
const EACH = 3;

export const DNS: Scenario[] = [
  {
    name: 'dns-dead-servfail-wrong-slow',
    summary: `name servers that are dead, slow, or answer ${Object.keys(FAULTS).slice(1).join(', ')}`,
    limitSeconds: 150,
    run: async (stage) => {
      const world = await startWorld(stage, { config: { dns: { timeoutMs: TIMEOUT_MS } } });
      const broken = Object.keys(FAULTS).flatMap((fault) =>
        Array.from({ length: EACH }, (_, n) => `${fault}${n}.example`),
      );
      const slow = Array.from({ length: EACH }, (_, n) => `slow${n}.example`);
      const tooSlow = Array.from({ length: EACH }, (_, n) => `too-slow${n}.example`);

      const healthy = world.traffic({ perSecond: 40 });
      await world.baseline(healthy);
      for (const domain of broken) {
        const fault = FAULTS[domain.replace(/\d+\.example$/, '')] ?? 'silent';
        world.dns.set(domain, '*', fault);
        world.dns.set(`mx.${domain}`, '*', fault);
      }
      for (const [domains, delayMs] of [
        [slow, TIMEOUT_MS * 0.4],
        [tooSlow, TIMEOUT_MS * 3],
      ] as const) {
        for (const domain of domains) {
          world.dns.set(domain, 'MX', { values: [`10 mx.${domain}`], delayMs });
          world.dns.set(`mx.${domain}`, 'A', { values: ['127.0.0.1'], delayMs });
        }
      }
      const unlucky = world.traffic({ perSecond: 40, domains: [...broken, ...slow, ...tooSlow] });
      const began = Date.now();
      await pause(8000, stage.signal);
      const delivered = (domains: readonly string[]) =>
        [...world.ledger.accepted].filter(
          ([recipient, { at }]) =>
            at > began &&
            domains.includes(recipient.slice(recipient.indexOf('@') + 1)) &&
            world.ledger.taken(recipient).length > 0,
        ).length;
      world.note(`meanwhile delivered: ${delivered(DOMAINS)} healthy, ${delivered(slow)} slow`);
      if (delivered(DOMAINS) === 0) world.fault('no mail to healthy destinations meanwhile');
      if (delivered(slow) === 0) world.fault('no mail to destinations whose answers are slow, but in time');

      for (const domain of [...broken, ...slow, ...tooSlow]) {
        world.dns.remove(domain);
        world.dns.remove(`mx.${domain}`);
        publishMailHost(world.dns, domain);
      }
      world.heal();
      // A failed look-up is remembered for a minute.
      return world.result([healthy, unlucky], { withinSeconds: 80 });
    },
  },
];
