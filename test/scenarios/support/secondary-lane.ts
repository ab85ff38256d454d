import type { SinkSession } from '../../support/smtp-sink-session.ts';
import { delivered } from './attempts.ts';
import type { ExpectedAttempt, ExpectedMessage } from './scenario.ts';

export const PRIMARY_ADDRESS = '127.0.0.1';
export const SECONDARY_ADDRESS = '127.0.0.2';

export const LANE_SETTINGS = {
  'delivery.egress': [
    { name: 'main', address: PRIMARY_ADDRESS, publicAddress: '192.0.2.25', pools: ['default'] },
    { name: 'second', address: SECONDARY_ADDRESS, publicAddress: '192.0.2.26', pools: ['secondary'] },
  ],
};

export const LISTING = `554 5.7.1 Service unavailable; Client host [${PRIMARY_ADDRESS}] blocked using bl.example`;

/** Answers sessions from the primary address with the reply, others with the default. */
export const toPrimary = (reply: string) => (session: SinkSession) =>
  session.remoteAddress === PRIMARY_ADDRESS ? reply : undefined;

/** Refused over the primary lane because our address is blocklisted, and delivered over the secondary lane. */
export const CHANGES_LANE: ExpectedMessage = {
  attempts: [
    { reply: '554 5.7.1', action: 'bounce', sessions: ['mx rcpt 554'] } satisfies ExpectedAttempt,
    delivered('mx dot 250'),
  ],
  status: 'delivered',
  events: ['email_sent', 'email_delayed', 'email_delivered'],
};
