import { programVersion } from '../config/version.ts';
import { builtProgram } from '../core/built-program.ts';
import { createDelivery } from '../delivery/delivery.ts';
import { createDirectMail } from '../delivery/direct-mail.ts';
import { createHolds } from '../delivery/holds.ts';
import { registerDeliveryCounters } from '../delivery/metrics.ts';
import { createPrepare } from '../delivery/prepare.ts';
import { createTlsSystem } from '../delivery/tls-system.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { Domains } from '../domains/service.ts';
import type { Recorder } from '../events/record.ts';
import { generateDkimKey } from '../mail/dkim.ts';
import { createSendingMonitor } from '../reputation/monitor.ts';
import { createSendingRates } from '../reputation/sending-rates.ts';
import { sendingObstacle } from '../sending/checks.ts';
import { NO_ACCOUNT } from '../store/readers/reads.ts';
import type { DaemonBase } from './storage.ts';

interface DeliveryParts {
  resolver: Resolver;
  recorder: Recorder;
  domains: Pick<Domains, 'signingKeys'>;
  /** `public.url` with its actual port. */
  publicUrl: string;
}

/** Delivery from the queue to SMTP. */
export type DaemonDelivery = ReturnType<typeof startDelivery>;

/** Creates the delivery; it sends nothing before the parts are started in `startBackground`. */
export function startDelivery(base: DaemonBase, { resolver, recorder, domains, publicUrl }: DeliveryParts) {
  const { config, env, clock, monotonic, expiry, random, log, registry } = base;
  const { tables, reader, writer, generation, tokens, onStop } = base;
  const mail = createDirectMail(base, resolver);
  const tls = createTlsSystem(base, {
    resolver,
    mail,
    generateKey: env.generateKey ?? generateDkimKey,
    userAgent: `Postrider/${programVersion()}`,
  });
  onStop(() => tls.stop());
  // Runs first: what sends mail waits for the deliveries in progress.
  onStop(() => mail.close());
  let delivered = 0;
  let unrecorded = 0;
  const counters = registerDeliveryCounters(registry);
  const sendingRates = createSendingRates(base);
  // Before the first delivery: what was limited stays limited over a restart.
  sendingRates.refresh();
  const sendingMonitor = createSendingMonitor(base, { recorder, onChange: sendingRates.refresh });
  base.observeCounts(sendingMonitor.counted);
  onStop(() => sendingMonitor.stop());
  const delivery = createDelivery({
    config,
    clock,
    monotonic,
    expiry,
    random,
    log,
    tables,
    writer,
    recorder,
    resolver,
    prepare: createPrepare({ config, tokens, publicUrl }),
    signersOf: (domain, lane) => domains.signingKeys(domain.domain_id, lane),
    sendingObstacle,
    sendingRates,
    generation,
    observe: (status) => {
      counters.observe(status);
      if (status === 'delivered') delivered++;
    },
    observeAttempt: counters.observeAttempt,
    tls,
    observeFailover: counters.observeFailover,
    workerScript: env.workerScript ?? builtProgram('delivery/worker/main'),
  });
  onStop(async () => {
    unrecorded = await delivery.stop();
  });

  const holds = createHolds(base, {
    countHeld: () => reader.table(NO_ACCOUNT, 'queue', 'countHeld'),
    announce: delivery.announce,
  });
  onStop(() => holds.stop());
  return {
    /** Sends mail of the platform itself. */
    mail,
    tls,
    delivery,
    sendingMonitor,
    holds,
    /** Number of messages delivered since the start. */
    delivered: () => delivered,
    /** Number of outcomes that could not be recorded; 0 until delivery has stopped. */
    unrecorded: () => unrecorded,
  };
}
