import { expect } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { policyOf } from '../../../src/delivery/remedies.ts';
import type { Certificate } from '../../support/certificates.ts';
import type { SinkBehavior } from '../../support/smtp-sink-session.ts';
import { deferred, delivered } from './attempts.ts';
import type { Scenario } from './scenario.ts';

/**
 * A host that does not satisfy the required encryption: the message is deferred and nothing is sent in plain text, until
 * the host has a suitable certificate.
 */
export interface DeferredForTls extends Pick<Scenario, 'title' | 'settings' | 'mtaSts' | 'signed' | 'zone'> {
  /** The TLS behavior of the host in the first attempt. */
  tls: SinkBehavior['tls'];
  /** The failed session of the first attempt: `mx starttls: …`. */
  session: string;
  /** The commands of the failed connection. Default: it ends in the handshake. */
  connection?: string;
  /** The certificate with which the host satisfies the requirement. */
  certificate: Certificate;
  /** The session that delivers the message. Default: with a verified certificate. */
  delivery?: string;
  /** Expected fields of the encryption of that session. */
  encryption?: Record<string, unknown>;
}

/** Creates the scenario of such a host. */
export function deferredForTls(options: DeferredForTls): Scenario {
  const { tls, session, connection = 'EHLO STARTTLS', certificate, encryption, ...given } = options;
  const { delivery = 'mx dot 250 TLS verified', ...scenario } = given;
  return {
    ...scenario,
    hosts: { mx: { tls } },
    messages: {
      ada: {
        attempts: [deferred('454 4.7.5', 'tls-failed', 5 * MINUTE, session), delivered(delivery)],
        status: 'delivered',
        ...(encryption === undefined ? {} : { tls: encryption }),
      },
    },
    connections: { mx: [connection, 'EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
    play: async (run) => {
      await run.sendAll();
      await run.settle();
      // The explanation names the published policy that holds the message.
      const policy = policyOf(session.replaceAll('_25._tcp.', `_${run.env.port}._tcp.`));
      const reasons = await run.explain('ada');
      expect(reasons.find(({ code }) => code === 'deferred')?.text).toContain(policy ?? 'was deferred');
      run.sink('mx').program({ tls: certificate });
    },
  };
}

/** Settings with which shaping requires this encryption for the destination. */
export function requiring(tls: 'required' | 'verified'): NonNullable<Scenario['settings']> {
  return ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1, tls }] });
}
