import type { Clock } from '../core/clock.ts';
import type { Recorder } from '../events/record.ts';
import { type Classification, classify } from '../mail/classify/classify.ts';
import type { SmtpReply } from '../mail/reply.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import type { Judgement, Outcome, Outcomes } from './outcome.ts';

/**
 * Recipients at `simulator.<hostname>`: they play out an outcome without leaving the machine, so that a
 * caller can try every event. They count in no statistics and suppress nobody.
 */
export function simulatorDomain(hostname: string): string {
  return `simulator.${hostname}`;
}

const DELIVERED: SmtpReply = { code: 250, enhanced: '2.0.0', text: 'OK, simulated' };

/** What each address answers; `deferred@` changes its mind at the second try. */
const REPLIES: Record<string, SmtpReply> = {
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
};

const UNKNOWN: SmtpReply = {
  code: 550,
  enhanced: '5.1.1',
  text: `Simulated: there is no such address; try ${Object.keys(REPLIES).join(', ')}`,
};

/** The second try of `deferred@` comes soon: nobody wants to wait five minutes for a simulation. */
const RETRY_MS = 2000;

/** What the simulator's address answers to this attempt. */
export function simulate(message: MessageRow): Judgement {
  const reply =
    message.attempts > 0 && part(message) === 'deferred' ? DELIVERED : (REPLIES[part(message)] ?? UNKNOWN);
  const verdict: Classification = { ...classify({ phase: 'rcpt', reply }), retryAfterMs: RETRY_MS };
  return { verdict, reply, source: 'smtp' };
}

/** Plays one attempt in full, in a unit of work: the outcome, and what comes after a delivery. */
export function playSimulation(
  settings: { outcomes: Outcomes; recorder: Recorder; clock: Clock },
  tables: Tables,
  seq: number,
): Outcome | null {
  const { outcomes, recorder } = settings;
  const message = tables.messages.bySeq(seq);
  if (message === null) return null;
  const outcome = outcomes.record(tables, seq, simulate(message), {
    lane: 'simulator',
    conclusion: 'replied',
    sessions: [],
  });
  const after = tables.messages.bySeq(seq);
  if (outcome?.status === 'delivered' && after !== null) playAftermath(recorder, tables, after);
  return outcome;
}

function playAftermath(recorder: Recorder, tables: Tables, message: MessageRow): void {
  switch (part(message)) {
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

/** The local part without `+anything`. */
function part(message: MessageRow): string {
  return message.recipient.slice(0, message.recipient.lastIndexOf('@')).split('+')[0]?.toLowerCase() ?? '';
}
