import { needsSmtpUtf8 } from '../../mail/address.ts';
import { compose, messageBytes } from '../../mail/compose.ts';
import type { MessageContent } from '../../mail/content.ts';
import { signDkim } from '../../mail/dkim.ts';
import type { Reply } from '../../mail/reply.ts';
import { attempt } from './attempt.ts';
import type { Client } from './client.ts';
import type { AttemptReport, DeliveryJob } from './protocol.ts';
import type { OutgoingMessage } from './session.ts';

/**
 * One job from content to report: compose, sign, deliver. Nothing that is wrong with a content may harm the
 * worker: it becomes a report that this side refuses to send it.
 */

/** `null`: the worker was stopped before anyone could have taken the message. */
export async function runJob(job: DeliveryJob, client: Client): Promise<AttemptReport | null> {
  let message: OutgoingMessage;
  try {
    message = prepare(job, client.clock.now());
  } catch (error) {
    const { id, slot } = job;
    const reply = cannotCompose(error);
    return { id, slot, conclusion: 'refused-locally', stage: 'connect', reply, sessions: [] };
  }
  return attempt(job, message, client);
}

/** Composes and signs once, however many hosts will be asked. Throws when the content cannot be sent. */
function prepare(job: DeliveryJob, now: number): OutgoingMessage {
  const { from, to } = job.envelope;
  checkPath(from);
  checkPath(to);
  // Written by this program's own main thread into the database, and checked there.
  const content = JSON.parse(job.content) as MessageContent;
  const composed = compose(content, job.copy);
  return {
    from,
    to,
    octets: messageBytes(composed, signDkim(composed, job.signers, now)),
    utf8: composed.needsSmtpUtf8 || needsSmtpUtf8(from) || needsSmtpUtf8(to),
  };
}

/** The last door before the wire: a line break in an address would be a command of its own. */
function checkPath(path: string): void {
  if (/\p{Cc}/u.test(path)) throw new Error('an envelope address holds a control character');
}

/** RFC 3463 §3.7: 5.6.0, other or undefined media error. */
function cannotCompose(error: unknown): Reply {
  const why = error instanceof Error ? error.message : String(error);
  return { code: 554, enhanced: '5.6.0', text: `the message cannot be composed: ${why}`.slice(0, 500) };
}
