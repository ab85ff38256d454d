import type { Sink, SinkOptions } from '../../support/smtp-sink.ts';
import { pause } from '../context.ts';
import { startEnvironment } from '../environment.ts';
import type { Scenario } from '../scenario.ts';

/** Broken and hostile destinations, all at the same time, next to a healthy one whose mail they must not delay. */
const BAD: Record<string, SinkOptions> = {
  resets: { script: { greeting: 'reset' } },
  silent: { script: { greeting: 'silent' } },
  tarpit: { script: { greeting: { reply: `220 ${'slow '.repeat(20)}`, bytesPerSecond: 1 } } },
  garbage: { script: { greeting: 'SSH-2.0-OpenSSH_9.2' } },
  'closes-421': { script: { greeting: { reply: '421 4.3.2 service not available', close: true } } },
  'drops-ehlo': { script: { ehlo: 'drop', helo: 'drop' } },
  'drops-data': { body: { afterBytes: 500, answer: 'drop' } },
  'silent-dot': { script: { dot: 'silent' } },
  'all-4xx': { script: { rcpt: '451 4.3.0 try again later' } },
  'all-5xx': { script: { rcpt: '550 5.7.1 not from you' } },
  'tls-garbage': { tls: 'garbage' },
  dribbles: { script: { mail: { reply: `250 2.1.0 ${'ok '.repeat(40)}`, bytesPerSecond: 1 } } },
};
const HEALTHY: Partial<SinkOptions> = { script: {}, tls: null, body: null };
const REFUSES = 'refuses.example';
const HEALTHY_PER_SECOND = 60;
const PHASE_MS = 5000;
/** Share of the rate without bad destinations. */
const MIN_RATIO = 0.9;

export const DESTINATIONS: Scenario[] = [
  {
    name: 'bad-destinations',
    summary: `${Object.keys(BAD).length + 1} kinds of bad destinations next to a healthy one whose rate must not change`,
    short: true,
    run: async (context) => {
      const env = await startEnvironment(context);
      const bad: Sink[] = [];
      for (const [name, behavior] of Object.entries(BAD)) {
        const sink = await env.destination([`${name}.example`], behavior);
        // The sink interrupts one message only; it is programmed again for each message.
        if (behavior.body)
          sink.program({
            script: { data: () => sink.program({ body: behavior.body ?? null }) ?? undefined },
          });
        bad.push(sink);
      }
      const refusing = await env.destination([REFUSES]);
      await refusing.close();

      const healthy = env.traffic({ perSecond: HEALTHY_PER_SECOND, recipients: 'healthy' });
      await env.baseline(healthy);
      /** Share of the mail accepted for the healthy destination that was delivered. */
      const shareDelivered = async (ms: number) => {
        const accepted = () =>
          [...env.ledger.accepted.keys()].filter((one) => one.startsWith('healthy')).length;
        const before = [env.sink.count, accepted()] as const;
        await pause(ms, context.signal);
        return (env.sink.count - before[0]) / Math.max(1, accepted() - before[1]);
      };
      const alone = await shareDelivered(context.lasting(PHASE_MS));
      const names = [...Object.keys(BAD).map((name) => `${name}.example`), REFUSES];
      const unlucky = env.traffic({ perSecond: 60, domains: names });
      let together = await shareDelivered(context.lasting(2 * PHASE_MS));
      // A phase in which the machine had no time for the daemon shows nothing.
      for (let again = 0; again < 5 && !(together / alone >= MIN_RATIO); again++)
        together = await shareDelivered(context.lasting(2 * PHASE_MS));
      const ratio = together / alone;
      env.note(
        `healthy destination, delivered per accepted: ${together.toFixed(2)} together, ${alone.toFixed(2)} alone`,
      );
      if (!(ratio >= MIN_RATIO))
        env.fault(`the healthy destination's rate fell to ${ratio.toFixed(2)} of its rate alone`);

      unlucky.stop();
      await env.destination([REFUSES], { host: refusing.host });
      for (const sink of bad) {
        sink.program(HEALTHY);
        sink.disconnect();
      }
      env.heal();
      return env.result([healthy, unlucky], {
        mayFail: (recipient) => recipient.endsWith('@all-5xx.example'),
      });
    },
  },
];
