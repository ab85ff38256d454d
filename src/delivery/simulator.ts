import type { Recorder } from '../events/record.ts';
import { domainOf } from '../mail/address.ts';
import { type Classification, classify } from '../mail/classify/classify.ts';
import type { SmtpReply } from '../mail/reply.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import type { AttemptResult, AttemptResults, DeliveryOutcome } from './attempt-result.ts';

/*
 * Recipients at `simulator.<hostname>`: each address has a fixed result, without any connection, so that a caller can
 * test every event. Messages of test keys to any other address count as delivered. Simulated messages are not counted in
 * statistics and suppress no address.
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

/** The result of this attempt. `address`: null for one that is not of the simulator. */
function simulate({ attempts }: MessageRow, address: string | null): AttemptResult {
  const isAccepted = address === null || (address === 'deferred' && attempts > 0);
  const reply = isAccepted ? DELIVERED : (REPLIES.get(address) ?? UNKNOWN);
  const classification: Classification = {
    ...classify({ phase: 'rcpt', reply }),
    retryAfterMs: RETRY_WAIT_MS,
  };
  return { classification, reply, source: 'smtp' };
}

/** Records one simulated attempt, inside a unit of work, and the events that follow a delivery. */
export function playSimulation(
  deps: { results: AttemptResults; recorder: Recorder; hostname: string },
  tables: Tables,
  seq: number,
): DeliveryOutcome | null {
  const { results, recorder } = deps;
  const message = tables.messages.bySeq(seq);
  if (message === null) return null;
  const address = simulatorAddress(message, deps.hostname);
  const outcome = results.record(tables, seq, simulate(message, address), {
    lane: 'simulator',
    conclusion: 'replied',
    sessions: [],
  });
  const after = tables.messages.bySeq(seq);
  if (outcome?.status === 'delivered' && after !== null) recordFollowUp(recorder, tables, after, address);
  return outcome;
}

function recordFollowUp(
  recorder: Recorder,
  tables: Tables,
  message: MessageRow,
  address: string | null,
): void {
  switch (address) {
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

/** The local part of an address of the simulator, without `+tag`; null for other addresses. */
function simulatorAddress({ recipient }: MessageRow, hostname: string): string | null {
  const at = recipient.lastIndexOf('@');
  if (domainOf(recipient) !== simulatorDomain(hostname)) return null;
  return recipient.slice(0, at).split('+')[0]?.toLowerCase() ?? '';
}
