import type { DnsBehavior } from '../../support/dns-server.ts';
import { publishMailHost } from '../../support/recipients.ts';
import { pause } from '../context.ts';
import { DOMAINS, startEnvironment } from '../environment.ts';
import type { Scenario } from '../scenario.ts';

/**
 * The name servers of some destinations fail in different ways. The faults are no evidence about the recipients: mail
 * is deferred and does not bounce.
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
    summary: `name servers that are dead, slow, or reply with ${Object.keys(FAULTS).slice(1).join(', ')}`,
    limitSeconds: 150,
    run: async (context) => {
      const env = await startEnvironment(context, { config: { dns: { timeoutMs: TIMEOUT_MS } } });
      const broken = Object.keys(FAULTS).flatMap((fault) =>
        Array.from({ length: EACH }, (_, n) => `${fault}${n}.example`),
      );
      const slow = Array.from({ length: EACH }, (_, n) => `slow${n}.example`);
      const tooSlow = Array.from({ length: EACH }, (_, n) => `too-slow${n}.example`);

      const healthy = env.traffic({ perSecond: 40 });
      await env.baseline(healthy);
      for (const domain of broken) {
        const fault = FAULTS[domain.replace(/\d+\.example$/, '')] ?? 'silent';
        env.dns.set(domain, '*', fault);
        env.dns.set(`mx.${domain}`, '*', fault);
      }
      for (const [domains, delayMs] of [
        [slow, TIMEOUT_MS * 0.4],
        [tooSlow, TIMEOUT_MS * 3],
      ] as const) {
        for (const domain of domains) {
          env.dns.set(domain, 'MX', { values: [`10 mx.${domain}`], delayMs });
          env.dns.set(`mx.${domain}`, 'A', { values: ['127.0.0.1'], delayMs });
        }
      }
      const unlucky = env.traffic({ perSecond: 40, domains: [...broken, ...slow, ...tooSlow] });
      const began = Date.now();
      await pause(8000, context.signal);
      const delivered = (domains: readonly string[]) =>
        [...env.ledger.accepted].filter(
          ([recipient, { at }]) =>
            at > began &&
            domains.includes(recipient.slice(recipient.indexOf('@') + 1)) &&
            env.ledger.received(recipient).length > 0,
        ).length;
      env.note(`meanwhile delivered: ${delivered(DOMAINS)} healthy, ${delivered(slow)} slow`);
      if (delivered(DOMAINS) === 0) env.fault('no mail to healthy destinations meanwhile');
      if (delivered(slow) === 0)
        env.fault('no mail to destinations whose name servers are slow, but in time');

      for (const domain of [...broken, ...slow, ...tooSlow]) {
        env.dns.remove(domain);
        env.dns.remove(`mx.${domain}`);
        publishMailHost(env.dns, domain);
      }
      env.heal();
      // A failed lookup is cached for a minute.
      return env.result([healthy, unlucky], { withinSeconds: 80 });
    },
  },
];
