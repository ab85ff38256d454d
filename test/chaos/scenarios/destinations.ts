import type { Sink, SinkOptions } from '../../support/smtp-sink.ts';
import type { Scenario } from '../scenario.ts';
import { pause } from '../stage.ts';
import { startWorld } from '../world.ts';

/** Destinations that are broken or hostile, all at once, beside a healthy one that must not notice. */
const BAD: Record<string, SinkOptions> = {
  resets: { script: { greeting: 'reset' } },
  silent: { script: { greeting: 'silent' } },
  tarpit: { script: { greeting: { reply: `220 ${'slow '.repeat(20)}`, bytesPerSecond: 1 } } },
  garbage: { script: { greeting: 'SSH-2.0-OpenSSH_9.2' } },
  'closes-421': { script: { greeting: { reply: '421 4.3.2 service not available', close: true } } },
  'drops-ehlo': { script: { ehlo: 'drop', helo: 'drop' } },
  'drops-data': { body: { afterOctets: 500, answer: 'drop' } },
  'silent-dot': { script: { dot: 'silent' } },
  'all-4xx': { script: { rcpt: '451 4.3.0 try again later' } },
  'all-5xx': { script: { rcpt: '550 5.7.1 not from you' } },
  'tls-garbage': { tls: 'garbage' },
  dribbles: { script: { mail: { reply: `250 2.1.0 ${'ok '.repeat(40)}`, bytesPerSecond: 1 } } },
};
const WILLING: Partial<SinkOptions> = { script: {}, tls: null, body: null };
const REFUSES = 'refuses.example';
const HEALTHY_PER_SECOND = 60;
const PHASE_MS = 5000;
/** Of the rate before the bad destinations were there. */
const LEAST_RATIO = 0.9;

export const DESTINATIONS: Scenario[] = [
  {
    name: 'bad-destinations',
    summary: `${Object.keys(BAD).length + 1} kinds of bad destination beside a healthy one, whose rate must not change`,
    short: true,
    run: async (stage) => {
      const world = await startWorld(stage);
      const bad: Sink[] = [];
      for (const [name, behaviour] of Object.entries(BAD)) {
        const sink = await world.destination([`${name}.example`], behaviour);
        // The sink breaks off one message only; each new one is to be broken off.
        if (behaviour.body)
          sink.program({
            script: { data: () => sink.program({ body: behaviour.body ?? null }) ?? undefined },
          });
        bad.push(sink);
      }
      const refusing = await world.destination([REFUSES]);
      await refusing.close();

      const healthy = world.traffic({ perSecond: HEALTHY_PER_SECOND, recipients: 'healthy' });
      await world.baseline(healthy);
      /** Delivered of what was accepted for the healthy destination: neither waits for the API. */
      const shareDelivered = async (ms: number) => {
        const accepted = () =>
          [...world.ledger.accepted.keys()].filter((one) => one.startsWith('healthy')).length;
        const before = [world.sink.count, accepted()] as const;
        await pause(ms, stage.signal);
        return (world.sink.count - before[0]) / Math.max(1, accepted() - before[1]);
      };
      const alone = await shareDelivered(stage.lasting(PHASE_MS));
      const names = [...Object.keys(BAD).map((name) => `${name}.example`), REFUSES];
      const unlucky = world.traffic({ perSecond: 60, domains: names });
      const beside = await shareDelivered(stage.lasting(2 * PHASE_MS));
      const ratio = beside / alone;
      world.note(
        `healthy destination, delivered per accepted: ${beside.toFixed(2)} beside, ${alone.toFixed(2)} alone`,
      );
      if (!(ratio >= LEAST_RATIO))
        world.fault(`the healthy destination's rate fell to ${ratio.toFixed(2)} of what it was alone`);

      unlucky.stop();
      await world.destination([REFUSES], { host: refusing.host });
      for (const sink of bad) {
        sink.program(WILLING);
        sink.disconnect();
      }
      world.heal();
      return world.result([healthy, unlucky], {
        mayFail: (recipient) => recipient.endsWith('@all-5xx.example'),
      });
    },
  },
];
