import type { Recorder } from '../events/record.ts';
import { type Classification, classify } from '../mail/classify/classify.ts';
import type { SmtpReply } from '../mail/reply.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import type { AttemptResult, AttemptResults, DeliveryOutcome } from './attempt-result.ts';

/*
 * Recipients at `simulator.<hostname>`: each address has a fixed result, without any connection, so that a caller can
 * test every event. Simulated messages are not counted in statistics and suppress no address.
 */

/** The domain of the simulated recipients. */
export function simulatorDomain(hostname: string): string {
  return `simulator.${hostname}`;
}

const DELIVERED: SmtpReply = { code: 250, enhanced: '2.0.0', text: 'OK, simulated' };

/** The reply of each address; `deferred@` accepts the second attempt. */
const REPLIES: ReadonlyMap<string, SmtpReply> = new Map(
  Object.entries({
    delivered: DELIVERED,
    deferred: { code: 451, enhanced: '4.7.1', text: 'Simulated: please try again later' },
    bounced: { code: 550, enhanced: '5.1.1', text: 'Simulated: user unknown' },
    blocked: {
      code: 554,
      enhanced: '5.7.1',
      text: 'Simulated: message refused, your address is on a blocklist',
    },
    complained: DELIVERED,
    asyncbounced: DELIVERED,
    clicked: DELIVERED,
  }),
);

const UNKNOWN: SmtpReply = {
  code: 550,
  enhanced: '5.1.1',
  text: `Simulated: there is no such address; try ${[...REPLIES.keys()].join(', ')}`,
};

/** The wait of `deferred@`, much shorter than the retry schedule, because a person waits for the simulation. */
const RETRY_WAIT_MS = 2000;

/** The result of this attempt at a simulator address. */
function simulate(message: MessageRow): AttemptResult {
  const reply =
    message.attempts > 0 && localPart(message) === 'deferred'
      ? DELIVERED
      : (REPLIES.get(localPart(message)) ?? UNKNOWN);
  const classification: Classification = {
    ...classify({ phase: 'rcpt', reply }),
    retryAfterMs: RETRY_WAIT_MS,
  };
  return { classification, reply, source: 'smtp' };
}

/** Records one simulated attempt, inside a unit of work, and the events that follow a delivery. */
export function playSimulation(
  deps: { results: AttemptResults; recorder: Recorder },
  tables: Tables,
  seq: number,
): DeliveryOutcome | null {
  const { results, recorder } = deps;
  const message = tables.messages.bySeq(seq);
  if (message === null) return null;
  const outcome = results.record(tables, seq, simulate(message), {
    lane: 'simulator',
    conclusion: 'replied',
    sessions: [],
  });
  const after = tables.messages.bySeq(seq);
  if (outcome?.status === 'delivered' && after !== null) recordFollowUp(recorder, tables, after);
  return outcome;
}

function recordFollowUp(recorder: Recorder, tables: Tables, message: MessageRow): void {
  switch (localPart(message)) {
    case 'complained':
      recorder.message(tables, message, {
        kind: 'email_complained',
        fields: { source: 'arf', feedbackType: 'abuse', verified: true },
      });
      break;
    case 'asyncbounced':
      recorder.message(tables, message, {
        kind: 'email_bounced',
        fields: {
          bounceType: 'hard',
          classification: 'invalid-recipient',
          smtpCode: 550,
          enhancedCode: '5.1.1',
          diagnostic: 'Simulated: user unknown, reported after delivery',
          source: 'dsn',
          verified: true,
        },
        effect: { scope: 'recipient', suppress: 'now' },
      });
      break;
    case 'clicked': {
      const visitor = {
        ip: '127.0.0.1',
        userAgent: 'Postrider simulator',
        isBot: false,
        isProxy: false,
        isFirst: true,
      };
      recorder.message(tables, message, { kind: 'email_opened', fields: visitor });
      recorder.message(tables, message, {
        kind: 'email_clicked',
        fields: { url: 'https://example.com/', ...visitor },
      });
      break;
    }
    default:
  }
}

/** The local part without `+tag`. */
function localPart(message: MessageRow): string {
  return message.recipient.slice(0, message.recipient.lastIndexOf('@')).split('+')[0]?.toLowerCase() ?? '';
}
