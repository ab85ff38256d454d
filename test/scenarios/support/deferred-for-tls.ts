import { MINUTE } from '../../../src/core/clock.ts';
import type { Certificate } from '../../support/certificates.ts';
import type { SinkBehavior } from '../../support/smtp-sink-session.ts';
import { deferred, delivered } from './attempts.ts';
import type { Scenario } from './scenario.ts';

/**
 * A scenario whose host does not encrypt as something requires: the message is deferred and nothing is sent in plain text,
 * until the host has a suitable certificate.
 */
export interface DeferredForTls extends Pick<Scenario, 'title' | 'settings' | 'mtaSts' | 'signed' | 'zone'> {
  /** Of the host at first. */
  tls: SinkBehavior['tls'];
  /** The session that fails: `mx starttls: …`. */
  session: string;
  /** The connection that fails. Default: it ends in the handshake. */
  connection?: string;
  /** Makes the host suitable. */
  certificate: Certificate;
  /** The session that delivers the message. Default: with a verified certificate. */
  delivery?: string;
  /** The encryption of that session. */
  encryption?: Record<string, unknown>;
}

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
      run.sink('mx').program({ tls: certificate });
    },
  };
}

/** A requirement of the operator for the destination. */
export function requiring(tls: 'required' | 'verified'): NonNullable<Scenario['settings']> {
  return ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1, tls }] });
}
